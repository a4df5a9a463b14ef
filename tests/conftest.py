"""What holds for all tests: Ctrl-C is heard, and files that wait a lot come first."""

import signal

import pytest


def pytest_configure() -> None:
    """A shell starts background jobs deaf to Ctrl-C; tests of it send one and expect an answer."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files marked slow, so that no worker is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
