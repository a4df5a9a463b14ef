"""A trained policy as one small file: weights and settings, without games or optimiser."""

from dataclasses import dataclass, field
from pathlib import Path

from phalanx.agents import agent_path
from phalanx.cage2.settings import prior_weights
from phalanx.errors import CheckpointError, ConfigError
from phalanx.files import check_writable
from phalanx.settings.fields import checked
from phalanx.training.checkpoint import LEARNT, last_checkpoint, load_checkpoint, save_checkpoint

KEPT = ("config", "scenario", "updates", "episodes", "steps")


@checked
@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Write the policy of a run as one file that `phalanx evaluate` and Python can play."""

    run: Path = field(metadata={"positional": True})
    """run folder, checkpoint, or an agent that comes with phalanx"""
    file: Path = field(metadata={"positional": True})
    """where to write it, such as agent.npz"""
    prior: str | None = None
    """attackers that its belief expects from now on, such as b_line=0.5,meander=0.4,coin=0.1; those
    of its training if not given"""

    def __post_init__(self) -> None:
        if self.prior is not None:
            prior_weights(self.prior)
        if not last_checkpoint(agent_path(self.run)).exists():
            raise ConfigError(f"there is no run or checkpoint {self.run}")
        if self.file.suffix != ".npz":
            raise ConfigError(f"the file must end in .npz, got {self.file}")
        check_writable(self.file)


def export(run: Path, file: Path, prior: str | None = None) -> None:
    """prior: whom the policy's belief is to expect, instead of those of its training."""
    arrays, facts = load_checkpoint(last_checkpoint(agent_path(run)))
    learnt = {k: v for k, v in arrays.items() if k.startswith(LEARNT)}
    if not learnt:
        raise CheckpointError(f"{run} is no checkpoint of a training run (it has no weights)")
    kept = {name: facts[name] for name in KEPT if name in facts}
    if prior is not None:
        if kept["config"].get("observation") != "belief":
            raise ConfigError(f"the policy of {run} sees no belief; leave out --prior")
        kept["config"] = {**kept["config"], "prior": prior}
    save_checkpoint(file, learnt, kept)
