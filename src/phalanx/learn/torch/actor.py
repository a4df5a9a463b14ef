"""Any torch module as an actor in a pool."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from phalanx.learn.compiled.mlp import Floats
from phalanx.learn.torch.heads import Head


class TorchActor:
    """Any torch module as an actor in a pool."""

    def __init__(self, module: nn.Module, head: Head) -> None:
        self.module, self.head = module, head
        self.device = next(module.parameters()).device

    def set_weights(self, weights: dict[str, Tensor]) -> None:
        self.module.load_state_dict(weights)

    def prepare(self, obs: Any) -> npt.NDArray[Any]:
        return obs

    @torch.no_grad()
    def forward(self, obs: npt.NDArray[Any]) -> tuple[Tensor, Floats]:
        x = torch.from_numpy(obs).to(self.device)
        outputs, values = self.module(x, torch.zeros(len(x), 0, device=self.device))
        return outputs, values.cpu().numpy()

    def noise(self, random: np.random.Generator, rows: int) -> npt.NDArray[Any]:
        return self.head.noise(random, rows)

    @torch.no_grad()
    def draw(
        self, outputs: Tensor, masks: npt.NDArray[np.bool_], noise: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], Floats]:
        chance = torch.from_numpy(noise).to(self.device)
        allowed = torch.from_numpy(masks).to(self.device)
        actions, log_probs = self.head.draw(outputs, allowed, chance)
        return actions.cpu().numpy(), log_probs.cpu().numpy()

    def best(self, outputs: Tensor, masks: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        return self.head.best(outputs, torch.from_numpy(masks).to(self.device)).cpu().numpy()
