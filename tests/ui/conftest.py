"""A server of the web app for the tests of a file, and the folder of runs that it shows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.ui.serve import serving
from tests.browser import browser, open_page
from tests.ui.client import Client

__all__ = ["browser", "open_page"]

pytest.importorskip("uvicorn", reason="no server here: pip install 'phalanx[ui]'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with serving(folder) as served:
        yield Client(served)
