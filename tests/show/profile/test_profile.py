"""A training that is watched for a moment, in all ways of running."""

import json
from pathlib import Path
from typing import Any

import pytest

from phalanx.cli.commands import main
from phalanx.errors import ConfigError
from phalanx.show.profile.config import ENDLESS, ProfileConfig
from phalanx.stopwatch import PARTS
from tests.show.profile.test_trace_file import check_events

GAME = "--n-envs 64 --update-steps 20 --horizon 20 --hidden 8 --observation bits"
POLE = "--env CartPole-v1 --n-envs 4 --update-steps 32"

WAYS = {
    "in step": (
        f"{GAME} --num-threads 2",
        {"main": {"simulator", "policy", "learning"}, "thread 1": {"idle"}},
    ),
    "impala": (
        f"{GAME} --algo impala --num-samplers 2 --num-threads 1",
        {"main": {"learning"}, "sampler 0": {"simulator", "policy"}, "sampler 1": {"simulator"}},
    ),
    "pool here": (
        f"{POLE} --num-workers 0 --num-threads 1 --overlap false",
        {"main": {"simulator", "policy", "copying", "learning", "logging"}},
    ),
    "workers": (
        f"{POLE} --num-workers 2 --num-threads 1",
        {
            "main": {"waiting", "learning"},
            "sampler 0": {"policy", "copying", "waiting"},
            "worker 0": {"simulator", "idle"},
            "worker 1": {"simulator", "idle"},
        },
    ),
    "a3c": (
        f"{POLE} --algo a3c --num-workers 2",
        {name: {"simulator", "policy", "copying", "learning"} for name in ("worker 0", "worker 1")},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_parts_of_all_threads_sum_to_the_time_that_passed(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags, threads = WAYS[way]
    traced = [] if way == "a3c" else ["--trace-file", "trace.json"]
    flags += " --seconds 2 --json profile.json --quiet --config none"
    for _attempt in range(5):  # on a busy machine a thread may be put aside while it is looked at
        assert main(["profile", *flags.split(), *traced]) == 0
        told, said = json.loads(Path("profile.json").read_text()), capsys.readouterr().out
        if all(abs(total - 1) <= 0.02 for total in told["sums"].values()):
            break
    shares = told["threads_and_processes"]
    assert shares.keys() == threads.keys()
    for name, parts in threads.items():
        assert tuple(shares[name]) == PARTS
        assert told["sums"][name] == pytest.approx(1, abs=0.02), shares[name]
        assert {part for part, share in shares[name].items() if share > 0} >= parts
    assert told["bottleneck"] in said
    assert told["bottleneck"].count(".") == 1
    assert told["try"]
    assert 0 < len(told["functions"]) <= 20
    totals = [one["total_s"] for one in told["functions"]]
    assert totals == sorted(totals, reverse=True)
    assert all(name in said for name in threads)
    left = {"profile.json"} | ({"trace.json"} if traced else set())
    assert {path.name for path in tmp_path.iterdir()} == left  # nothing of the run
    if traced:
        check_trace(json.loads(Path("trace.json").read_text()), set(threads))
    check_pool(way, told, said)


def check_trace(trace: dict[str, Any], threads: set[str]) -> None:
    spans = check_events(trace)
    named = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in trace["traceEvents"]
        if event["name"] == "thread_name"
    }
    drawn = {named[span["pid"], span["tid"]] for span in spans}
    assert drawn >= {name for name in threads if not name.startswith("thread")}  # who came in time
    assert {"learning"} <= {span["name"] for span in spans}


def check_pool(way: str, told: dict[str, Any], said: str) -> None:
    if way == "workers":
        assert told["bytes_per_step"] == 41
        lengths = told["steps"] / max(1, told["episodes"])
        assert told["barriers_per_episode"] == pytest.approx(lengths, rel=0.2)
        assert "bytes between processes per environment step: 41" in said
        assert told["not_seen"] == ["what Python calls inside the worker processes is not seen"]
    elif way == "a3c":
        assert "not seen: the workers of a3c tell their own time" in said
    elif way in ("in step", "impala"):
        assert told["barriers_per_episode"] == pytest.approx(1.0, rel=0.1)  # a rollout is one call
        assert "reads the processor's counter" in said
        assert told["bytes_per_step"] is None


def test_the_functions_of_threads_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "profile.json"
    flags = f"{POLE} --num-workers 0 --num-threads 1 --seconds 2 --config none --quiet"
    assert main(["profile", *flags.split(), "--json", str(file)]) == 0
    functions = json.loads(file.read_text())["functions"]
    by_thread: dict[str, set[str]] = {one["thread"]: set() for one in functions}
    for one in functions:
        by_thread[one["thread"]].add(one["name"])
    assert {"step", "_update"} <= by_thread["main"]
    assert "collect" in by_thread["sampler 0"]
    assert "hear" not in by_thread["main"]  # who looks on
    capsys.readouterr()


def test_it_trains_as_the_flags_say_but_without_an_end(tmp_path: Path) -> None:
    config = ProfileConfig(num_envs=96, total_episodes=5, gamma=0.9, track="wandb", name="mine")
    training = config.training(tmp_path)
    assert (training.num_envs, training.gamma) == (96, 0.9)
    assert (training.total_episodes, training.total_steps) == (ENDLESS, None)
    assert (training.output_dir, training.name, training.track) == (tmp_path, "run", None)
    steps = ProfileConfig(env="CartPole-v1", duration=0.1).training(tmp_path)
    assert (steps.total_steps, steps.duration) == (ENDLESS, None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resume": Path("runs/x")}, "leave out --resume"),
        ({"env": "CartPole-v1", "algo": "a3c", "trace_file": Path("t.json")}, "leave it out"),
        ({"seconds": 0.1}, "seconds must be from 0.5"),
        ({"json": Path("/proc/x/y.json")}, "cannot write"),
        ({"trace_file": Path("/")}, "is a folder"),
    ],
)
def test_what_cannot_be_profiled_is_refused_in_one_line(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        ProfileConfig(**settings)
