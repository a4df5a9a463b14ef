"""Settings of `phalanx sweep`, and the trials that they ask for."""

import math
import re
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, NamedTuple

from phalanx.configs import config_path
from phalanx.errors import ConfigError
from phalanx.machine import count_cores
from phalanx.settings.fields import FolderName, Within, checked, setting_named, without_effect
from phalanx.settings.flags import from_file, from_words
from phalanx.training.config import TrainConfig
from phalanx.trust import IN_THE_GAME, check_cluster, check_named

INSTEAD = {
    "seed": "--seeds",
    "num_threads": "--cpus-per-trial",
    "name": "--name",
    "output_dir": "--output-dir",
    "config": "the config file before --over",
    "resume": "the run folder to phalanx train --resume",
}
LONGEST_NAME = 100  # of a folder, in characters
MOST_TRIALS = 10_000


class Trial(NamedTuple):
    """One training run of a sweep."""

    number: int
    chosen: dict[str, str]
    """the values of what is varied, as they were written"""
    combination: str
    """the same in words, such as `learning_rate=1e-3 hidden=64x64`"""
    config: TrainConfig

    @property
    def path(self) -> Path:
        return self.config.output_dir / str(self.config.name)


@checked
@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """Train once with every combination of some settings' values; print which was best.

    Every trial is an ordinary run of phalanx train, in a process of its own under Ray Tune, with a
    run folder of its own. One that fails does not end the sweep. Ctrl-C lets the running trials
    save and stop (phalanx train --resume continues one), begins no others, and reports.
    """

    base: Path | None = field(default=None, metadata={"positional": True, "metavar": "CONFIG"})
    """settings that all trials share: a YAML file, or a name such as quick, as for phalanx train
    --config; its defaults if not given"""
    over: tuple[str, ...] = ()
    """what is varied, as name=value,value,... for any settings of phalanx train; layers are 64x64,
    and a value with commas stands in brackets: 'red_agent=b_line,[b_line=0.5,meander=0.5]'"""
    seeds: Annotated[tuple[int, ...], Within(0, 2**64 - 1)] = ()
    """every combination is trained once with each of these; with the config's own if not given"""
    cpus_per_trial: Annotated[int, Within(1, 1024)] = 1
    """cores of a trial: its threads, or its workers where num_workers is auto"""
    max_concurrent: Annotated[int | None, Within(1, 10_000)] = None
    """trials side by side; as many as there are cores for if not given"""
    ray_address: str | None = None
    """auto or HOST:PORT of a running Ray that sees the same files; one of its own if not given"""
    output_dir: Path = Path("runs")
    """where the sweep's folder is made"""
    name: Annotated[str | None, FolderName()] = None
    """name of the sweep's folder; the time if not given"""

    def __post_init__(self) -> None:
        if self.name is None:
            object.__setattr__(self, "name", time.strftime("sweep-%Y%m%d-%H%M%S"))
        if not self.over:
            raise ConfigError("nothing to vary: give --over, such as learning_rate=1e-3,3e-4")
        if self.ray_address is None and self.cpus_per_trial > count_cores():
            raise ConfigError(
                f"cpus_per_trial must be at most {count_cores()}, the cores of this machine, got "
                f"{self.cpus_per_trial}"
            )
        if not re.fullmatch(r"auto|[^/\s]+:\d+", self.ray_address or "auto"):
            raise ConfigError(f"ray_address must be auto or HOST:PORT, got {self.ray_address!r}")
        if len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"a seed is given twice in --seeds {','.join(map(str, self.seeds))}")
        count = math.prod(map(len, self.values.values())) * max(1, len(self.seeds))
        if count > MOST_TRIALS:
            raise ConfigError(f"that makes {count:,} trials, more than {MOST_TRIALS:,}; vary less")
        _ = self.trials  # what cannot be trained is refused here
        if self.path.exists():
            raise ConfigError(f"{self.path} exists already; give another --name")

    @property
    def path(self) -> Path:
        """The sweep's folder."""
        return self.output_dir / str(self.name)

    @cached_property
    def values(self) -> dict[str, dict[str, object]]:
        """The values of each setting that is varied, by how they were written."""
        values: dict[str, dict[str, object]] = {}
        for word in self.over:
            written, equals, texts = word.partition("=")
            if not equals:
                raise ConfigError(
                    f"--over {word}: give name=value,value,...; a config file comes before --over"
                )
            name = _checked_name(written)
            if name in values:
                raise ConfigError(f"--over: {name} is given twice; put its values into one list")
            values[name] = {text: from_words(TrainConfig, name, text) for text in _split(texts)}
            if not values[name]:
                raise ConfigError(f"--over {name}= needs at least one value")
            if len(set(values[name].values())) < len(_split(texts)):
                raise ConfigError(f"--over {word}: a value is given twice")
        return values

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """Every combination with every seed, in order."""
        shared = {} if self.base is None else from_file(TrainConfig, config_path(self.base))
        also = (*IN_THE_GAME, "teacher")
        check_named(shared, self.values, self.base or "", "--over {}={}", also=also)
        check_cluster(shared, {"ray_address": self.ray_address}, self.base or "")
        for name in ("resume", "config", "name", "output_dir"):
            shared.pop(name, None)
        varied = [name for name, values in self.values.items() if len(values) > 1]
        trials: list[Trial] = []
        for i, texts in enumerate(product(*self.values.values())):
            chosen = dict(zip(self.values, texts, strict=True))
            combination = " ".join(f"{name}={text}" for name, text in chosen.items())
            settings = shared | {name: self.values[name][text] for name, text in chosen.items()}
            words = [str(i), *(f"{name}={chosen[name]}" for name in varied)]
            folder = re.sub(r"[^\w.=+-]+", "_", "-".join(words))[:LONGEST_NAME]
            try:
                config = self._limited(TrainConfig(**settings))
                if idle := without_effect(config).keys() & varied:
                    raise ConfigError(f"{min(idle)} has no effect there; do not vary it")
            except ConfigError as error:
                raise ConfigError(f"{combination}: {error}") from None
            for seed in self.seeds or (config.seed,):
                mine = replace(
                    config, seed=seed, output_dir=self.path / folder, name=f"seed={seed}"
                )
                trials.append(Trial(len(trials), chosen, combination, mine))
        return tuple(trials)

    @property
    def combinations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(trial.combination for trial in self.trials))

    def _limited(self, config: TrainConfig) -> TrainConfig:
        """A config that uses a trial's cores and no others."""
        config = replace(config, num_threads=self.cpus_per_trial)
        if config.env != "cage2" and config.num_workers == "auto":
            alone = self.cpus_per_trial == 1 and config.algo != "a3c"
            config = replace(config, num_workers=0 if alone else self.cpus_per_trial)
        return config


def _checked_name(written: str) -> str:
    """The setting that is to be varied."""
    try:
        name = setting_named(TrainConfig, written)
    except ConfigError as error:
        raise ConfigError(f"--over: {error}") from None
    if name in INSTEAD:
        raise ConfigError(f"--over cannot vary {name}; give {INSTEAD[name]}")
    return name


def _split(texts: str) -> list[str]:
    """`a,[b,c]` as `a` and `b,c`."""
    parts = re.findall(r"\[[^\]]*\]|[^,]+", texts)
    return [part.removeprefix("[").removesuffix("]").strip() for part in parts]
