"""Who plays, who learns, and where they compute: what every builder makes."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from phalanx.errors import MissingError
from phalanx.importing import find_named
from phalanx.learn.a3c import A3CSettings
from phalanx.learn.impala import Impala, ImpalaSettings
from phalanx.learn.normalise import Intake
from phalanx.learn.ppo import PPO, LossSettings, PPOSettings, Stepper
from phalanx.machine import count_cores
from phalanx.training.config import TrainConfig
from phalanx.training.extension import Extension
from phalanx.training.sources import Ahead, InStep

Settings = TypeVar("Settings", PPOSettings, ImpalaSettings, A3CSettings)
Network = Callable[[int, int, int], Any]  # (obs_size, truth_size, num_actions) -> torch module


@dataclass(frozen=True)
class Recipe:
    """Who plays, who learns, and where they compute."""

    source: Any
    """where rollouts come from: in step or ahead"""
    learner: Any
    device: str
    threads: int
    kinds: tuple[str, ...]
    """of episodes, that are reported apart: the attackers of CAGE-2"""
    note: str = ""
    """what was measured and chosen at the start"""
    leave: Callable[[], None] = lambda: None
    """what is to be done after the samplers are closed"""
    settled: TrainConfig | None = None
    """the settings, where some were left to the environment"""
    num_workers: int | None = None
    """processes that step them, where there are such"""
    extension: Extension = field(default_factory=Extension)
    """what the game adds"""
    intake: Intake | None = None
    """statistics of what is seen and rewarded, where that is normalised"""

    @property
    def sampler(self) -> Any:
        return self.source.samplers[0]

    def close(self) -> None:
        try:
            self.source.close()
        finally:
            self.leave()


def plain_is_asked(config: TrainConfig, network: Network | None) -> bool:
    """Whether something needs plain torch instead of the compiled networks."""
    asked = config.learner == "torch" or config.compile or config.device == "cuda"
    return asked or network is not None


def import_torch(config: TrainConfig) -> None:
    """Make torch ready: one thread per operation, since slices go to threads of our own."""
    try:
        import torch
    except ImportError:
        raise MissingError("this needs torch: pip install 'phalanx[torch]'") from None
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)


def count_threads(config: TrainConfig) -> int:
    return count_cores() if config.num_threads == "auto" else int(config.num_threads)


def is_ahead(config: TrainConfig) -> bool:
    # Rows that are not waited for are an update old already: overlapping would make them too old.
    return config.algo == "impala" or (config.overlap and config.wait_for == "all")


def open_source(config: TrainConfig, samplers: list[Any]) -> InStep | Ahead:
    if is_ahead(config):
        return Ahead(samplers, config.sync_every)
    return InStep(samplers[0], config.sync_every)


def open_learner(config: TrainConfig, stepper: Stepper) -> PPO | Impala:
    if config.algo == "impala":
        return Impala(stepper, settings_of(ImpalaSettings, config), config.seed)
    return PPO(stepper, settings_of(PPOSettings, config), config.seed)


def find_network(name: str | None) -> Network | None:
    """`module:factory`, where factory(obs_size, truth_size, num_actions) makes a torch module."""
    return None if name is None else find_named("--network", name)


def settings_of(kind: type[Settings], config: TrainConfig) -> Settings:
    """The settings of an algorithm and of its loss, all by the names that they have in a run's."""
    loss = {name: getattr(config, name) for name in LossSettings._fields if hasattr(config, name)}
    own = {f.name: getattr(config, f.name) for f in fields(kind) if f.name != "loss"}
    return kind(**own, loss=LossSettings(**loss))
