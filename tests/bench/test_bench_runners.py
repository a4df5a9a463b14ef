"""`phalanx bench runners`: every runner gives its row, peers that are missing one line."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from phalanx.bench import envs, runners, stepping
from phalanx.bench.runners import BY_CLOCK, FIXED, GYMNASIUM, ONE_SLOW, OURS, Group, side_by_side
from phalanx.bench.spent import spend
from phalanx.cli.commands import main

FIGURES = ("steps_per_s", "cpu_us_per_step", "parent_cpu_share")


def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, *work: str) -> dict[str, Any]:
    for name, group in runners.GROUPS.items():
        monkeypatch.setitem(runners.GROUPS, name, Group(group.cases, (n,)))
    monkeypatch.setattr(runners, "WORKERS", (0, 2))
    report = tmp_path / "bench.json"
    flags = ["--rounds", "1", "--seconds", "0.02", "--json", str(report)]
    assert main(["bench", "runners", "--work", *work, *flags]) == 0
    result: dict[str, Any] = json.loads(report.read_text())
    return result


def test_each_runner_is_measured_beside_its_peers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(runners.PEERS, runners.SB3, "no such peer")
    result = bench(tmp_path, monkeypatch, 4, "nothing")
    rows = {(row["runner"], row["workers"]): row for row in result["rows"]}
    assert {(OURS, 0), (OURS, 2), (GYMNASIUM, 4)} <= set(rows)
    for row in rows.values():
        assert (row["work"], row["n_envs"]) == ("nothing", 4)
        assert all(row[figure] > 0 for figure in FIGURES)
    ratio = result["ratios"][f"nothing, 4 environments: 2 workers / {GYMNASIUM}"]
    speeds = (rows[OURS, 2]["steps_per_s"], rows[GYMNASIUM, 4]["steps_per_s"])
    assert ratio == pytest.approx(speeds[0] / speeds[1], abs=1e-3)
    assert [line for line in result["skipped"] if line.startswith(runners.SB3)]
    assert "steps/s" in capsys.readouterr().out
    assert result["machine"]["cores"]


def test_a_slowed_environment_is_measured_beside_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = bench(tmp_path, monkeypatch, 2, "one-slow")
    assert [row["work"] for row in result["rows"]].count(ONE_SLOW) == 3
    lost = [name for name in result["ratios"] if "share lost" in name]
    assert len(lost) == 2


def test_training_is_measured_with_its_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "UPDATE_STEPS", 10)
    monkeypatch.setattr(runners, "LEARN_STEPS", 200)
    monkeypatch.setattr(envs.Signals, "work_ms", 0.0)
    result = bench(tmp_path, monkeypatch, 4, "signals")
    assert [row["workers"] for row in result["rows"]] == [0, 2, 0, 2]
    assert all(row["return"] >= 0 for row in result["rows"] if row["workers"])
    assert "signals: impala, parallel / sequential" in result["ratios"]


def test_without_the_source_tree_peers_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "BENCHMARKS", tmp_path)
    monkeypatch.setattr(runners, "WORKERS", (0,))
    result = bench(tmp_path, monkeypatch, 2, "computes", "cyborg")
    assert {row["runner"] for row in result["rows"] if row["work"] in (FIXED, BY_CLOCK)} == {OURS}
    assert any("source tree" in line for line in result["skipped"])


def test_no_ratio_is_made_up_where_a_row_is_missing() -> None:
    assert side_by_side([]) == {}


def test_cpu_time_counts_the_processes_below() -> None:
    read, write = os.pipe()
    child = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", "echo; while :; do :; done"],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)],
    )
    os.read(read, 1)

    def rest() -> int:
        time.sleep(0.01)
        return 1

    try:
        spent = spend(0.3, rest)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)
    assert spent.steps <= 30
    assert spent.own_cpu_s < 0.05 < spent.cpu_s


def test_unknown_work_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "runners", "--work", "notting"]) != 0
    assert "did you mean nothing" in capsys.readouterr().err
