"""Charts: what lies where, labels apart, nothing but a drawing in the page."""

import sys

import numpy as np
import pytest

from phalanx.errors import MissingError
from phalanx.show.drawing.chart import apart, check_installed, draw, nice, shortened
from phalanx.show.runs.curves import Curve, Panel

EVIL = "<script>alert(1)</script>"


def curve(name: str, mean: list[float], reach: float = 0.5) -> Curve:
    values = np.array(mean, np.float64)
    return Curve(name, np.arange(1.0, len(mean) + 1), values, values - reach, values + reach)


@pytest.fixture(autouse=True)
def _installed() -> None:
    pytest.importorskip("vl_convert")


def test_names_stay_text_and_ids_are_apart() -> None:
    panel = Panel("k", "Return", "", [curve(EVIL, [1, 2]), curve("b", [2, 3])])
    one, other = (draw(panel, key, 400, 240) for key in ("one", "other"))
    assert "<script" not in one.svg
    assert "&lt;script&gt;" in one.svg
    assert 'id="one-clip' in one.svg
    assert one.svg.count("clip-path") == one.svg.count("url(#one-clip")
    assert "one-clip" not in other.svg
    assert [series["name"] for series in one.told["series"]] == [EVIL, "b"]


def test_what_a_pointer_is_told_is_where_the_line_is_drawn() -> None:
    told = draw(Panel("k", "t", "", [curve("a", [0.0, 10.0], 0)]), "k", 400, 240)
    plot, (low, high) = told.told["plot"], told.told["y"]
    assert (low, high) == (0.0, 10.0)
    # The line runs from the lower left to the upper right corner of the plot.
    assert f"M0,{plot['height']}L{plot['width']},0" in told.svg
    assert f"translate({plot['left']},{plot['top']})" in told.svg


def test_a_deep_beginning_is_cut_off_and_said() -> None:
    falling = [-500.0] * 3 + [-10.0 - k % 3 for k in range(60)]
    told = draw(Panel("k", "t", "", [curve("a", falling)]), "k", 400, 240).told
    assert told["y"][0] >= -15
    assert told["cut"] == "Outside the picture it reaches -500."
    told = draw(
        Panel("k", "t", "", [curve("a", [float(-k) for k in range(60)])]), "k", 400, 240
    ).told
    assert told["y"][0] <= -59
    assert told["cut"] == ""
    told = draw(
        Panel("k", "t", "", [curve("a", [1.0 / k for k in range(1, 80)])]), "k", 400, 240
    ).told
    assert told["cut"] == "Outside the picture it reaches 1."  # not its lowest point, which is in


@pytest.mark.parametrize(
    "mean", [[], [1.0], [np.nan, np.nan], [5.0, 5.0], [1e-9, 2e-9], [1e12, -1e12]]
)
def test_odd_curves_are_drawn_too(mean: list[float]) -> None:
    told = draw(Panel("k", "t", "", [curve("a", mean)]), "k", 352, 236)
    assert told.svg.startswith("<svg")
    assert draw(Panel("k", "t", "", []), "k", 352, 236).svg.startswith("<svg")


def test_shares_are_stacked_to_one() -> None:
    parts = [curve("a", [0.25, 0.5]), curve("b", [0.75, 0.5])]
    told = draw(Panel("k", "t", "", parts, style="stack"), "k", 352, 236).told
    assert (told["y"], told["isShare"], told["isStack"]) == ([0.0, 1.0], True, True)


def test_labels_are_moved_apart_and_stay_inside() -> None:
    assert apart([10, 11, 50], 14, 100) == [10, 24, 50]
    assert apart([98, 99, 100], 14, 100) == [72, 86, 100]
    assert apart([], 14, 100) == []


def test_long_names_are_shortened_where_they_do_not_differ() -> None:
    assert shortened(["short", "a very long name"], 8) == ["short", "a very …"]
    assert shortened(["rate=0.001", "rate=0.002"], 6) == ["…0.001", "…0.002"]


def test_ranges_end_at_round_numbers() -> None:
    assert nice(-11.3, -9.7) == pytest.approx((-11.5, -9.5))
    assert nice(0, 1) == pytest.approx((0, 1))
    assert nice(5, 5) == pytest.approx((4.5, 5.5), abs=0.2)


def test_without_vl_convert_one_line_says_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingError, match=r"pip install 'phalanx\[report\]'"):
        check_installed()
