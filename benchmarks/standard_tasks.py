"""Standard tasks: phalanx as it comes, beside PPO of Stable-Baselines3 with its zoo's settings.

    pip install stable-baselines3 "gymnasium[box2d,mujoco]" minatar
    python benchmarks/standard_tasks.py --tasks CartPole-v1 Pendulum-v1 --seeds 0 1 2 3 4

Equal environment steps and seeds, and the same evaluation: 50 episodes from given seeds, always the
most likely action. CPU seconds are those of training alone, of all processes and threads, after
everything is imported and compiled. What was run is kept in a JSON file and not run again, so that
it can be stopped and continued.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from phalanx.statistics import half_width

EPISODES, FIRST_SEED = 50, 10_000  # of an evaluation
WHO = ("phalanx", "sb3")

# The numbers of hyperparams/ppo.yml in RL Baselines3 Zoo (DLR-RM/rl-baselines3-zoo, MIT): lin_X
# falls from X to 0. MinAtar and Catch have none there, and are given those for Atari.
# They are laid out as there, a task a paragraph: hence `fmt: skip` here and below.
ATARI = {
    "n_envs": 8, "n_steps": 128, "n_epochs": 4, "batch_size": 256, "learning_rate": "lin_2.5e-4",
    "clip_range": "lin_0.1", "vf_coef": 0.5, "ent_coef": 0.01,
}  # fmt: skip
WIDE = {"log_std_init": -2, "ortho_init": False, "activation_fn": "ReLU", "net_arch": [256, 256]}
ZOO: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "n_envs": 8, "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98,
        "n_epochs": 20, "ent_coef": 0.0, "learning_rate": "lin_0.001", "clip_range": "lin_0.2",
    },
    "Acrobot-v1": {
        "normalize": True, "n_envs": 16, "n_steps": 256, "gae_lambda": 0.94, "gamma": 0.99,
        "n_epochs": 4, "ent_coef": 0.0,
    },
    "Pendulum-v1": {
        "n_envs": 4, "n_steps": 1024, "gae_lambda": 0.95, "gamma": 0.9, "n_epochs": 10,
        "ent_coef": 0.0, "learning_rate": 1e-3, "clip_range": 0.2, "use_sde": True,
        "sde_sample_freq": 4,
    },
    "MountainCar-v0": {
        "normalize": True, "n_envs": 16, "n_steps": 16, "gae_lambda": 0.98, "gamma": 0.99,
        "n_epochs": 4, "ent_coef": 0.0,
    },
    "MountainCarContinuous-v0": {
        "normalize": True, "n_envs": 1, "n_steps": 8, "batch_size": 256, "gae_lambda": 0.9,
        "gamma": 0.9999, "n_epochs": 10, "ent_coef": 0.00429, "learning_rate": 7.77e-5,
        "clip_range": 0.1, "max_grad_norm": 5, "vf_coef": 0.19, "use_sde": True,
        "policy": {"log_std_init": -3.29, "ortho_init": False},
    },
    "LunarLander-v3": {
        "n_envs": 16, "n_steps": 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999,
        "n_epochs": 4, "ent_coef": 0.01,
    },
    "BipedalWalker-v3": {
        "normalize": True, "n_envs": 32, "n_steps": 2048, "batch_size": 64, "gae_lambda": 0.95,
        "gamma": 0.999, "n_epochs": 10, "ent_coef": 0.0, "learning_rate": 3e-4, "clip_range": 0.18,
    },
    "HalfCheetah-v5": {
        "normalize": True, "n_envs": 1, "n_steps": 512, "batch_size": 64, "gae_lambda": 0.92,
        "gamma": 0.98, "n_epochs": 20, "ent_coef": 0.000401762, "learning_rate": 2.0633e-5,
        "clip_range": 0.1, "max_grad_norm": 0.8, "vf_coef": 0.58096, "policy": WIDE,
    },
    "Hopper-v5": {
        "normalize": True, "n_envs": 1, "n_steps": 512, "batch_size": 32, "gae_lambda": 0.99,
        "gamma": 0.999, "n_epochs": 5, "ent_coef": 0.00229519, "learning_rate": 9.80828e-5,
        "clip_range": 0.2, "max_grad_norm": 0.7, "vf_coef": 0.835671, "policy": WIDE,
    },
    "MinAtar/Breakout-v1": ATARI,
    "Catch": ATARI,
}  # fmt: skip
STEPS = {
    "CartPole-v1": 100_000, "Acrobot-v1": 100_000, "Pendulum-v1": 100_000,
    "MountainCar-v0": 300_000, "MountainCarContinuous-v0": 20_000, "LunarLander-v3": 1_000_000,
    "BipedalWalker-v3": 1_000_000, "HalfCheetah-v5": 1_000_000, "Hopper-v5": 500_000,
    "MinAtar/Breakout-v1": 500_000, "Catch": 50_000,
}  # fmt: skip


class Catch(gymnasium.Env[Any, Any]):
    """Pixels: a ball falls through ten rows, and a paddle has to be below it in the end."""

    observation_space = spaces.Box(0, 255, (40, 40, 1), np.uint8)
    action_space = spaces.Discrete(3)

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.row, self.ball = 0, int(self.np_random.integers(10))
        self.paddle = 4
        return self._image(), {}

    def step(self, action: Any) -> Any:
        self.paddle = min(9, max(0, self.paddle + int(action) - 1))
        self.row += 1
        over = self.row == 9
        reward = (1.0 if self.paddle == self.ball else -1.0) if over else 0.0
        return self._image(), reward, over, False, {}

    def _image(self) -> Any:
        image = np.zeros((10, 10), np.uint8)
        image[self.row, self.ball] = image[9, self.paddle] = 255
        return image.repeat(4, axis=0).repeat(4, axis=1)[..., None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(ZOO)[:4], choices=list(ZOO))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--who", nargs="+", default=list(WHO), choices=WHO)
    parser.add_argument("--results", type=Path, default=Path("standard_tasks.json"))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        figures = run_one(given.tasks[0], given.who[0], given.seeds[0])
        print(json.dumps(figures))
        return
    for task in given.tasks:
        for who in given.who:
            for seed in given.seeds:
                keep(given.results, task, who, seed)
    print(table(read(given.results)))


# --- one run --------------------------------------------------------------------------------------


def keep(path: Path, task: str, who: str, seed: int) -> None:
    """Run it in a process of its own, unless it is in the file already."""
    name = f"{task} {who} {seed}"
    if name in read(path):
        return
    command = [sys.executable, __file__, "--one", "--tasks", task, "--who", who]
    ran = subprocess.run(
        [*command, "--seeds", str(seed)], stdout=subprocess.PIPE, text=True, check=True
    )
    figures = json.loads(ran.stdout.strip().splitlines()[-1])
    print(f"{name}: return {figures['return']:.2f}, {figures['cpu_s']:.1f} CPU s", file=sys.stderr)
    path.write_text(json.dumps(read(path) | {name: figures}, indent=1) + "\n")


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def run_one(task: str, who: str, seed: int) -> dict[str, float]:
    act, cpu_s = (train_phalanx if who == "phalanx" else train_sb3)(task, seed)
    return {"return": evaluate(task, act), "cpu_s": cpu_s, "steps": STEPS[task]}


def make(task: str) -> Any:
    if task == "Catch":
        return Catch()
    if task.startswith("MinAtar"):
        from minatar.gym import register_envs

        register_envs()
    return gymnasium.make(task)


def evaluate(task: str, act: Callable[[Any], Any]) -> float:
    env, returns = make(task), list[float]()
    for seed in range(FIRST_SEED, FIRST_SEED + EPISODES):
        obs, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(act(obs))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return mean(returns)


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def train_phalanx(task: str, seed: int) -> tuple[Callable[[Any], Any], float]:
    """What `phalanx train --env TASK` does; a factory has no zoo settings, and a given name."""
    from phalanx.learn.pool_sampler import Scale
    from phalanx.settings.flags import from_flags
    from phalanx.training.config import TrainConfig
    from phalanx.training.loop import train

    env = make(task)
    with tempfile.TemporaryDirectory() as folder:
        flags = {"env": task, "seed": str(seed), "total_steps": str(STEPS[task])}
        flags["num_workers"] = "0"  # the weights are the same, and all CPU time is in this process
        if task == "Catch":
            flags["env"] = "standard_tasks:Catch"
        few = {"total_steps": "1", "name": "first"}  # compiles
        for changes in (few, {"name": "run"}):
            began = cpu_seconds()
            run = train(from_flags(TrainConfig, {**flags, **changes, "output_dir": folder}))
            cpu_s = cpu_seconds() - began
    actor, scale = run.sampler.actor, Scale(env.action_space)
    actor.set_weights(run.learner.stepper.weights())
    masks = np.ones((1, getattr(env.action_space, "n", 0)), np.bool_)

    def act(obs: Any) -> Any:
        outputs, _values = actor.forward(actor.prepare(np.asarray(obs)[None]))
        return scale(actor.best(outputs, masks))[0]

    return act, cpu_s


def train_sb3(task: str, seed: int) -> tuple[Callable[[Any], Any], float]:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(1)  # more cost CPU, and are no faster on networks of this size
    settings = dict(ZOO[task])
    policy = dict(settings.pop("policy", {}))
    if "activation_fn" in policy:
        policy["activation_fn"] = getattr(torch.nn, policy["activation_fn"])
    normalize = settings.pop("normalize", False)
    for name, value in settings.items():
        if isinstance(value, str):
            settings[name] = falling(float(value.removeprefix("lin_")))
    kind = "CnnPolicy" if task == "Catch" else "MlpPolicy"
    envs: Any = make_vec_env(lambda: make(task), n_envs=settings.pop("n_envs"), seed=seed)
    if normalize:
        envs = VecNormalize(envs, gamma=settings["gamma"])
    began = cpu_seconds()
    model = PPO(kind, envs, seed=seed, policy_kwargs=policy, device="cpu", **settings)
    model.learn(STEPS[task])
    cpu_s = cpu_seconds() - began

    def act(obs: Any) -> Any:
        seen = envs.normalize_obs(np.asarray(obs)) if normalize else np.asarray(obs)
        return model.predict(seen, deterministic=True)[0]

    return act, cpu_s


def falling(first: float) -> Callable[[float], float]:
    return lambda left: first * left


# --- the table ------------------------------------------------------------------------------------


def table(results: dict[str, Any]) -> str:
    """In Markdown: a row for each task that both have run."""
    lines = [
        "| task | steps | seeds | phalanx | SB3 | difference, 95 % | CPU s | SB3's | ratio |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for task in ZOO:
        runs = [{seed: results.get(f"{task} {who} {seed}") for seed in range(1000)} for who in WHO]
        seeds = [seed for seed in range(1000) if all(run[seed] for run in runs)]
        if not seeds:
            continue
        ours, theirs = ([run[seed]["return"] for seed in seeds] for run in runs)  # type: ignore[index]
        cpu, their_cpu = (mean(run[seed]["cpu_s"] for seed in seeds) for run in runs)  # type: ignore[index]
        differences = [a - b for a, b in zip(ours, theirs, strict=True)]
        lines.append(
            f"| {task} | {STEPS[task]:,} | {len(seeds)} | {spread(ours)} | {spread(theirs)} | "
            f"{interval(differences)} | {cpu:.1f} | {their_cpu:.1f} | {their_cpu / cpu:.1f} |"
        )
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    return f"{mean(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def interval(differences: list[float]) -> str:
    """By Student's t over the pairs."""
    size = len(differences)
    if size < 2:
        return f"{differences[0]:+.1f}"
    half = half_width(stdev(differences) / math.sqrt(size), size)
    return f"{mean(differences):+.1f} ± {half:.1f}"


if __name__ == "__main__":
    main()
