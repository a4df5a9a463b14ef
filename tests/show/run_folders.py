"""Folders as runs, searches and sweeps leave them, made by hand: no test has to train for one."""

import json
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from phalanx.cage2.settings import red_agent_weights
from phalanx.cage2.workflow import NUM_ORDERS, POSITIONS, order_name
from phalanx.search.answer import answer
from phalanx.search.config import SearchConfig
from phalanx.search.exhaustive import visits_of
from phalanx.search.measured import Row
from phalanx.search.obedience import COLUMNS
from phalanx.training.config import TrainConfig
from phalanx.training.folder import MARK, RunFolder

# Records as runs write them, several entries a line: hence `fmt: skip` here and below.
UPDATE = (
    "update", "episodes", "steps", "return", "return_b_line", "return_meander", "learning_rate",
    "policy_loss", "value_loss", "entropy", "kl", "lag", "collect_s", "learn_s", "elapsed_s",
    "wall_time",
)  # fmt: skip
EPISODE = ("update", "env", "kind", "length", "return")


def make_run(
    path: Path,
    *,
    updates: int = 6,
    per_update: int = 20,
    state: str | None = "finished",
    level: float = -10.0,
    **settings: Any,
) -> Path:
    """A folder of a training run; state None: it was killed before it could sum up.

    Returns rise from `level - 5` to `level`.
    """
    folder = RunFolder(path)
    config = TrainConfig(
        **{"red_agent": "b_line=0.5,meander=0.5", "total_episodes": 120, **settings}
    )
    folder.write_config(config.as_dict())
    for update in range(1, updates + 1):
        mean = level - 5 * (1 - update / updates)
        episodes = [
            (update, k, ("b_line", "meander")[k % 2], 100, round(mean + (k % 5 - 2) * 0.5, 4))
            for k in range(per_update)
        ]
        folder.table("episodes").add(EPISODE, episodes)
        row = (
            update, update * per_update, update * per_update * 100, mean, mean + 0.1, mean - 0.1,
            1e-3, -0.01, 0.5 / update, 2.0 / update, 0.003, 0, 0.02, 0.05, 0.1 * update,
            "2026-01-01T00:00:00Z",
        )  # fmt: skip
        folder.table("updates").add(UPDATE, [row])
    if state is not None:
        folder.write_summary(run_summary(config, updates, per_update, state, level))
    folder.close()
    return path


def run_summary(
    config: TrainConfig, updates: int, per_update: int, state: str, level: float
) -> dict[str, Any]:
    episodes = updates * per_update
    return {
        "algorithm": config.algo, "env": config.env_name, "num_envs": config.num_envs, "notes": [],
        "state": state, "steps": episodes * 100, "episodes": episodes, "updates": updates,
        "seconds": 0.1 * updates, "elapsed_s": 0.1 * updates, "compile_s": 1.5,
        "steps_per_s": 20_000.0, "episodes_per_s": 200.0,
        "time_split": {"collect": 0.2, "learn": 0.5, "other": 0.3}, "peak_memory_mb": 400.0,
        "returns": {"all": {"mean": level, "stderr": 0.1, "low": level - 0.2, "high": level + 0.2,
                            "episodes": episodes}},
        "faults": 0, "seed": config.seed, "device": "cpu", "threads": 1, "lag": {"0": 20},
        "versions": {"phalanx": "1.0", "python": "3.11.2", "numpy": "2.4", "commit": "0123456789"},
        "machine": {"cores": "2", "processor": "a fast one", "system": "Linux"},
    }  # fmt: skip


def make_search(path: Path, *, state: str = "finished") -> Path:
    """A folder of a search that tried three orders."""
    folder = RunFolder(path, for_search=True)
    config = SearchConfig(total_episodes=10_000)
    folder.write_config(config.as_dict())
    visits = [
        {
            "iteration": k + 1, "shard": "1/1", "workflow": order,
            "order": order_name(order),
            "chosen_by": "named", "acquisition": 1.0, "posterior_mean": -20.0 if k else None,
            "posterior_std": 3.0 if k else None, "chance_of_passing": 0.5, "top_three": "0 1 2",
            "measured_return": mean, "stderr": 0.4, "compliance": 0.95 if passed else 0.5,
            "fixes_per_episode": 4.0, "share_without_fix": 0.0, "passed": passed,
            "stopped_by": "none", "trained_episodes": 0, "measured_episodes": 250,
            "episodes": 250, "total_episodes": 5000 + 250 * k, "model_updated": passed,
            "seconds": 1.0,
        }
        for k, (order, mean, passed) in enumerate(
            [(0, -25.0, True), (119, -18.0, True), (60, -15.0, False)]
        )
    ]  # fmt: skip
    figures = {"stderr": 0.2, "low": -18.5, "high": -17.5, "episodes": 4000, "compliance": 0.95}
    confirmed = [
        {"name": "winner", "workflow": 119, "order": visits[1]["order"], "mean": -18.0, **figures},
        {"name": "without workflows", "workflow": None, "order": None, "mean": -16.0, **figures},
    ]
    folder.write_summary({
        "state": state, "winner": 119, "order": visits[1]["order"],
        "winner_minus_baseline": {"mean": -2.0, "stderr": 0.1, "low": -2.2, "high": -1.8,
                                  "episodes": 4000},
        "confirmed": confirmed, "finals": [], "episodes": 10_000,
        "spent": {"school": 5000, "visits": 750}, "merged": [], "seconds": 50.0,
        "versions": {"phalanx": "1.0"}, "config": config.as_dict(), "visits": visits,
    })  # fmt: skip
    folder.close()
    return path


def make_decision(path: Path, red_agent: str = "b_line,meander", learners: int = 3) -> Path:
    """A folder of a search that has judged all orders: users must come after enterprise hosts."""
    config = SearchConfig(red_agent=red_agent, learners=learners)
    dice, rows = np.random.default_rng(1), []
    for learner, attacker in product(range(1, learners + 1), red_agent_weights(config.red_agent)):
        level = -10 + dice.normal() - 5 * (attacker == "meander")
        for number in (*range(NUM_ORDERS), None):
            first = 0 if number is None else int(POSITIONS[number, 1])
            can = number is None or POSITIONS[number, 1] < POSITIONS[number, 4]
            rows.append(Row(
                attacker=attacker, learner=learner, workflow=number, episodes=4000,
                mean=float(level - 0.5 * first + 0.2 * dice.normal()), stderr=0.05,
                paired_stderr=0.02, compliance=0.97 if can else 0.2, fixes_per_episode=5.0,
                share_without_fix=0.0, reverse_compliance=None if number is None else 0.1,
                disputed_fixes=None if number is None else 0.5,
                disputed_compliance=None if number is None else 0.9,
            ))  # fmt: skip
    visits = visits_of(config, rows, 300_000)
    make_search(path)
    decision = answer(config, visits, rows)
    (path / "decision.json").write_text(json.dumps(decision))
    summary = json.loads((path / "summary.json").read_text())
    summary |= {"visits": [asdict(visit) for visit in visits], "config": config.as_dict()}
    (path / "summary.json").write_text(json.dumps(summary))
    prices = [
        f"{asked},{learner},{-9 - asked - 0.1 * learner},{asked},{0.5 - asked / 2},{asked / 2},4"
        for asked in (0.0, 0.5, 0.9)
        for learner in range(1, learners + 1)
    ]
    (path / "obedience.csv").write_text("\n".join([",".join(COLUMNS), *prices]) + "\n")
    return path


def make_sweep(path: Path) -> Path:
    """A folder of a sweep over two learning rates and two seeds, one trial failed."""
    rows = [
        "trial,learning_rate,seed,state,mean,stderr,half_width,episodes,episodes_per_s,seconds,error,folder"
    ]
    for number, (rate, seed, mean) in enumerate(
        [("1e-3", 0, -10.0), ("1e-3", 1, -11.0), ("3e-4", 0, -14.0), ("3e-4", 1, None)]
    ):
        place = f"{number // 2}-learning_rate={rate}/seed={seed}"
        if mean is None:
            rows.append(f'{number},{rate},{seed},failed,,,,0,,1.0,"its process ended",{place}')
            continue
        rows.append(f"{number},{rate},{seed},finished,{mean},0.1,0.2,120,200,1.0,,{place}")
        make_run(path / place, level=mean, learning_rate=float(rate), seed=seed)
    (path / "sweep.csv").write_text("\n".join(rows) + "\n")
    summary = {
        "state": "finished", "trials": {"finished": 3, "failed": 1}, "seconds": 9.0,
        "combinations": [
            {"name": "learning_rate=1e-3", "folder": "0-learning_rate=1e-3", "seeds": [0, 1],
             "mean": -10.5, "half_width": 6.35, "episodes_per_s": 200.0},
            {"name": "learning_rate=3e-4", "folder": "1-learning_rate=3e-4", "seeds": [0],
             "mean": -14.0, "half_width": 0.2, "episodes_per_s": 200.0},
        ],
        "over": ["learning_rate=1e-3,3e-4"], "config": None, "cpus_per_trial": 1,
        "versions": {"phalanx": "1.0"},
    }  # fmt: skip
    (path / "summary.json").write_text(json.dumps(summary))
    return path


def mark(path: Path) -> Path:
    """A folder that was made for a run, and nothing more."""
    path.mkdir(parents=True)
    (path / ".lock").write_text(MARK)
    return path
