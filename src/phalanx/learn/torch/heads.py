"""What a network's outputs mean: probabilities of discrete actions, or a normal distribution."""

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

NEVER = -1e9  # added to the logit of an action that is masked out


class Head(Protocol):
    """Draws actions from outputs, and says how likely given ones were."""

    def noise(self, random: np.random.Generator, rows: int) -> npt.NDArray[np.float32]:
        """The chance that `draw` turns into actions."""
        ...

    def draw(self, outputs: Tensor, masks: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions and their log-probabilities."""
        ...

    def best(self, outputs: Tensor, masks: Tensor) -> Tensor:
        """The most likely actions."""
        ...

    def evaluate(self, outputs: Tensor, masks: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of actions taken, and entropies."""
        ...


def masked_log_softmax(logits: Tensor, masks: Tensor) -> Tensor:
    return torch.log_softmax(logits + NEVER * ~masks, dim=1)


class Categorical:
    """One of A actions by logits [rows, A]."""

    def noise(self, random: np.random.Generator, rows: int) -> npt.NDArray[np.float32]:
        return random.random(rows, np.float32)

    def draw(self, outputs: Tensor, masks: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """By inverse distribution from one uniform number a row."""
        log_probs = masked_log_softmax(outputs, masks)
        shares = log_probs.exp().cumsum(dim=1)
        left = noise[:, None] * shares[:, -1:]
        actions = (shares <= left).sum(dim=1).clamp(max=outputs.shape[1] - 1)
        return actions, log_probs.gather(1, actions[:, None])[:, 0]

    def best(self, outputs: Tensor, masks: Tensor) -> Tensor:
        return (outputs + NEVER * ~masks).argmax(dim=1)

    def evaluate(self, outputs: Tensor, masks: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        log_probs = masked_log_softmax(outputs, masks)
        entropies = -(log_probs.exp() * log_probs.clamp(min=-80)).sum(dim=1)
        return log_probs.gather(1, actions.long()[:, None])[:, 0], entropies


class Gaussian:
    """A point by independent normal distributions: means and logs of deviations [rows, 2 A].

    Actions are in units of the space's half width around its middle; the sampler scales and clips
    them for the environment, and learns from what was drawn.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def noise(self, random: np.random.Generator, rows: int) -> npt.NDArray[np.float32]:
        return random.standard_normal((rows, self.size), np.float32)

    def draw(self, outputs: Tensor, masks: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        means, logs = outputs.chunk(2, dim=1)
        actions = means + logs.exp() * noise
        return actions, self.evaluate(outputs, masks, actions)[0]

    def best(self, outputs: Tensor, masks: Tensor) -> Tensor:
        return outputs.chunk(2, dim=1)[0]

    def evaluate(self, outputs: Tensor, masks: Tensor, actions: Any) -> tuple[Tensor, Tensor]:
        means, logs = outputs.chunk(2, dim=1)
        scaled = (actions - means) / logs.exp()
        log_probs = -(scaled**2 / 2 + logs + math.log(2 * math.pi) / 2).sum(dim=1)
        return log_probs, (logs + (1 + math.log(2 * math.pi)) / 2).sum(dim=1)
