"""The networks of `policy.py` as a torch module, with the same weights in the same order."""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from phalanx.learn.compiled.mlp import Floats
from phalanx.learn.compiled.policy import Policy


class ActorCritic(nn.Module):
    """Separate tanh networks for actor and critic. Your own module is called in the same way:

    logits, values = module(obs, truth)    # [rows, D], [rows, K] -> [rows, actions], [rows]
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.actor = _layers(policy.actor_sizes.tolist())
        self.critic = _layers(policy.critic_sizes.tolist())
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


def _layers(sizes: list[int]) -> nn.Sequential:
    parts: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        parts += [nn.Linear(n_in, n_out), nn.Tanh()]
    return nn.Sequential(*parts[:-1])
