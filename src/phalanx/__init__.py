"""Train cyber-defence agents at the speed of the CPU."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from phalanx.cage2.registration import register

if TYPE_CHECKING:
    from phalanx.envs.making import make_pool
    from phalanx.play.evaluate import evaluate
    from phalanx.play.plan import load_defender
    from phalanx.show.replay.replay import replay
    from phalanx.training.config import TrainConfig
    from phalanx.training.folder import read_table
    from phalanx.training.loop import train
    from phalanx.training.saved_run import open_run

__version__ = "0.1.0"
__all__ = [
    "TrainConfig",
    "__version__",
    "evaluate",
    "load_defender",
    "make_pool",
    "open_run",
    "read_table",
    "replay",
    "train",
]

_HOMES = {
    "TrainConfig": "phalanx.training.config",
    "evaluate": "phalanx.play.evaluate",
    "load_defender": "phalanx.play.plan",
    "make_pool": "phalanx.envs.making",
    "open_run": "phalanx.training.saved_run",
    "read_table": "phalanx.training.folder",
    "replay": "phalanx.show.replay.replay",
    "train": "phalanx.training.loop",
}

register()


def __getattr__(name: str) -> Any:
    """What takes long to import comes when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'phalanx' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
