"""The order of the tests: files that wait a lot come first."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files marked slow, so that no worker is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
