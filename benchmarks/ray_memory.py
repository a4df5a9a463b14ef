"""Whether memory stays flat on Ray: IMPALA on the compiled CAGE-2, looked at for some time.

Ray frees objects once a second, so a look at the store sees up to a second of rollouts that nobody
needs any more. Looks come at random times: at regular ones, they would drift through that second.

python benchmarks/ray_memory.py --minutes 20
"""

import os
import re
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import ray

from phalanx.cluster.ray import connected
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run

EVERY_S = 10.0, 30.0  # at least and at most


def memory_mb(pid: int) -> float:
    """Of a process alone, without what it shares with others."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(n) for n in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.M)) / 1024


def store_mb() -> float:
    """What lies in the object store."""
    address = ray.get_runtime_context().gcs_address
    text = ray._private.internal_api.memory_summary(address, stats_only=True)
    found = re.search(r"Plasma memory usage (\d+) MiB", text)
    return float(found.group(1)) if found else float("nan")


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    minutes = parser.parse_args().minutes
    rows: list[tuple[float, ...]] = []
    began = next_look = time.monotonic()
    random = np.random.default_rng(0)
    pids: list[int] = []

    def look(run: Run) -> None:
        nonlocal next_look
        now = time.monotonic()
        if now < next_look:
            return
        next_look = now + random.uniform(*EVERY_S)
        if not pids:
            asked = [sampler.actor.describe.remote() for sampler in run.source.samplers]
            pids.extend(fact["pid"] for fact in ray.get(asked))
        others = max(memory_mb(pid) for pid in pids)
        rows.append((now - began, run.updates, memory_mb(os.getpid()), others, store_mb()))
        words = "{:6.0f} s {:7,.0f} rollouts: learner {:.0f} MB, sampler {:.0f} MB, store {:.0f} MB"
        print(words.format(*rows[-1]), flush=True)

    with connected(None), tempfile.TemporaryDirectory() as place:
        config = TrainConfig(
            algo="impala",
            runner="ray",
            num_samplers=2,
            num_envs=512,
            total_episodes=10**9,
            duration=minutes / 60,
            output_dir=Path(place),
            name="run",
        )
        run = train(config, on_update=look)
    third = max(1, len(rows) // 3)
    for name, column in (("learner", 2), ("sampler", 3), ("object store", 4)):
        means = [
            float(np.mean([row[column] for row in part]))
            for part in (rows[:third], rows[third:-third], rows[-third:])
        ]
        thirds, most = ", ".join(f"{mean:.0f}" for mean in means), max(row[column] for row in rows)
        print(f"{name}: {thirds} MB in thirds of the run, at most {most:.0f} MB")
    print(f"{run.updates:,} rollouts, {dict(run.rollouts)}, lag {dict(sorted(run.lags.items()))}")


if __name__ == "__main__":
    main()
