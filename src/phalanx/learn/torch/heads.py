"""Any torch module as an actor: what its outputs mean, and how actions are drawn by them."""

import math

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from torch import Tensor, nn

from phalanx.arrays import Array
from phalanx.errors import ConfigError
from phalanx.learn.rollout import Floats

NEVER = -1e9  # added to the logit of an action that is masked out


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

    def evaluate(self, outputs: Tensor, masks: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        means, logs = outputs.chunk(2, dim=1)
        scaled = (actions - means) / logs.exp()
        log_probs = -(scaled**2 / 2 + logs + math.log(2 * math.pi) / 2).sum(dim=1)
        return log_probs, (logs + (1 + math.log(2 * math.pi)) / 2).sum(dim=1)


Head = Categorical | Gaussian


def head_for(space: spaces.Space[object]) -> Head:
    """How actions of this space are drawn."""
    if isinstance(space, spaces.Discrete):
        return Categorical()
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return Gaussian(int(np.prod(space.shape)))
    raise ConfigError(
        f"actions of {space} cannot be learnt: discrete (Discrete) and continuous (Box of floats) "
        "ones can; wrap the environment"
    )


class TorchActor:
    """Any torch module as an actor in a pool."""

    def __init__(self, module: nn.Module, head: Head) -> None:
        self.module, self.head, self.noise = module, head, head.noise
        self.device = next(module.parameters()).device

    def set_weights(self, weights: dict[str, Tensor]) -> None:
        self.module.load_state_dict(weights)

    def prepare(self, obs: Array) -> Array:
        return obs

    @torch.no_grad()
    def forward(
        self, obs: Array, truth: npt.NDArray[np.float32] | None = None
    ) -> tuple[Tensor, Floats]:
        extra = torch.zeros(len(obs), 0) if truth is None else torch.from_numpy(truth)
        outputs, values = self.module(self._to(obs), extra.to(self.device))
        return outputs, values.cpu().numpy()

    @torch.no_grad()
    def draw(
        self, outputs: Tensor, masks: npt.NDArray[np.bool_], noise: Array
    ) -> tuple[Array, Floats]:
        actions, log_probs = self.head.draw(outputs, self._to(masks), self._to(noise))
        return actions.cpu().numpy(), log_probs.cpu().numpy()

    def best(self, outputs: Tensor, masks: npt.NDArray[np.bool_]) -> Array:
        return self.head.best(outputs, self._to(masks)).cpu().numpy()

    def _to(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self.device)
