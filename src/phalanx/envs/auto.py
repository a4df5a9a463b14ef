"""How many workers are worth having, and why, in one line."""

import math
from contextlib import suppress

from phalanx.machine import count_cores

WORTH_IT_S = 150e-6  # a round of the whole pool that takes less is over before workers are awake
MOST_WORKERS = 128
WORKER_MB = 40  # what a worker needs beside its environments
FEW, MANY = 16, 64  # environments that are chosen where nobody says how many


def choose_workers(n_envs: int, step_s: float, cpu_share: float) -> tuple[int, str]:
    """How many worker processes (0: none, this process will do), and why.

    An environment that computes wants as many as there are cores; one that waits wants as many as
    keep the cores busy.
    """
    cores = count_cores()
    took = f"a step takes {_duration(step_s)}, {cpu_share:.0%} of it computing"
    if n_envs == 1:
        return 0, f"serial: one environment; {took}"
    if waits(step_s, cpu_share):
        # Twice what keeps the cores busy on average: they do not all wait at the same time. By
        # powers of two, so that the number does not differ with every trial.
        wanted = 2 ** math.ceil(math.log2(2 * cores / max(cpu_share, 0.01)))
        most = min(n_envs, MOST_WORKERS, max(cores, int(_free_mb() / 2 / WORKER_MB)))
        count = max(min(wanted, most), min(cores, n_envs))
        return count, f"{count} workers for {n_envs} environments that wait: {took}"
    round_s = n_envs * step_s
    if cores == 1:
        return 0, f"serial: {took}, and there is one core"
    if round_s < WORTH_IT_S:
        return 0, (
            f"serial: {took}; all {n_envs} take {_duration(round_s)}, less than workers would gain"
        )
    count = min(cores, n_envs)
    return count, f"{count} workers for {cores} cores: {took}"


def choose_num_envs(step_s: float, cpu_share: float) -> int:
    """How many environments: more of those that wait, since they wait side by side.

    There are two answers only, which do not depend on the machine: what is learnt depends on them.
    """
    return MANY if waits(step_s, cpu_share) else FEW


def waits(step_s: float, cpu_share: float) -> bool:
    """Whether an environment mostly waits, and long enough for others to run meanwhile."""
    return cpu_share < 0.5 and step_s > 100e-6


def _duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _free_mb() -> float:
    """Memory that new processes can have."""
    with suppress(OSError), open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable"):
                return float(line.split()[1]) / 1024
    return 1024.0
