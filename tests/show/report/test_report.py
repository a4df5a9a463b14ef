"""Reports of runs, searches and sweeps: whole ones, crashed ones, and hostile names."""

import json
import re
import shutil
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from phalanx.cage2.workflow import order_name
from phalanx.cli.commands import main
from phalanx.show.report.report import report_page
from tests.show.run_folders import make_run, make_search, make_sweep, mark

pytest.importorskip("vl_convert")
EVIL = "<script>alert(1)<b>"


class Words(HTMLParser):
    """The text that a reader sees, and the tags that a browser would make."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.feed(re.sub(r"<(script|style)[^>]*>.*?</\1>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def __contains__(self, words: str) -> bool:
        return words in " ".join(" ".join(self.words).split())


def test_a_run_is_told_with_what_differs_from_the_defaults(tmp_path: Path) -> None:
    page = report_page([make_run(tmp_path / "first", gamma=0.9, seed=3)], episodes=0)
    words = Words(page)
    assert "gamma 0.9 0.99 discount of a turn" in words
    assert "return of the last episodes" in words
    assert "Mean return of training episodes" in words
    assert "The same throughout: learning_rate 0.001, policy_loss -0.01, kl 0.003, lag 0." in words
    assert "It was not played." in words
    for origin in ("1.0", "0123456789", "a fast one", "Linux"):
        assert origin in words
    charts = charts_of(page)
    full = next(chart for key, chart in charts.items() if key == "return0full")
    assert [series["name"] for series in full["series"]] == ["b_line", "meander", "all episodes"]
    assert full["series"][2]["mean"][-1] == pytest.approx(-10.0)


def charts_of(page: str) -> dict[str, Any]:
    packed = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page)
    assert packed is not None
    found = json.loads(packed[1])
    assert isinstance(found, dict)
    return found


def test_scores_stand_beside_the_published_ones(tmp_path: Path) -> None:
    path = make_run(tmp_path / "first")
    facts = json.loads((path / "summary.json").read_text())
    cells = [
        {
            "policy": "p",
            "red_agent": red,
            "horizon": turns,
            "episodes": 1000,
            "mean": -turns / 10,
            "low": -turns / 10 - 0.5,
            "high": -turns / 10 + 0.5,
            "compliance": None,
        }
        for red in ("b_line", "meander", "sleep")
        for turns in (30, 50, 100)
    ]
    facts["score"] = {"rules": "2.1-leaderboard", "cells": cells, "total": -54.0}
    (path / "summary.json").write_text(json.dumps(facts))
    words = Words(report_page([path]))
    minus = "\N{MINUS SIGN}"
    assert f"b_line 30 {minus}3.00 ± 0.50 {minus}3.47 {minus}3.48 {minus}3.53" in words
    assert f"all nine {minus}54.00 {minus}54.57" in words
    assert "CardiffUni (winner)" in words


def test_a_run_that_crashed_or_is_half_written_is_told_as_far_as_it_came(tmp_path: Path) -> None:
    killed = make_run(tmp_path / "killed", state=None)
    assert "crashed" in Words(report_page([killed], episodes=0))
    (killed / "episodes.csv").unlink()
    assert "episodes.csv cannot be read" in Words(report_page([killed], episodes=0))
    (killed / "updates.csv").write_bytes(b"update,ret\xff\n1")
    assert "updates.csv has no whole row" in Words(report_page([killed], episodes=0))
    (killed / "updates.csv").unlink()
    (killed / "config.yaml").write_text("{")
    words = Words(report_page([killed], episodes=0))
    assert "the run has no updates.csv" in words
    assert "config.yaml cannot be read" in words
    assert "nothing was begun" in Words(report_page([mark(tmp_path / "bare")], episodes=0))


def test_a_run_without_a_checkpoint_is_not_played(tmp_path: Path) -> None:
    words = Words(report_page([make_run(tmp_path / "first")], episodes=10))
    assert "It has no checkpoint yet: there is no policy to play." in words


def test_a_checkpoint_that_is_none_is_a_sentence(tmp_path: Path) -> None:
    path = make_run(tmp_path / "first")
    (path / "checkpoints" / "last.npz").write_text("nothing")
    assert "It could not be played:" in Words(report_page([path], episodes=10))


def test_a_run_on_another_environment_is_told_too(tmp_path: Path) -> None:
    path = make_run(tmp_path / "cart", env="CartPole-v1", total_episodes=None, red_agent=None)
    (path / "checkpoints" / "last.npz").write_text("there is one")
    words = Words(report_page([path]))
    assert "ppo on CartPole-v1 · seed 0" in words
    assert "phalanx report --episodes 100 plays it" in words


def test_a_search_has_its_winner_orders_and_beliefs(tmp_path: Path) -> None:
    page = report_page([make_search(tmp_path / "orders")], episodes=0)
    words = Words(page)
    assert f"The winner is {order_name(119)}, most urgent first." in words
    assert "The winner minus the same learner without workflows: \N{MINUS SIGN}2.00" in words
    assert "All 3 orders, best first" in words
    believed = next(one for key, one in charts_of(page).items() if key.endswith("full"))
    names = [series["name"] for series in believed["series"]]
    assert names == ["believed", "passed the gate", "failed it"]
    assert len(believed["series"][0]["mean"]) == 120
    young = make_search(tmp_path / "young")
    (young / "summary.json").unlink()
    assert "The search has measured no order yet." in Words(report_page([young], episodes=0))


def test_a_sweep_has_its_grid_best_first(tmp_path: Path) -> None:
    path = make_sweep(tmp_path / "grid")
    words = Words(report_page([path]))
    text = " ".join(" ".join(words.words).split())
    assert text.index("learning_rate=1e-3 0, 1") < text.index("learning_rate=3e-4 0")
    assert "1 of 4 trials failed." in words
    assert "its process ended" in words
    (path / "sweep.csv").write_text("trial,folder\n0,../../../etc\n1,/etc\n")
    assert "Trials" in Words(report_page([path]))


def test_hostile_names_stay_text_and_nothing_is_fetched(tmp_path: Path) -> None:
    path = make_run(tmp_path / EVIL)
    for name in ("episodes.csv", "config.yaml"):
        content = (path / name).read_text()
        (path / name).write_text(
            content.replace(",b_line,", f",{EVIL},").replace("cage2", f"'{EVIL}'")
        )
    shutil.copytree(path, tmp_path / "copy")
    page = report_page([path, tmp_path / "copy"], episodes=0)
    words = Words(page)
    assert EVIL in words
    assert "script" not in words.tags
    assert not re.search(r'(src|href)="?(https?:|//)', page)
    assert EVIL not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)


def test_whatever_a_summary_holds_a_report_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its facts is replaced by something else; the drawing itself is left out."""
    nothing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
    fake = SimpleNamespace(vegalite_to_svg=lambda spec: nothing)
    monkeypatch.setattr("phalanx.show.drawing.chart._converter", lambda: fake)
    for path in (
        make_run(tmp_path / "run"),
        make_search(tmp_path / "search"),
        make_sweep(tmp_path / "sweep"),
    ):
        whole = json.loads((path / "summary.json").read_text())
        for name, odd in product(whole, ("x", [None])):
            (path / "summary.json").write_text(json.dumps(whole | {name: odd}))
            assert "<main>" in report_page([path], episodes=0)


def test_the_command_writes_a_page_or_says_in_one_line_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = make_run(tmp_path / "runs" / "first"), tmp_path / "report.html"
    assert main(["report", str(path), "--out", str(out), "--episodes", "0"]) == 0
    assert "open it in a browser" in capsys.readouterr().out
    assert out.read_text().startswith("<!doctype html>")
    for arguments, why in (
        ([], "give one or more run folders"),
        (["nowhere"], "there is no run folder nowhere"),
        ([str(tmp_path / "runs")], f"it holds {path}"),
        ([str(path), "--out", str(tmp_path)], "is a folder; give the name of a file"),
    ):
        assert main(["report", *arguments]) == 2
        assert why in capsys.readouterr().err
