"""What holds for all tests: Ctrl-C is heard, work that takes long on a busy machine does not say so
unasked, files that wait a lot come first, and small products of matrices are not shared among
threads: these would wait for each other by spinning, and where several tests run at a time that
takes fifty times as long as the products.
"""

import os
import signal

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy and scipy are imported


def pytest_configure() -> None:
    """A shell starts background jobs deaf to Ctrl-C; tests of it send one and expect an answer."""
    from phalanx import display  # after the setting above: it imports numpy

    signal.signal(signal.SIGINT, signal.default_int_handler)
    display._InFile.first_s = 86_400.0  # tests of what is told on the way set their own


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files marked slow, so that no worker is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
