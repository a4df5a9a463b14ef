"""The table of modules and tests names files that are there."""

from tests.mutants.changes import SOURCES
from tests.mutants.copied import ROOT
from tests.mutants.nearest import TESTS, place_of


def test_every_module_and_its_nearest_tests_exist() -> None:
    assert [name for name in TESTS if not (SOURCES / f"{name}.py").is_file()] == []
    places = {place_of(test) for tests in TESTS.values() for test in tests.split()}
    assert [place for place in sorted(places) if not (ROOT / place).is_file()] == []
