"""What a game adds to training: its own rewards, columns and figures; most games add nothing."""

from collections.abc import Sequence

from phalanx.arrays import Arrays
from phalanx.learn.rollout import Rollout, Sampler
from phalanx.training.config import TrainConfig
from phalanx.training.update_record import Episode


class Extension:
    """Adds nothing. `cage2_extension.py` has what the compiled CAGE-2 adds."""

    episode_columns: tuple[str, ...] = ()
    """of episodes.csv"""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.kinds: tuple[str, ...] = (config.env_name,)  # of episodes, that are reported apart

    def shaping(self, progress: float) -> object:
        """How the learner's rewards differ from the game's, for samplers that know it."""
        return None

    def before_update(self, samplers: Sequence[Sampler], progress: float) -> None:
        """Tell samplers what is new."""

    def after_update(self, rollout: Rollout, progress: float) -> None:
        """Learn from what was played."""

    def figures(self, episodes: Sequence[Episode]) -> dict[str, object]:
        """What updates.csv says of the episodes that ended."""
        return {}

    def schedules(self, progress: float) -> dict[str, float]:
        """... and of what depends on the run's progress."""
        return {}

    def episode_row(self, episode: Episode) -> tuple[object, ...]:
        """Values of `episode_columns`."""
        return ()

    def summary(self, episodes: Sequence[Episode]) -> dict[str, object]:
        """What summary.json says of the last episodes."""
        return {}

    def in_words(self, episodes: Sequence[Episode]) -> dict[str, str]:
        """The same for whoever watches: lines by their label."""
        return {}

    def save(self) -> Arrays:
        """Its part of a checkpoint."""
        return {}

    def load(self, arrays: Arrays) -> None:
        """Go on from what `save` gave."""
