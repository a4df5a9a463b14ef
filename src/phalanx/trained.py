"""A trained policy from a run folder or checkpoint, as a defender that anyone can play."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.observation import HISTORY_SIZE, NUM_BITS
from phalanx.cage2.scenario import NUM_ACTIONS, useful_actions
from phalanx.checkpoint import last_checkpoint, load_checkpoint
from phalanx.errors import CheckpointError
from phalanx.learn.collect import TRUTH_SIZE
from phalanx.learn.policy import Policy


class TrainedDefender:
    """Plays the most likely actions of a policy, or draws them.

    horizon: that of its training, which its history observations are to show.
    """

    def __init__(
        self, policy: Policy, observation: str, useful: npt.NDArray[np.bool_], horizon: int
    ) -> None:
        self.policy, self.observation, self.useful = policy, observation, useful
        self.horizon = horizon
        self._random: np.random.Generator | None = None
        self._width = 1

    def sampling(self, seed: int | Sequence[int], width: int) -> "TrainedDefender":
        """The same policy, drawing its actions; for `width` networks, as `RandomDefender`."""
        other = TrainedDefender(self.policy, self.observation, self.useful, self.horizon)
        other._random, other._width = np.random.default_rng(seed), width
        return other

    def act(
        self, obs: npt.NDArray[Any], alerts: npt.NDArray[np.int8], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        logits = np.where(masks & self.useful, self.policy.logits(obs), -np.inf)
        if self._random is not None:
            size = max(len(obs), self._width)
            logits = logits + self._random.gumbel(size=(size, NUM_ACTIONS))[: len(obs)]
        return logits.argmax(axis=1)


def load_defender(path: Path) -> TrainedDefender:
    """The policy of a run folder's last checkpoint, or of a checkpoint file."""
    arrays, facts = load_checkpoint(last_checkpoint(path))
    try:
        config = facts["config"]
        observation = str(config["observation"])
        policy = Policy(
            {"bits": NUM_BITS, "history": HISTORY_SIZE}[observation],
            NUM_ACTIONS,
            hidden=tuple(config["hidden"]),
            truth_size=TRUTH_SIZE if config["critic_truth"] else 0,
            seed=0,
        )
        if arrays["theta"].shape != policy.theta.shape or arrays["theta"].dtype != np.float32:
            raise CheckpointError(f"{path}: the weights do not fit the settings beside them")
        policy.theta[:] = arrays["theta"]
        useful = useful_actions() if config["actions"] == "useful" else np.ones(NUM_ACTIONS, bool)
        return TrainedDefender(policy, observation, useful, int(config["horizon"]))
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is no checkpoint of a training run ({error})") from None
