"""A torch module's weights as arrays, and the device it computes on."""

import torch
from torch import nn

from phalanx.errors import ConfigError
from phalanx.learn.rollout import Arrays
from phalanx.learn.torch.module import ActorCritic


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
