"""A network that a user wrote: built, and tried once before anything is started."""

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
import torch
from torch import nn

from phalanx.errors import ConfigError


def build_own_network(
    network: Callable[[int, int, int], Any], obs: npt.NDArray[Any], truth_size: int, outputs: int
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


WANTED = "its forward takes obs and truth, and gives logits [rows, outputs] and values [rows]"
