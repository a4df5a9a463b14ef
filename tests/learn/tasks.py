"""Small known tasks, played with the compiled networks through Gymnasium's vector interface."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from phalanx.learn.compiled.mlp import forward, work_size
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.ppo import LossSettings, PPOSettings
from phalanx.learn.rollout import Rollout, empty_rollout

LOSS = LossSettings(clip=0.2, value_weight=0.5, max_grad_norm=0.5)
SETTINGS: dict[str, Any] = {
    "k_epochs": 4,
    "minibatch_size": 600,
    "gae_lambda": 0.95,
    "target_kl": None,
    "loss": LOSS,
}


def settings(**changes: Any) -> PPOSettings:
    return PPOSettings(**{**SETTINGS, **changes})


def probabilities(policy: Policy, obs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    logits = policy.logits(obs).astype(np.float64)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def values(policy: Policy, obs: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    x = np.ascontiguousarray(obs, np.float32)
    work = np.empty(work_size(policy.critic_sizes, len(x)), np.float32)
    return forward(policy.networks.critic, x, work)[:, 0].copy()


class Corridor(gymnasium.Env[npt.NDArray[np.float32], np.int64]):
    """Ten cells, each with its own right way on; the wrong one leads back to the start."""

    observation_space = gymnasium.spaces.Box(0, 1, (10,))
    action_space = gymnasium.spaces.Discrete(3)
    last = 9

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.cell = 0
        return self._seen(), {}

    def step(self, action: np.int64) -> Any:
        self.cell = self.cell + 1 if action == self.cell % 3 else 0
        return self._seen(), float(self.cell == self.last), self.cell == self.last, False, {}

    def _seen(self) -> npt.NDArray[np.float32]:
        return np.eye(10, dtype=np.float32)[self.cell]


def corridor(last: int = 9) -> gymnasium.Env[Any, Any]:
    """One that is cut after 50 turns."""
    env = Corridor()
    env.last = last
    return gymnasium.wrappers.TimeLimit(env, 50)


def short_corridor() -> gymnasium.Env[Any, Any]:
    """One whose end is found by chance in every other episode."""
    return corridor(4)


def make_vector(env: str, size: int) -> Any:
    """A vectorised environment that begins anew in the same step."""
    if env == "Corridor":
        return gymnasium.vector.SyncVectorEnv(
            [corridor] * size, autoreset_mode=AutoresetMode.SAME_STEP
        )
    return gymnasium.make_vec(
        env, size, "sync", vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP}
    )


class Player:
    """Fills rollouts of a vector environment with a policy."""

    def __init__(self, env: str, size: int, turns: int, policy: Policy, gamma: float) -> None:
        self.envs, self.policy, self.gamma = make_vector(env, size), policy, gamma
        obs, _ = self.envs.reset(seed=1)
        self.rollout = empty_rollout(turns, obs.astype(np.float32), 0, int(policy.actor_sizes[-1]))
        self.random = np.random.default_rng(7)
        self.running, self.returns = np.zeros(size), [0.0]

    def collect(self) -> Rollout:
        r = self.rollout
        for t in range(len(r.obs)):
            r.obs[t] = r.next_obs
            shares = probabilities(self.policy, r.obs[t])
            left = self.random.random((len(shares), 1))
            actions = (shares.cumsum(axis=1) <= left).sum(axis=1).clip(max=shares.shape[1] - 1)
            obs, rewards, terminated, truncated, infos = self.envs.step(actions)
            ended = terminated | truncated
            after = obs.astype(np.float32)
            for i in np.flatnonzero(ended):
                after[i] = infos["final_obs"][i]
            r.actions[t], r.rewards[t], r.ended[t] = actions, rewards, ended
            r.log_probs[t] = np.log(shares[np.arange(len(shares)), actions])
            r.values[t], r.next_values[t] = (
                values(self.policy, r.obs[t]),
                values(self.policy, after),
            )
            r.discounts[t] = np.where(terminated, 0, self.gamma)
            self.running += rewards
            self.returns += self.running[ended].tolist()
            self.running[ended] = 0
            r.next_obs[:] = obs
        return r
