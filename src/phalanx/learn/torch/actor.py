"""Any torch module as an actor in a pool."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from phalanx.learn.returns import Floats
from phalanx.learn.torch.heads import Head


class TorchActor:
    """Any torch module as an actor in a pool."""

    def __init__(self, module: nn.Module, head: Head) -> None:
        self.module, self.head, self.noise = module, head, head.noise
        self.device = next(module.parameters()).device

    def set_weights(self, weights: dict[str, Tensor]) -> None:
        self.module.load_state_dict(weights)

    def prepare(self, obs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return obs

    @torch.no_grad()
    def forward(
        self, obs: npt.NDArray[Any], truth: npt.NDArray[np.float32] | None = None
    ) -> tuple[Tensor, Floats]:
        extra = torch.zeros(len(obs), 0) if truth is None else torch.from_numpy(truth)
        outputs, values = self.module(self._to(obs), extra.to(self.device))
        return outputs, values.cpu().numpy()

    @torch.no_grad()
    def draw(
        self, outputs: Tensor, masks: npt.NDArray[np.bool_], noise: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], Floats]:
        actions, log_probs = self.head.draw(outputs, self._to(masks), self._to(noise))
        return actions.cpu().numpy(), log_probs.cpu().numpy()

    def best(self, outputs: Tensor, masks: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        return self.head.best(outputs, self._to(masks)).cpu().numpy()

    def _to(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)
