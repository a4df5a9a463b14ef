"""A teacher's decisions in a run: played once, kept as actions, and seen as the learner sees them.

The game is the same for equal dice and actions. So a checkpoint holds the actions alone, a byte for
each turn: continued, a run plays them again and has its lessons back, whoever the teacher was.
"""

from collections.abc import Callable
from importlib import import_module

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array, Arrays
from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.masks import effective_actions
from phalanx.cage2.rules.scenario import ACTION_MONITOR, ACTION_SLEEP, NUM_ACTIONS
from phalanx.errors import ConfigError
from phalanx.importing import GIVEN
from phalanx.learn.lessons import Lessons, teach
from phalanx.learn.ppo import Learner
from phalanx.machine import total_memory
from phalanx.training.config import TrainConfig
from phalanx.training.on_cage2 import chosen_actions, leaves_out_vain, policy_sizes
from phalanx.training.recipe import game_of
from phalanx.training.teacher_config import TAUGHT

OPENER = "phalanx.play.lessons:open_teacher"  # imported when there is a teacher
ALONE = 5  # its dice, and those that choose among its decisions, are nobody else's

Actions = npt.NDArray[np.uint8]  # [T, N]
Teacher = Callable[[], Actions]


def open_teacher(config: TrainConfig, given: object = None) -> Teacher | None:
    """Who will play the lessons of a run: given in Python, or named by its settings.

    given: any defender that `phalanx.evaluate` takes.
    """
    if given is None and not is_taught(config):
        return None
    if not TAUGHT.holds(config):
        raise ConfigError(f"a teacher has no effect here, it is for {TAUGHT.what}; leave it out")
    size = config.teacher_episodes * config.horizon * (4 * policy_sizes(config)["obs_size"] + 146)
    if size > total_memory() / 2:
        raise ConfigError(
            f"{config.teacher_episodes} episodes of a teacher take {size / 1e9:,.0f} GB; this "
            f"machine has {total_memory() / 1e9:,.0f}; give fewer --teacher-episodes"
        )
    module, _, opener = OPENER.partition(":")
    teacher: Teacher = getattr(import_module(module), opener)(config, given)
    return teacher


def is_taught(config: TrainConfig) -> bool:
    return config.teacher is not None and TAUGHT.holds(config)


def name_of(given: object) -> str:
    """A teacher in words, as settings have it; one that was given in Python is not found again."""
    if isinstance(given, str):
        return given
    return f"{GIVEN}{getattr(given, '__name__', type(given).__name__)}"


def teacher_seed(config: TrainConfig) -> int:
    """The seed of a teacher's episodes, which are not the run's own."""
    return int(np.random.SeedSequence([ALONE, config.seed]).generate_state(1, np.uint64)[0])


class Taught:
    """The lessons of a run, and how they are learnt."""

    def __init__(self, config: TrainConfig, outputs: npt.NDArray[np.int64]) -> None:
        """outputs: the action of each of the learner's outputs."""
        self.config, self.outputs = config, outputs
        self.actions: Actions = np.zeros((config.horizon, config.teacher_episodes), np.uint8)
        self.lessons: Lessons | None = None

    def learn_from(self, actions: Actions) -> None:
        if actions.shape != self.actions.shape or actions.max() >= NUM_ACTIONS:
            raise ValueError("the teacher's actions are none of this game")
        self.actions = actions
        self.lessons = watch(self.config, actions).by_output(self.outputs)

    def update(
        self, learner: Learner, rate: float, progress: float, update: int
    ) -> dict[str, float]:
        """The steps of one update; what they gave, for updates.csv."""
        c, s = self.config, learner.settings
        assert self.lessons is not None
        weight = c.teacher_weight + (c.final_teacher_weight - c.teacher_weight) * progress
        dice = np.random.default_rng([c.seed, ALONE, update])
        shape = (c.teacher_steps, min(s.minibatch_size, len(self.lessons.actions)))
        chosen = dice.integers(len(self.lessons.actions), size=shape)
        loss = s.loss._replace(rate=rate)
        truth_size = policy_sizes(c)["truth_size"]
        figures = teach(learner.stepper, self.lessons, truth_size, loss, weight, chosen)
        return {"teacher_weight": weight, **figures}

    def save(self) -> Arrays:
        return {"lessons": self.actions}

    def load(self, arrays: Arrays) -> None:
        self.learn_from(arrays["lessons"])


def watch(config: TrainConfig, actions: Actions) -> Lessons:
    """Play a teacher's actions again, and keep what the learner would have seen.

    Left out is what the learner may not do; Monitor, and what is in vain, is the same as Sleep.
    """
    turns, episodes = actions.shape
    seed, threads = teacher_seed(config), config.num_threads
    batch = Batch(episodes, **game_of(config), seed=seed, num_threads=threads, same_step=False)
    useful = chosen_actions(config, batch.worlds)
    told = np.array(config.condition, np.float32)
    condition = np.tile(told, (episodes, 1))
    parts: list[tuple[Array, ...]] = []
    for turn in range(turns):
        masks, played = batch.action_masks() & useful, actions[turn].astype(np.int64)
        is_idle = ~useful[played] & (played == ACTION_MONITOR)
        if leaves_out_vain(config):
            can_do = effective_actions(batch.worlds, batch.shown.obs)
            masks, is_idle = masks & can_do, is_idle | ~can_do[np.arange(episodes), played]
        known = np.where(is_idle, ACTION_SLEEP, played)
        can = masks[np.arange(episodes), known]
        obs = np.hstack([batch.shown.obs, condition])
        parts.append((obs[can], masks[can], known[can].astype(np.uint8)))
        batch.play(played)
    batch.close()
    obs, masks, known = (np.concatenate(part) for part in zip(*parts, strict=True))
    if len(known) == 0:
        raise ConfigError("the teacher does nothing that the learner may do; give --actions all")
    return Lessons(obs, masks, known)
