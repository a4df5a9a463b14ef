"""PPO on CAGE-2 as people write it in torch: modules, Categorical, autograd, Adam.

`phalanx bench train` runs this file beside phalanx's own learner, on the same simulator and with
the same settings. It first finds its own best minibatch size and number of threads, then waits for
lines with a number of seconds, trains that long, and answers with what it did.

    echo 5 | python benchmarks/plain_torch.py
"""

import json
import sys
from functools import partial

import gymnasium
import numpy as np

try:
    import torch
    from torch import nn
    from torch.distributions import Categorical
except ImportError:
    print(json.dumps({"missing": "torch is not installed: pip install 'phalanx[torch]'"}))
    sys.exit(1)

import phalanx  # noqa: F401  registers the environment
from phalanx.bench.spent import spend

NUM_ENVS, TURNS, EPOCHS, CONDITION = 512, 100, 4, 25
GAMMA, LAMBDA, CLIP, ENTROPY, VALUE, MAX_NORM = 0.995, 0.98, 0.2, 0.01, 0.5, 0.5
MINIBATCHES, THREADS = (2048, 8192, 25600), (1, torch.get_num_threads())


def network(outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(52 + CONDITION, 64),
        nn.Tanh(),
        nn.Linear(64, 64),
        nn.Tanh(),
        nn.Linear(64, outputs),
    )


class Trainer:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.envs = gymnasium.make_vec(
            "phalanx/Cage2-v0",
            NUM_ENVS,
            red_agent="b_line=0.5,meander=0.5",
            horizon=TURNS,
            rules="2.1-leaderboard",
        )
        self.obs = self.envs.reset(seed=0)[0]
        self.condition = torch.zeros(NUM_ENVS, CONDITION)
        self.actor, self.critic = network(145), network(1)
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.adam = torch.optim.Adam(self.parameters, lr=1e-3, eps=1e-5)

    def policy(self, obs: torch.Tensor, masks: torch.Tensor) -> Categorical:
        logits = self.actor(obs).masked_fill(~masks, -1e9)
        return Categorical(logits=logits, validate_args=False)

    def update(self, minibatch: int) -> int:
        """Collect 512 episodes, then four epochs; returns how many episodes that were."""
        shape = (TURNS, NUM_ENVS)
        all_obs = torch.zeros(*shape, 52 + CONDITION)
        all_masks = torch.zeros(*shape, 145, dtype=torch.bool)
        actions = torch.zeros(shape, dtype=torch.long)
        log_probs, values, rewards, ended = (torch.zeros(shape) for _ in range(4))
        final_values = torch.zeros(NUM_ENVS)
        with torch.no_grad():
            for t in range(TURNS):
                obs = torch.cat([torch.from_numpy(self.obs), self.condition], dim=1)
                masks = torch.from_numpy(self.envs.unwrapped.action_masks())
                policy = self.policy(obs, masks)
                action = policy.sample()
                all_obs[t], all_masks[t], actions[t] = obs, masks, action
                log_probs[t], values[t] = policy.log_prob(action), self.critic(obs)[:, 0]
                self.obs, reward, _, truncated, infos = self.envs.step(action.numpy())
                rewards[t] = torch.from_numpy(reward.astype(np.float32)) * 0.1
                ended[t] = torch.from_numpy(truncated).float()
                if truncated.any():
                    last = torch.from_numpy(np.stack(infos["final_obs"]))
                    final_values = self.critic(torch.cat([last, self.condition], dim=1))[:, 0]
            advantages, running = torch.zeros(shape), torch.zeros(NUM_ENVS)
            for t in reversed(range(TURNS)):
                following = final_values if t == TURNS - 1 else values[t + 1]
                delta = rewards[t] + GAMMA * following - values[t]
                running = delta + GAMMA * LAMBDA * running * (1 - ended[t])
                advantages[t] = running
        rows = TURNS * NUM_ENVS
        x, m = all_obs.view(rows, -1), all_masks.view(rows, -1)
        a, old, adv = actions.view(-1), log_probs.view(-1), advantages.view(-1)
        targets = adv + values.view(-1)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ in range(EPOCHS):
            for chosen in torch.randperm(rows).split(minibatch):
                policy = self.policy(x[chosen], m[chosen])
                ratio = (policy.log_prob(a[chosen]) - old[chosen]).exp()
                bounded = ratio.clamp(1 - CLIP, 1 + CLIP)
                gain = torch.min(ratio * adv[chosen], bounded * adv[chosen]).mean()
                errors = (self.critic(x[chosen])[:, 0] - targets[chosen]) ** 2
                loss = -gain - ENTROPY * policy.entropy().mean() + VALUE * errors.mean() / 2
                self.adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.parameters, MAX_NORM)
                self.adam.step()
        return NUM_ENVS


def main() -> None:
    trainer = Trainer()
    trainer.update(MINIBATCHES[0])
    speeds = {}
    for threads in sorted(set(THREADS)):
        torch.set_num_threads(threads)
        for minibatch in MINIBATCHES:
            speeds[threads, minibatch] = spend(1.5, partial(trainer.update, minibatch)).speed()
    threads, minibatch = max(speeds, key=lambda setting: speeds[setting])
    torch.set_num_threads(threads)
    settings = {"missing": None, "threads": threads, "minibatch": minibatch}
    print(json.dumps(settings), flush=True)
    for line in sys.stdin:
        spent = spend(float(line), partial(trainer.update, minibatch))
        print(json.dumps(spent._asdict()), flush=True)


if __name__ == "__main__":
    main()
