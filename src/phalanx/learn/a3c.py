"""A3C (Mnih et al., 2016): workers that each play, and add their gradients to shared weights.

Each rollout gives one step: policy gradient, critic and entropy. While a worker played, others may
have changed the weights: its step is computed at the newest ones, and each action's advantage is
weighted by the ratio of the newest policy and the one that acted, bounded as in PPO.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from phalanx.learn.ppo import STATS, LossSettings, Stepper, advantage_rows
from phalanx.learn.rollout import Arrays, Rollout
from phalanx.learn.shared import UPDATES, Shared


@dataclass(frozen=True, kw_only=True)
class A3CSettings:
    """What decides an update."""

    gae_lambda: float
    loss: LossSettings


class SharedStepper(Stepper, Protocol):
    """A stepper whose weights may lie in shared memory."""

    steps: int

    def share(self, shared: Shared, bring: bool) -> None: ...


class A3C:
    """One of many that improve the same weights: as `PPO`, `update(rollout, rate, …)`.

    bring: lay the stepper's weights into the shared block, instead of taking those that are there.
    """

    def __init__(
        self, stepper: SharedStepper, settings: A3CSettings, shared: Shared, bring: bool
    ) -> None:
        self.stepper, self.settings, self.shared = stepper, settings, shared
        stepper.share(shared, bring)

    def update(self, rollout: Rollout, rate: float, entropy_weight: float) -> dict[str, float]:
        """One step on the whole rollout, written to the shared weights as it is computed."""
        rows, explained = advantage_rows(rollout, self.settings.gae_lambda, normalised=False)
        loss = self.settings.loss._replace(rate=rate, entropy_weight=entropy_weight)
        self.stepper.load_rows(rows)
        self.stepper.steps = self.shared.begin_update()
        stats, norm = self.stepper.step(np.arange(rollout.rewards.size), loss)
        metrics = dict(zip(STATS, (stats / rollout.rewards.size).tolist(), strict=True))
        return metrics | {"explained_variance": explained, "grad_norm": norm, "epochs": 1.0}

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        self.stepper.steps = self.shared.updates
        return self.stepper.save()

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        self.stepper.load(arrays, facts)
        self.stepper.share(self.shared, True)
        self.shared.counters[UPDATES] = facts["adam_steps"]
