"""Fill rollouts of CAGE-2 with a policy; here the compiled way, in `plain.py` any torch module."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rule import announce_compilation
from phalanx.cage2.scenario import NUM_ACTIONS
from phalanx.learn.collect import Shaping, collect_blocks
from phalanx.learn.policy import Policy
from phalanx.learn.rollout import Arrays, Rollout, empty_rollout


class Sampler(Protocol):
    """Whoever can fill a rollout with the newest weights."""

    batch: Batch

    def collect(self, shaping: Shaping) -> Rollout: ...

    def save(self) -> Arrays: ...

    def load(self, arrays: Arrays) -> None: ...


class Cage2Sampler:
    """Networks of CAGE-2 and the rollout that they fill; what both ways of playing share.

    useful: bool [145], actions that the policy may choose from.
    condition: float32 [N, C], put after every observation of network i: what it is told to do.
    """

    def __init__(
        self,
        batch: Batch,
        turns: int,
        *,
        truth_size: int,
        useful: npt.NDArray[np.bool_],
        condition: npt.NDArray[np.float32],
    ) -> None:
        self.batch, self.useful = batch, useful
        self.condition = np.ascontiguousarray(condition, np.float32)
        first = np.hstack([batch.shown.obs.astype(np.float32), self.condition])
        self.rollout = empty_rollout(turns, first, truth_size, NUM_ACTIONS)

    def save(self) -> Arrays:
        """The games under way, as plain numbers."""
        saved = {name: _plain(array) for name, array in self.batch.save().items()}
        return {**saved, "next_obs": self.rollout.next_obs}

    def load(self, arrays: Arrays) -> None:
        """Go on from what `save` gave."""
        saved = dict(arrays)
        for name, own in (("nets", self.batch.nets), ("memories", self.batch.memories)):
            saved[name] = saved[name].view(own.dtype).reshape(own.shape)
        self.batch.restore(saved)
        self.rollout.next_obs[:] = arrays["next_obs"]


class CompiledSampler(Cage2Sampler):
    """Plays with compiled networks: a whole rollout is one call per thread."""

    def __init__(self, batch: Batch, policy: Policy, turns: int, **options: Any) -> None:
        super().__init__(batch, turns, truth_size=policy.truth_size, **options)
        announce_compilation(collect_blocks)
        self.policy = policy

    def collect(self, shaping: Shaping) -> Rollout:
        batch, policy = self.batch, self.policy
        batch.crew.run(
            collect_blocks,
            (
                batch.nets, batch.memories, batch.history, batch.odds, self.useful, self.condition,
                shaping, policy.actor, policy.actor_sizes, policy.critic, policy.critic_sizes,
                self.rollout,
            ),
        )  # fmt: skip
        return self.rollout


def _plain(array: Any) -> Any:
    """Records as bytes: files hold plain numbers only."""
    return array.view(np.uint8) if array.dtype.names else array
