"""Ratios of runners that were measured in turn with each other."""

from typing import Any

from phalanx.bench.envs import MEAN_WAIT_S
from phalanx.bench.runner_cases import (
    BARE,
    BY_CLOCK,
    FIRST,
    FIRST_EIGHTH,
    FIXED,
    GYMNASIUM,
    NO_SLOW,
    ONE_SLOW,
    OURS,
    PARALLEL,
    PUFFERLIB,
    SB3,
    SEQUENTIAL,
    TIANSHOU,
    TIANSHOU_FIRST,
)

Rows = list[dict[str, Any]]
AUTO = ", auto"


def side_by_side(rows: Rows) -> dict[str, float]:
    """All ratios that the rows give."""
    ratios = {
        **_nothing(rows), **_computes(rows), **_waits(rows), **_one_slow(rows), **_cyborg(rows),
        **_training(rows),
    }  # fmt: skip
    return {name: round(ratio, 3) for name, ratio in ratios.items()}


def _speeds(rows: Rows, work: str, runner: str) -> dict[tuple[int, int], float]:
    """Steps a second by number of environments and of workers."""
    return {
        (row["n_envs"], row["workers"]): row["steps_per_s"]
        for row in rows
        if row["work"] == work and row["runner"] == runner
    }


def _best(rows: Rows, work: str, runner: str, n: int) -> float | None:
    """The best speed of a runner at n environments, whatever its workers."""
    speeds = _speeds(rows, work, runner)
    return max((speed for (size, _), speed in speeds.items() if size == n), default=None)


def _sizes(rows: Rows, work: str) -> list[int]:
    return list(dict.fromkeys(row["n_envs"] for row in rows if row["work"] == work))


def _nothing(rows: Rows) -> dict[str, float]:
    found, work = {}, "nothing"
    own = _speeds(rows, work, OURS)
    for n in _sizes(rows, work):
        for runner in (GYMNASIUM, SB3, TIANSHOU, PUFFERLIB):
            best = _best(rows, work, runner, n)
            for workers in (1, 2):
                if best and (n, workers) in own:
                    name = f"{work}, {n} environments: {workers} workers / {runner}"
                    found[name] = own[n, workers] / best
        serial = own.get((n, 0))
        auto = _best(rows, work, OURS + AUTO, n)
        if serial and auto:
            found[f"{work}, {n} environments: auto / serial"] = auto / serial
        if (n, 2) in own and (n, 4) in own:
            found[f"{work}, {n} environments: 4 workers / 2 workers"] = own[n, 4] / own[n, 2]
    return found


def _computes(rows: Rows) -> dict[str, float]:
    found = {}
    for work in (FIXED, BY_CLOCK):
        own, bare = _speeds(rows, work, OURS), _speeds(rows, work, BARE)
        for n in _sizes(rows, work):
            for workers in (1, 2, 4):
                if (n, 0) in own and (n, workers) in own:
                    found[f"{work}: {workers} workers / serial"] = own[n, workers] / own[n, 0]
            for runner in (OURS + AUTO, GYMNASIUM, SB3):
                best = _best(rows, work, runner, n)
                if best and (n, 0) in own:
                    found[f"{work}: {runner} / serial"] = best / own[n, 0]
            if (n, 1) in bare and (n, 2) in bare:
                found[f"{work}: processes alone, 2 / 1"] = bare[n, 2] / bare[n, 1]
            if (n, 2) in bare and (n, 2) in own:
                found[f"{work}: 2 workers / 2 processes alone"] = own[n, 2] / bare[n, 2]
    return found


def _waits(rows: Rows) -> dict[str, float]:
    found, work = {}, "waits"
    for n in _sizes(rows, work):
        own = _best(rows, work, FIRST + AUTO, n)
        if not own:
            continue
        for runner in (GYMNASIUM, TIANSHOU, TIANSHOU_FIRST):
            best = _best(rows, work, runner, n)
            if best:
                found[f"{work}, {n} environments: first n/4 / {runner}"] = own / best
        found[f"{work}, {n} environments: first n/4 / never waiting"] = own * MEAN_WAIT_S / n
    return found


def _one_slow(rows: Rows) -> dict[str, float]:
    found = {}
    for n in _sizes(rows, ONE_SLOW):
        names = {FIRST_EIGHTH: "first n/8", FIRST: "first n/4", OURS: "synchronous"}
        for runner, name in names.items():
            without = _best(rows, NO_SLOW, runner + AUTO, n)
            slowed = _best(rows, ONE_SLOW, runner + AUTO, n)
            if without and slowed:
                found[f"one of {n} slowed: share lost, {name}"] = 1 - slowed / without
    return found


def _cyborg(rows: Rows) -> dict[str, float]:
    own = _speeds(rows, "cyborg", OURS)
    serial = {n: speed for (n, workers), speed in own.items() if workers == 0}
    return {
        f"cyborg: {workers} workers / serial": speed / serial[n]
        for (n, workers), speed in own.items()
        if workers and n in serial
    }


def _training(rows: Rows) -> dict[str, float]:
    found = {}
    for work, algo in (("images", "ppo"), ("signals", "ppo"), ("signals", "impala")):
        for n in _sizes(rows, work):
            slow = _best(rows, work, f"{algo}, {SEQUENTIAL}", n)
            fast = _best(rows, work, f"{algo}, {PARALLEL}", n)
            if slow and fast:
                found[f"{work}: {algo}, parallel / sequential"] = fast / slow
    learnt = {row["runner"]: row for row in rows if row["work"] == "signals"}
    ppo, impala = (learnt.get(f"{algo}, {PARALLEL}") for algo in ("ppo", "impala"))
    if ppo and impala:
        found["signals: impala / ppo, both parallel"] = impala["steps_per_s"] / ppo["steps_per_s"]
        if ppo["return"] > 0:
            found["signals: return of impala / ppo"] = impala["return"] / ppo["return"]
    return found
