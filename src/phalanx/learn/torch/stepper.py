"""Steps by autograd: for CUDA, and for networks of your own.

They are the same steps as the compiled ones; a test holds both together.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from phalanx.learn.rollout import Arrays, Rollout
from phalanx.learn.shared import Shared
from phalanx.learn.stepper import ADAM_DECAYS, ADAM_EPSILON, Loss, Rows, flat
from phalanx.learn.torch.heads import Head
from phalanx.learn.torch.weights import set_weights, weights_of

MOMENTS = ("exp_avg", "exp_avg_sq")  # of Adam, by the names that torch gives them
SLICE = 1024  # rows of a minibatch that one thread works on at a time


def ppo_loss(
    head: Head, outputs: Tensor, values: Tensor, rows: Any, loss: Loss
) -> tuple[Tensor, Tensor]:
    """Sum of the loss over the rows, and of STATS.

    L = -min(r A, clip(r) A) - entropy_weight H + value_weight (v - target)² / 2
    """
    _obs, _truth, masks, actions, old_log_probs, advantages, targets = rows
    log_probs, entropy = head.evaluate(outputs, masks, actions)
    difference = log_probs - old_log_probs
    ratio = difference.exp()
    bounded = ratio.clamp(1 - loss.clip, 1 + loss.clip)
    gain = torch.min(ratio * advantages, bounded * advantages)
    errors = (values - targets) ** 2 / 2
    total = (-gain - loss.entropy_weight * entropy + loss.value_weight * errors).sum()
    with torch.no_grad():
        clipped = ((ratio - 1).abs() > loss.clip).float()
        kl = ratio - 1 - difference
        stats = torch.stack([part.sum() for part in (-gain, errors, entropy, kl, clipped)])
    return total, stats


class TorchStepper:
    """Steps by autograd. On the CPU a minibatch is cut in slices over threads, one each."""

    def __init__(
        self, module: nn.Module, head: Head, num_threads: int, compiled: bool = False
    ) -> None:
        self.module, self.head = module, head
        self.see = torch.compile(module, dynamic=True) if compiled else module
        self.device = next(module.parameters()).device
        self.parameters = [part for part in module.parameters() if part.requires_grad]
        self.adam = torch.optim.Adam(self.parameters, betas=ADAM_DECAYS, eps=ADAM_EPSILON)
        on_cpu = self.device.type == "cpu"
        self._threads = ThreadPoolExecutor(num_threads) if on_cpu and num_threads > 1 else None
        self._slice = SLICE if on_cpu else 2**31

    @property
    def size(self) -> int:
        """Numbers that `share` puts into a block."""
        return sum(part.numel() for part in self._tensors())

    @property
    def steps(self) -> int:
        return max((int(state["step"]) for state in self.adam.state.values()), default=0)

    @steps.setter
    def steps(self, steps: int) -> None:
        for state in self.adam.state.values():
            state["step"].fill_(float(steps))

    def share(self, shared: Shared, bring: bool) -> None:
        """Keep weights and optimiser in a block that others write too; `bring` ours, or take its"""
        steps, at = float(self.steps), 0
        for part in self._tensors():
            there = [
                torch.from_numpy(array[at : at + part.numel()]).view(part.shape)
                for array in (shared.weights, shared.mean, shared.square)
            ]
            at += part.numel()
            state = self.adam.state.get(part, {}) if part.requires_grad else {}
            if bring:
                mine = (part, state.get("exp_avg"), state.get("exp_avg_sq"))
                for own, shared_one in zip(mine, there, strict=True):
                    if own is not None:
                        shared_one.copy_(own.detach())
            part.data = there[0]
            if part.requires_grad:
                self.adam.state[part] = {
                    "step": torch.tensor(steps), "exp_avg": there[1], "exp_avg_sq": there[2],
                }  # fmt: skip

    def _tensors(self) -> list[Tensor]:
        """All that is learnt or measured: parameters, and buffers such as running means."""
        buffers = [part for part in self.module.buffers() if part.is_floating_point()]
        return [*self.module.parameters(), *buffers]

    def load_rows(self, rows: Rows) -> None:
        self._rows = [self._to(part) for part in rows]

    def step(
        self, chosen: npt.NDArray[np.int64], loss: Loss
    ) -> tuple[npt.NDArray[np.float64], float]:
        pieces = torch.split(torch.from_numpy(chosen).to(self.device), self._slice)

        def learn(piece: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
            return self.gradient([part[piece] for part in self._rows], len(chosen), loss)

        results = list(self._threads.map(learn, pieces) if self._threads else map(learn, pieces))
        for k, part in enumerate(self.parameters):
            part.grad = torch.stack([grads[k] for grads, _ in results]).sum(dim=0)
        norm = nn.utils.clip_grad_norm_(self.parameters, loss.max_grad_norm)
        for group in self.adam.param_groups:
            group["lr"] = loss.rate
        self.adam.step()
        sums = torch.stack([stats for _, stats in results]).double().sum(dim=0)
        return sums.cpu().numpy(), float(norm)

    def gradient(
        self, rows: Any, rows_in_batch: int, loss: Loss
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        """Gradients of these rows, as their share of the minibatch's mean loss; sums of STATS."""
        outputs, values = self.see(rows[0], rows[1])
        total, stats = ppo_loss(self.head, outputs, values, rows, loss)
        return torch.autograd.grad(total / rows_in_batch, self.parameters), stats

    @torch.no_grad()
    def evaluate(self, rollout: Rollout) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        parts = (rollout.obs, rollout.truth, rollout.masks, rollout.actions)
        obs, truth, masks, actions = (self._to(flat(part)) for part in parts)

        def see(piece: slice) -> tuple[Tensor, Tensor]:
            outputs, values = self.module(obs[piece], truth[piece])
            return self.head.evaluate(outputs, masks[piece], actions[piece])[0], values

        pieces = [slice(k, k + self._slice) for k in range(0, len(obs), self._slice)]
        results = list(self._threads.map(see, pieces) if self._threads else map(see, pieces))
        shape = rollout.rewards.shape
        log_probs, values = (torch.cat([r[k] for r in results]).cpu().numpy() for k in (0, 1))
        return log_probs.reshape(shape), values.reshape(shape)

    def weights(self) -> dict[str, Tensor]:
        return {name: part.detach().clone() for name, part in self.module.state_dict().items()}

    def _to(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = weights_of(self.module)
        for k, part in enumerate(self.parameters):
            state = self.adam.state.get(part, {})
            for name in MOMENTS:
                if name in state:
                    arrays[f"{name}_{k}"] = state[name].cpu().numpy()
        return arrays, {"adam_steps": self.steps}

    def optimiser(self) -> Arrays:
        return {
            f"{name}_{k}": part.detach().cpu().numpy()
            for k, part in enumerate(self.parameters)
            for name in MOMENTS
        }

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        set_weights(self.module, arrays)
        if facts["adam_steps"]:
            for k, part in enumerate(self.parameters):
                self.adam.state[part] = {
                    "step": torch.tensor(float(facts["adam_steps"])),
                    "exp_avg": self._like(arrays[f"exp_avg_{k}"], part),
                    "exp_avg_sq": self._like(arrays[f"exp_avg_sq_{k}"], part),
                }

    def _like(self, array: Any, part: Tensor) -> Tensor:
        return torch.from_numpy(array.copy()).to(self.device).reshape(part.shape)
