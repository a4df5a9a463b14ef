"""Steps by autograd: for CUDA, and for networks of your own.

They are the same steps as the compiled ones; a test holds both together.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from phalanx.arrays import Array, Arrays
from phalanx.files import Facts
from phalanx.learn.a3c import Shared
from phalanx.learn.ppo import ADAM_DECAYS, ADAM_EPSILON, LossSettings, Rows, ppo_loss
from phalanx.learn.rollout import Floats, Rollout, flat
from phalanx.learn.torch.heads import Head
from phalanx.learn.torch.networks import set_weights, weights_of

Piece = TypeVar("Piece")
Result = TypeVar("Result")
MOMENTS = ("exp_avg", "exp_avg_sq")  # of Adam, by the names that torch gives them
SLICE = 1024  # rows of a minibatch that one thread works on at a time


class TorchStepper:
    """Steps by autograd. On the CPU a minibatch is cut in slices over threads, one each."""

    def __init__(
        self, module: nn.Module, head: Head, num_threads: int, compiled: bool = False
    ) -> None:
        self.module, self.head = module, head
        self.forward = torch.compile(module, dynamic=True) if compiled else module
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
            here = slice(at, at + part.numel())
            at += part.numel()
            weights, *moments = (
                torch.from_numpy(array[here]).view(part.shape)
                for array in (shared.weights, shared.mean, shared.square)
            )
            if bring:
                weights.copy_(part.detach())
            part.data = weights
            if part.requires_grad:
                state = self.adam.state[part]
                for name, moment in zip(MOMENTS, moments, strict=True):
                    if bring and name in state:
                        moment.copy_(state[name])
                    state[name] = moment
                state["step"] = torch.tensor(steps)

    def _tensors(self) -> list[Tensor]:
        """All that is learnt or measured: parameters, and buffers such as running means."""
        buffers = [part for part in self.module.buffers() if part.is_floating_point()]
        return [*self.module.parameters(), *buffers]

    def load_rows(self, rows: Rows) -> None:
        self._rows = [self._to(part) for part in rows]

    def step(
        self, chosen: npt.NDArray[np.int64], loss: LossSettings
    ) -> tuple[npt.NDArray[np.float64], float]:
        pieces = torch.split(torch.from_numpy(chosen).to(self.device), self._slice)
        results = self._map(lambda piece: self.gradient(piece, len(chosen), loss), pieces)
        for k, part in enumerate(self.parameters):
            part.grad = torch.stack([grads[k] for grads, _ in results]).sum(dim=0)
        norm = nn.utils.clip_grad_norm_(self.parameters, loss.max_grad_norm)
        for group in self.adam.param_groups:
            group["lr"] = loss.rate
        self.adam.step()
        sums = torch.stack([stats for _, stats in results]).double().sum(dim=0)
        return sums.cpu().numpy(), float(norm)

    def gradient(
        self, piece: Tensor, rows_in_batch: int, loss: LossSettings
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        """Gradients of these rows, as their share of the minibatch's mean loss; sums of STATS."""
        obs, truth, masks, actions, old, advantages, targets = (p[piece] for p in self._rows)
        outputs, values = self.forward(obs, truth)
        log_probs, entropies = self.head.evaluate(outputs, masks, actions)
        losses, stats = ppo_loss(log_probs, entropies, values, old, advantages, targets, loss)
        gradient = torch.autograd.grad(losses.sum() / rows_in_batch, self.parameters)
        return gradient, torch.stack([part.detach().sum() for part in stats])

    @torch.no_grad()
    def evaluate(self, rollout: Rollout) -> tuple[Floats, Floats]:
        parts = (rollout.obs, rollout.truth, rollout.masks, rollout.actions)
        obs, truth, masks, actions = (self._to(flat(part)) for part in parts)

        def evaluate(piece: slice) -> tuple[Tensor, Tensor]:
            outputs, values = self.module(obs[piece], truth[piece])
            return self.head.evaluate(outputs, masks[piece], actions[piece])[0], values

        pieces = [slice(k, k + self._slice) for k in range(0, len(obs), self._slice)]
        log_probs, values = map(torch.cat, zip(*self._map(evaluate, pieces), strict=True))
        shape = rollout.rewards.shape
        return log_probs.cpu().numpy().reshape(shape), values.cpu().numpy().reshape(shape)

    def _map(self, function: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
        """In order, over the threads if there are any."""
        return list((self._threads.map if self._threads else map)(function, pieces))

    def weights(self) -> dict[str, Tensor]:
        return {name: part.detach().clone() for name, part in self.module.state_dict().items()}

    def _to(self, array: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def save(self) -> tuple[Arrays, Facts]:
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

    def load_weights(self, arrays: Arrays) -> None:
        set_weights(self.module, arrays)

    def load(self, arrays: Arrays, facts: Facts) -> None:
        self.load_weights(arrays)
        if facts["adam_steps"]:
            for k, part in enumerate(self.parameters):
                state = self.adam.state[part]
                state["step"] = torch.tensor(float(facts["adam_steps"]))
                for name in MOMENTS:
                    array = arrays[f"{name}_{k}"].copy()
                    state[name] = self._to(array).reshape(part.shape)
