"""A trained policy as one small file: weights and settings, without games or optimiser."""

from pathlib import Path
from typing import Any

from phalanx.agents import agent_path
from phalanx.errors import CheckpointError
from phalanx.training.checkpoint import LEARNT, last_checkpoint, load_checkpoint, save_checkpoint

KEPT = ("config", "updates", "episodes", "steps")


def export(run: Path, file: Path) -> None:
    arrays, facts = load_checkpoint(last_checkpoint(agent_path(run)))
    learnt = {k: v for k, v in arrays.items() if k.startswith(LEARNT)}
    if not learnt:
        raise CheckpointError(f"{run} is no checkpoint of a training run (it has no weights)")
    kept: dict[str, Any] = {name: facts[name] for name in KEPT if name in facts}
    save_checkpoint(file, learnt, kept)
