"""Fill rollouts of CAGE-2 with any torch module, turn by turn.

It plays the same games with the same dice as the compiled sampler; a test holds both together.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.network import dice, high_die
from phalanx.cage2.rules.observation import write_truth
from phalanx.cage2.rules.scoring import Orders
from phalanx.compiled.rule import kernel
from phalanx.learn.cage2.collect import Shaping, look_around, play_and_store
from phalanx.learn.cage2.sampler import Cage2Sampler
from phalanx.learn.rollout import Rollout
from phalanx.learn.torch.heads import Categorical


@kernel
def look_everywhere(nets: Any, useful: Any, rollout: Rollout, t: int, uniforms: Any) -> None:
    """Store masks and truth of turn t, and roll the die by which each network draws its action."""
    for i in range(len(nets)):
        look_around(nets[i], useful, rollout, t, i)
        uniforms[i] = high_die(dice(nets[i], 2 * nets[i].turn + 2)) * 2.0**-32


@kernel
def play_everywhere(
    nets: Any, memories: Any, kind: int, odds: Any, orders: Orders, conducts: Any,
    condition: Any, actions: Any, log_probs: Any, shaping: Shaping, rollout: Rollout, t: int,
    final_obs: Any, final_truth: Any,
) -> None:  # fmt: skip
    """Turn t of every network with the given actions."""
    for i in range(len(nets)):
        play_and_store(
            nets[i], memories[i if kind else 0], kind, odds, orders,
            conducts[i], condition[i], actions[i], log_probs[i], shaping,
            rollout, t, i, final_obs[i], final_truth[i],
        )  # fmt: skip


@kernel
def truth_everywhere(nets: Any, out: Any) -> None:
    for i in range(len(nets)):
        write_truth(nets[i], out[i])


class TorchSampler(Cage2Sampler):
    """Plays with any torch module, turn by turn."""

    def __init__(self, batch: Batch, module: nn.Module, turns: int, **options: Any) -> None:
        super().__init__(batch, turns, **options)
        self.module, self.head = module, Categorical()
        self.device = next(module.parameters()).device
        self._uniforms = np.empty(batch.num_envs)
        self._final_obs = np.zeros_like(self.rollout.next_obs)
        self._final_truth = np.zeros((batch.num_envs, self.rollout.truth.shape[2]), np.float32)

    def set_weights(self, weights: dict[str, Tensor], version: int) -> None:
        self.module.load_state_dict(weights)
        self.version = version

    @torch.no_grad()
    def collect(self, shaping: Shaping) -> Rollout:
        batch, rollout = self.batch, self.next_rollout()
        turns = len(rollout.obs)
        rollout.obs[0] = rollout.next_obs
        for t in range(turns):
            look_everywhere(batch.nets, self.useful, rollout, t, self._uniforms)
            logits, values = self._see(rollout.obs[t], rollout.truth[t])
            actions, log_probs = self.head.draw(
                logits, self._to(rollout.masks[t]), self._to(self._uniforms.astype(np.float32))
            )
            play_everywhere(
                batch.nets, batch.memories, batch.kind, batch.odds, self.orders, self.conducts,
                self.condition, actions.cpu().numpy(), log_probs.cpu().numpy(), shaping, rollout, t,
                self._final_obs, self._final_truth,
            )  # fmt: skip
            rollout.values[t] = values.cpu().numpy()
            if t > 0:
                np.copyto(
                    rollout.next_values[t - 1], rollout.values[t], where=~rollout.ended[t - 1]
                )
            ended = rollout.ended[t]
            if ended.any():
                _, last = self._see(self._final_obs[ended], self._final_truth[ended])
                rollout.next_values[t, ended] = last.cpu().numpy()
        if rollout.truth.shape[2]:
            truth_everywhere(batch.nets, self._final_truth)
        _, last = self._see(rollout.next_obs, self._final_truth)
        np.copyto(rollout.next_values[-1], last.cpu().numpy(), where=~rollout.ended[-1])
        return rollout

    def _see(self, obs: Any, truth: Any) -> tuple[Tensor, Tensor]:
        return self.module(self._to(obs), self._to(truth))

    def _to(self, array: Any) -> Tensor:
        return torch.from_numpy(array).to(self.device)
