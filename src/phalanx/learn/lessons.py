"""Learn what a teacher does: steps that make its decisions likelier.

A decision is a row of PPO whose old probability is the present one, whose advantage is the weight
w of the lesson, and whose critic is left alone. There the ratio π / π_old is 1, and the gradient of
PPO's loss is that of -w log π: no other loss is needed, and any `Stepper` can take the step.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.learn.ppo import LossSettings, Stepper, to_rows
from phalanx.learn.rollout import Rollout, empty_rollout

UNBOUNDED = 1e9  # how far a probability may move: the ratio is 1 in any case


class Lessons(NamedTuple):
    """Decisions of a teacher, as the learner would see them; R rows."""

    obs: npt.NDArray[np.float32]  # [R, D]
    masks: npt.NDArray[np.bool_]  # [R, A]
    actions: npt.NDArray[np.uint8]  # [R]

    def by_output(self, actions: npt.NDArray[np.int64]) -> "Lessons":
        """For a learner whose outputs stand for these actions, ascending: their numbers instead."""
        numbers = np.searchsorted(actions, self.actions).astype(np.uint8)
        return Lessons(self.obs, np.ascontiguousarray(self.masks[:, actions]), numbers)


def teach(
    stepper: Stepper,
    lessons: Lessons,
    truth_size: int,
    loss: LossSettings,
    weight: float,
    chosen: npt.NDArray[np.int64],
) -> dict[str, float]:
    """A gradient step for each row of `chosen`, [steps, rows], which holds rows of the lessons.

    Returns how likely the decisions were before, as the mean of -log π, and how often taught ones
    were likelier than not.
    """
    loss = loss._replace(clip=UNBOUNDED, value_weight=0.0, entropy_weight=0.0)
    surprises, likely = [], []
    for some in chosen:
        rollout = _shown(lessons, some, truth_size)
        log_probs, values = stepper.evaluate(rollout)
        advantages = np.full_like(values, weight)
        stepper.load_rows(to_rows(rollout, log_probs, advantages, values))
        stepper.step(np.arange(len(some)), loss)
        surprises.append(-float(log_probs.mean()))
        likely.append(float((log_probs > np.log(0.5)).mean()))
    return {"teacher_loss": float(np.mean(surprises)), "teacher_likely": float(np.mean(likely))}


def _shown(lessons: Lessons, some: npt.NDArray[np.int64], truth_size: int) -> Rollout:
    """Some lessons as a rollout of one turn; the truth, which only the critic sees, is left out."""
    rollout = empty_rollout(1, lessons.obs[some], truth_size, lessons.masks.shape[1])
    rollout.obs[0], rollout.masks[0] = lessons.obs[some], lessons.masks[some]
    rollout.actions[0], rollout.truth[:] = lessons.actions[some], 0
    return rollout
