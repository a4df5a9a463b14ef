"""Networks for any Gymnasium environment: an MLP for vectors, a small CNN for images."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from phalanx.errors import ConfigError
from phalanx.learn.compiled.actor import is_image
from phalanx.learn.torch.heads import Categorical, Gaussian, Head


def head_for(space: spaces.Space[Any]) -> Head:
    """How actions of this space are drawn."""
    if isinstance(space, spaces.Discrete):
        return Categorical()
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return Gaussian(int(np.prod(space.shape)))
    raise ConfigError(
        f"actions of {space} cannot be learnt: discrete (Discrete) and continuous (Box of floats) "
        "ones can; wrap the environment"
    )


def count_outputs(space: Any) -> int:
    return int(space.n) if isinstance(space, spaces.Discrete) else int(np.prod(space.shape))


class EnvNetwork(nn.Module):
    """Actor and critic for the spaces of an environment.

    outputs, values = network(obs, truth)      # obs [rows, *shape]; truth is not looked at
    """

    def __init__(
        self, obs_space: spaces.Space[Any], action_space: spaces.Space[Any],
        hidden: tuple[int, ...], deviation: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(obs_space, spaces.Box):
            raise ConfigError(
                f"observations of {obs_space} cannot be learnt from: vectors and images (Box) can; "
                "wrap the environment (gymnasium.wrappers.FlattenObservation)"
            )
        self.is_image = is_image(obs_space.shape)
        self.scale = 255.0 if obs_space.dtype == np.uint8 else 1.0
        outputs = count_outputs(action_space)
        if self.is_image:
            self.eyes = _eyes(obs_space.shape)
            width = self.eyes(torch.zeros(1, *_channels_first(obs_space.shape))).shape[1]
            hidden = hidden[-1:]
        else:
            width = int(np.prod(obs_space.shape))
        self.actor = _mlp((width, *hidden, outputs), 0.01)
        self.critic = _mlp((width, *hidden, 1), 1.0)
        is_point = not isinstance(action_space, spaces.Discrete)
        logs = torch.full((outputs,), math.log(deviation))
        self.log_std = nn.Parameter(logs) if is_point else None

    def forward(self, obs: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
        x = obs.float() / self.scale  # the one place where pixels are scaled
        x = self.eyes(_to_channels_first(x)) if self.is_image else x.flatten(1)
        outputs = self.actor(x)
        if self.log_std is not None:
            outputs = torch.cat([outputs, self.log_std.expand_as(outputs)], dim=1)
        return outputs, self.critic(x)[:, 0]


def _mlp(sizes: tuple[int, ...], last_gain: float) -> nn.Sequential:
    parts: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layer = nn.Linear(n_in, n_out)
        nn.init.orthogonal_(layer.weight, 2**0.5)
        nn.init.zeros_(layer.bias)
        parts += [layer, nn.Tanh()]
    last = parts[-2]
    assert isinstance(last, nn.Linear)
    nn.init.orthogonal_(last.weight, last_gain)
    return nn.Sequential(*parts[:-1])


def _eyes(shape: tuple[int, ...]) -> nn.Sequential:
    """Three convolutions that make an image of 64 x 64 a few hundred numbers."""
    channels = _channels_first(shape)[0]
    return nn.Sequential(
        nn.Conv2d(channels, 16, 8, 4, padding=2), nn.ReLU(),
        nn.Conv2d(16, 32, 4, 2, padding=1), nn.ReLU(),
        nn.Conv2d(32, 32, 3, 2, padding=1), nn.ReLU(),
        nn.Flatten(),
    )  # fmt: skip


def _channels_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Height x width x channels, as most environments give it, unless the first is the smallest."""
    return shape if shape[0] < shape[2] else (shape[2], shape[0], shape[1])


def _to_channels_first(x: Tensor) -> Tensor:
    return x if x.shape[1] < x.shape[3] else x.permute(0, 3, 1, 2)
