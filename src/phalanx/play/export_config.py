"""Settings of `phalanx export`."""

from dataclasses import dataclass, field
from pathlib import Path

from phalanx.agents import agent_path
from phalanx.errors import ConfigError
from phalanx.files import check_writable
from phalanx.settings.fields import checked
from phalanx.training.checkpoint import last_checkpoint


@checked
@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Write the policy of a run as one file that `phalanx evaluate` and Python can play."""

    run: Path = field(metadata={"positional": True})
    """run folder, checkpoint, or an agent that comes with phalanx"""
    file: Path = field(metadata={"positional": True})
    """where to write it, such as agent.npz"""

    def __post_init__(self) -> None:
        if not last_checkpoint(agent_path(self.run)).exists():
            raise ConfigError(f"there is no run or checkpoint {self.run}")
        if self.file.suffix != ".npz":
            raise ConfigError(f"the file must end in .npz, got {self.file}")
        check_writable(self.file)
