"""Beside RLlib's PPO: the same game, network, settings and cores, in one run.

python benchmarks/rllib.py                   # about three minutes; a try is over after five
python benchmarks/rllib.py --seconds 40

Both play the compiled CAGE-2 against B-line, 100 turns, 172 inputs, all 145 actions, networks of
64-64 for actor and critic, and plain PPO: no masks, curricula or privileged critic. What is counted
are episodes a second after the first update, and the time from the first update's beginning to a
mean return of -100 over the last 256 episodes.
"""

import tempfile
import time
from argparse import ArgumentParser
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ray
import torch
from ray.rllib.algorithms import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

import phalanx.rllib
from phalanx.cluster import connected
from phalanx.config import TrainConfig
from phalanx.machine import describe_machine
from phalanx.run import Run
from phalanx.training import train

GOAL, WINDOW = -100.0, 256
ENVS, TURNS, MINIBATCH, EPOCHS, RATE = 256, 100, 4096, 4, 1e-3


class Measured(NamedTuple):
    name: str
    episodes_per_s: float
    seconds_to_goal: float | None
    """None: not reached in the time given"""
    last_return: float


def ours(name: str, seconds: float, **where: Any) -> Measured:
    """phalanx, until the goal is reached and some seconds have passed."""
    began = at_first = 0.0
    first_episodes = 0
    reached: float | None = None

    def watch(run: Run) -> None:
        nonlocal began, at_first, first_episodes, reached
        now = time.perf_counter()
        if run.updates == 1:
            at_first, first_episodes = now, run.episodes
            began = now - run.spent_s
        mean = recent_return(run)
        if reached is None and len(run.recent) >= WINDOW and mean >= GOAL:
            reached = now - began
        spent = now - began
        run.enough = spent >= seconds or (reached is not None and now - at_first >= 10)

    with tempfile.TemporaryDirectory() as place:
        config = TrainConfig(
            red_agent="b_line", num_envs=ENVS, update_steps=TURNS, minibatch_size=MINIBATCH,
            k_epochs=EPOCHS, learning_rate=RATE, final_learning_rate=RATE, gamma=0.99,
            gae_lambda=0.95, entropy=0.0, final_entropy=0.0, critic_truth=False, actions="all",
            turn_weights="flat", restore_curriculum=0.0, total_episodes=10**9,
            output_dir=Path(place), name="run", **where,
        )  # fmt: skip
        run = train(config, on_update=watch)
    rate = (run.episodes - first_episodes) / (time.perf_counter() - at_first)
    return Measured(name, rate, reached, recent_return(run))


def recent_return(run: Run) -> float:
    return float(np.mean([episode.total for episode in list(run.recent)[-WINDOW:]]))


def rllib(name: str, seconds: float, runners: int, vectors: str) -> Measured:
    """RLlib's PPO on the new API stack; vectors: how a runner holds its environments."""
    algo = rllib_config(runners, vectors).build_algo()
    try:
        return measure_rllib(name, algo, seconds)
    finally:
        algo.stop()


def rllib_config(runners: int, vectors: str) -> Any:
    config = (
        PPOConfig()
        .environment(
            "CAGE2",
            env_config={
                "red_agent": "b_line",
                "horizon": TURNS,
                "rules": "2.1-leaderboard",
                "observation": "history",
            },
        )
        .env_runners(
            num_env_runners=runners,
            num_envs_per_env_runner=ENVS // max(1, runners),
            rollout_fragment_length=TURNS,
            gym_env_vectorize_mode=vectors,
        )
        .training(
            train_batch_size_per_learner=ENVS * TURNS, minibatch_size=MINIBATCH, num_epochs=EPOCHS,
            lr=RATE, gamma=0.99, lambda_=0.95, clip_param=0.2, vf_clip_param=float("inf"),
            entropy_coeff=0.0, vf_loss_coeff=0.5, grad_clip=0.5, use_kl_loss=False,
        )
        .rl_module(
            model_config=DefaultModelConfig(
                fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=False
            )
        )
        .reporting(min_time_s_per_iteration=0, metrics_num_episodes_for_smoothing=WINDOW)
        .debugging(seed=0)
    )  # fmt: skip
    return config


def measure_rllib(name: str, algo: Any, seconds: float) -> Measured:
    began = at_first = time.perf_counter()
    turns_at_first = turns = 0.0
    mean, reached = float("nan"), None
    for updates in count(1):
        result = algo.train()
        now = time.perf_counter()
        turns = result["num_env_steps_sampled_lifetime"]
        if updates == 1:
            at_first, turns_at_first = now, turns
        mean = result["env_runners"].get("episode_return_mean", float("nan"))
        if reached is None and mean >= GOAL:
            reached = now - began
        if now - began >= seconds or (reached is not None and now - at_first >= 10):
            break
    rate = (turns - turns_at_first) / TURNS / (time.perf_counter() - at_first)
    return Measured(name, rate, reached, mean)


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a try is over")
    seconds = parser.parse_args().seconds
    torch.set_num_threads(1)
    with connected(None):
        phalanx.rllib.register()
        ours("to compile", 0.0)
        rows = [
            ours("phalanx, --runner local", seconds),
            ours("phalanx, --runner ray, 2 samplers", seconds, runner="ray", num_samplers=2),
            rllib("RLlib, 2 runners, its own vectors", seconds, 2, "sync"),
            rllib("RLlib, 2 runners, our batches", seconds, 2, "vector_entry_point"),
            rllib("RLlib, 1 runner, our batches", seconds, 1, "vector_entry_point"),
        ]
    print(f"| | episodes/s | seconds to {GOAL:.0f} | return at the end |\n|--|--|--|--|")
    for row in rows:
        goal = "not reached" if row.seconds_to_goal is None else f"{row.seconds_to_goal:.1f}"
        print(f"| {row.name} | {row.episodes_per_s:,.1f} | {goal} | {row.last_return:.1f} |")
    for row in rows[:2]:
        for other in rows[2:]:
            print(f"{row.name} / {other.name}: {row.episodes_per_s / other.episodes_per_s:.1f} x")
    print(", ".join(f"{name} {value}" for name, value in describe_machine().items()))
    print(f"ray {ray.__version__}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
