"""Fill rollouts of CAGE-2 with any torch module, turn by turn.

It plays the same games with the same dice as the compiled sampler; a test holds both together.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.mind import take_in
from phalanx.cage2.rules.network import Networks, policy_die
from phalanx.cage2.rules.observation import write_truth
from phalanx.compiled.rule import kernel
from phalanx.learn.cage2.collect import (
    Final,
    look_around,
    play_stored_action,
    store_what_follows,
)
from phalanx.learn.cage2.games import Games, Shaping
from phalanx.learn.cage2.sampler import Cage2Sampler
from phalanx.learn.rollout import Floats, Rollout
from phalanx.learn.torch.heads import Categorical, TorchActor
from phalanx.stopwatch import POLICY, SIMULATOR


@kernel
def look_everywhere(
    games: Games, rollout: Rollout, t: int, uniforms: npt.NDArray[np.float64]
) -> None:
    """Store masks and truth of turn t, and roll the die by which each network draws its action."""
    for i in range(len(games.nets)):
        net = games.nets[i]
        look_around(games, net, i, rollout, t)
        uniforms[i] = policy_die(net) * 2.0**-32


@kernel
def play_everywhere(games: Games, shaping: Shaping, rollout: Rollout, t: int, final: Final) -> None:
    """Turn t of every network, with the actions that are stored there."""
    for i in range(len(games.nets)):
        net = games.nets[i]
        action, _aligned = play_stored_action(games, net, i, shaping, rollout, t)
        take_in(games.worlds[net.world], games.minds, i, action, net.seen)
        store_what_follows(games, net, i, shaping, rollout, t, final, i, False)


@kernel
def truth_everywhere(nets: Networks, out: Floats) -> None:
    for i in range(len(nets)):
        write_truth(nets[i], out.shape[1] // 3, out[i])


class TorchSampler(Cage2Sampler):
    """Plays with any torch module, turn by turn."""

    def __init__(self, batch: Batch, module: nn.Module, turns: int, **options: Any) -> None:
        super().__init__(batch, turns, **options)
        self.actor = TorchActor(module, Categorical())
        self._uniforms = np.empty(batch.num_envs)
        truth = np.zeros((batch.num_envs, self.rollout.truth.shape[2]), np.float32)
        self._final = Final(np.zeros_like(self.rollout.next_obs), truth)

    def set_weights(self, weights: dict[str, Tensor], version: int) -> None:
        self.actor.set_weights(weights)
        self.version = version

    def collect(self, shaping: Shaping) -> Rollout:
        games, final, r, watch = self.games, self._final, self.next_rollout(), self.watch
        r.obs[0] = r.next_obs
        for t in range(len(r.obs)):
            watch.switch(SIMULATOR)
            look_everywhere(games, r, t, self._uniforms)
            watch.switch(POLICY)
            logits, r.values[t] = self.actor.forward(r.obs[t], r.truth[t])
            uniforms = self._uniforms.astype(np.float32)
            r.actions[t], r.log_probs[t] = self.actor.draw(logits, r.masks[t], uniforms)
            watch.switch(SIMULATOR)
            play_everywhere(games, shaping, r, t, final)
            watch.switch(POLICY)
            if t > 0:
                np.copyto(r.next_values[t - 1], r.values[t], where=~r.ended[t - 1])
            ended = r.ended[t]
            if ended.any():
                _, last = self.actor.forward(final.obs[ended], final.truth[ended])
                r.next_values[t, ended] = last
        if r.truth.shape[2]:
            truth_everywhere(games.nets, final.truth)
        _, last = self.actor.forward(r.next_obs, final.truth)
        np.copyto(r.next_values[-1], last, where=~r.ended[-1])
        return r
