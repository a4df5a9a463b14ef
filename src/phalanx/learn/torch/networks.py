"""Networks as torch modules: those of `policy.py`, those for any environment, and users' own."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from phalanx.arrays import Array, Arrays
from phalanx.errors import ConfigError
from phalanx.learn.compiled.actor import count_outputs, is_image
from phalanx.learn.compiled.mlp import Floats
from phalanx.learn.compiled.policy import Policy

WANTED = "its forward takes obs and truth, and gives logits [rows, outputs] and values [rows]"


class ActorCritic(nn.Module):
    """Separate tanh networks for actor and critic. Your own module is called in the same way:

    logits, values = module(obs, truth)    # [rows, D], [rows, K] -> [rows, actions], [rows]
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.actor = _mlp(policy.actor_sizes.tolist())
        self.critic = _mlp(policy.critic_sizes.tolist())
        self.set_theta(policy.theta)

    def forward(self, obs: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(obs), self.critic(torch.cat([obs, truth], dim=1))[:, 0]

    def theta(self) -> Floats:
        """All weights as one vector, as `Policy` has them."""
        parts = [part.detach().cpu().numpy() for part in self.parameters()]
        return np.concatenate([part.T.reshape(-1) for part in parts])

    def set_theta(self, theta: Floats) -> None:
        at = 0
        with torch.no_grad():
            for part in self.parameters():
                values = theta[at : at + part.numel()].reshape(part.shape[::-1]).T
                part.copy_(torch.from_numpy(np.ascontiguousarray(values)))
                at += part.numel()


class EnvNetwork(nn.Module):
    """Actor and critic for the spaces of an environment.

    outputs, values = network(obs, truth)      # obs [rows, *shape]; truth is not looked at
    """

    def __init__(
        self,
        obs_space: spaces.Space[object],
        action_space: spaces.Space[object],
        hidden: tuple[int, ...],
        deviation: float = 1.0,
    ) -> None:
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


def _mlp(sizes: Sequence[int], last_gain: float | None = None) -> nn.Sequential:
    """Layers with tanh in between.

    last_gain: that of the last layer's weights, if they are to be orthogonal.
    """
    parts: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layer = nn.Linear(n_in, n_out)
        if last_gain is not None:
            nn.init.orthogonal_(layer.weight, 2**0.5)
            nn.init.zeros_(layer.bias)
        parts += [layer, nn.Tanh()]
    if last_gain is not None:
        nn.init.orthogonal_(layer.weight, last_gain)
    return nn.Sequential(*parts[:-1])


def _eyes(shape: tuple[int, ...]) -> nn.Sequential:
    """Three convolutions that make an image of 64 x 64 a few hundred numbers."""
    channels = _channels_first(shape)[0]
    return nn.Sequential(
        nn.Conv2d(channels, 16, 8, 4, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 4, 2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, 2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
    )


def _channels_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Height x width x channels, as most environments give it, unless the first is the smallest."""
    return shape if shape[0] < shape[2] else (shape[2], shape[0], shape[1])


def _to_channels_first(x: Tensor) -> Tensor:
    return x if x.shape[1] < x.shape[3] else x.permute(0, 3, 1, 2)


# --- of users, and their weights ------------------------------------------------------------------


def build_own_network(
    network: Callable[[int, int, int], nn.Module], obs: Array, truth_size: int, outputs: int
) -> nn.Module:
    """The module of a factory(obs_size, truth_size, outputs); one that cannot work is refused.

    obs: two observations to try it on.
    """
    try:
        module = network(int(obs[0].size), truth_size, outputs)
        device = next(module.parameters()).device
        module.eval()  # nothing is learnt from two rows of zeros
        with torch.no_grad():
            given = module(
                torch.from_numpy(obs).to(device), torch.zeros(len(obs), truth_size, device=device)
            )
        module.train()
        shapes = [tuple(part.shape) for part in given]
    except Exception as error:  # it is the user's code
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"the network cannot be used ({why[:200]}); {WANTED}") from error
    rows = len(obs)
    if not isinstance(module, nn.Module) or shapes != [(rows, outputs), (rows,)]:
        raise ConfigError(
            f"the network gives {', '.join(map(str, shapes))} for {rows} rows, not ({rows}, "
            f"{outputs}) and ({rows},); {WANTED}"
        )
    return module


def weights_of(module: nn.Module) -> Arrays:
    """The weights as arrays: our own networks as one vector, others by their names."""
    if isinstance(module, ActorCritic):
        return {"theta": module.theta()}
    return {f"weights_{name}": part.cpu().numpy() for name, part in module.state_dict().items()}


def set_weights(module: nn.Module, arrays: Arrays) -> None:
    """The inverse of `weights_of`."""
    if isinstance(module, ActorCritic):
        module.set_theta(arrays["theta"])
        return
    prefix = "weights_"
    given = {
        name.removeprefix(prefix): torch.from_numpy(array.copy())
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
    try:
        module.load_state_dict(given)
    except RuntimeError as error:
        raise ConfigError(
            f"the saved weights are not those of this network: {' '.join(str(error).split())}"
        ) from None


def find_device(name: str) -> torch.device:
    """`cpu`, `cuda`, or for `auto` the GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: this machine (or this torch) has no CUDA device; use cpu")
    return torch.device(name)
