"""Beside RLlib: the same game, network and cores, in one run.

python benchmarks/rllib.py                   # up to half an hour; a try is over after five minutes
python benchmarks/rllib.py --seconds 40 --algo ppo

All play the compiled CAGE-2 against B-line, 100 turns, 172 inputs, all 145 actions, with networks
of 64-64 for actor and critic; no masks, curricula or privileged critic. RLlib's PPO has once the
settings of ours and once its own, and once our compiled batches instead of its own vectors of
environments; its IMPALA has the settings of ours. What is counted are episodes a second after the
first update, and the time from the first update's beginning to a mean return of -100 over the last
256 episodes.
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
from ray.rllib.algorithms import IMPALAConfig, PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

import phalanx.cluster.rllib
from phalanx.cluster.ray import connected
from phalanx.machine import describe_machine
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run

GOAL, WINDOW = -100.0, 256
ENVS, TURNS, RUNNERS, RATE = 256, 100, 2, 1e-3
PPO = {
    "algo": "ppo",
    "minibatch_size": 4096,
    "k_epochs": 4,
    "gae_lambda": 0.95,
    "entropy": 0.0,
    "final_entropy": 0.0,
}
IMPALA = {"algo": "impala", "entropy": 0.01, "final_entropy": 0.01, "num_samplers": RUNNERS}


class Measured(NamedTuple):
    name: str
    episodes_per_s: float
    seconds_to_goal: float | None
    """None: not reached in the time given"""
    last_return: float


def ours(name: str, seconds: float, **settings: Any) -> Measured:
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
            red_agent="b_line",
            num_envs=ENVS,
            update_steps=TURNS,
            learning_rate=RATE,
            final_learning_rate=RATE,
            gamma=0.99,
            critic_truth=False,
            actions="all",
            turn_weights="flat",
            restore_curriculum=0.0,
            total_episodes=10**9,
            output_dir=Path(place),
            name="run",
            **settings,
        )
        run = train(config, on_update=watch)
    rate = (run.episodes - first_episodes) / (time.perf_counter() - at_first)
    return Measured(name, rate, reached, recent_return(run))


def recent_return(run: Run) -> float:
    return float(np.mean([episode.total for episode in list(run.recent)[-WINDOW:]]))


def rllib(name: str, seconds: float, config: Any) -> Measured:
    algo = config.build_algo()
    try:
        return measure_rllib(name, algo, seconds)
    finally:
        algo.stop()


def with_the_game(config: Any, vectors: str = "sync") -> Any:
    """The game and the networks; vectors: how a runner holds its environments."""
    return (
        config.environment(
            "CAGE2",
            env_config={
                "red_agent": "b_line",
                "horizon": TURNS,
                "rules": "2.1-leaderboard",
                "observation": "history",
            },
        )
        .env_runners(num_env_runners=RUNNERS, gym_env_vectorize_mode=vectors)
        .rl_module(
            model_config=DefaultModelConfig(
                fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=False
            )
        )
        .reporting(min_time_s_per_iteration=0, metrics_num_episodes_for_smoothing=WINDOW)
        .debugging(seed=0)
    )


def with_our_rollouts(config: Any, turns_to_learn_from: int) -> Any:
    return config.env_runners(
        num_envs_per_env_runner=ENVS // RUNNERS, rollout_fragment_length=TURNS
    ).training(train_batch_size_per_learner=turns_to_learn_from, lr=RATE, gamma=0.99)


def ppo(vectors: str) -> Any:
    """RLlib's PPO on the new API stack, with the settings of ours."""
    config = with_our_rollouts(with_the_game(PPOConfig(), vectors), ENVS * TURNS)
    return config.training(
        minibatch_size=PPO["minibatch_size"],
        num_epochs=PPO["k_epochs"],
        lambda_=0.95,
        clip_param=0.2,
        vf_clip_param=float("inf"),
        entropy_coeff=0.0,
        vf_loss_coeff=0.5,
        grad_clip=0.5,
        use_kl_loss=False,
    )


def impala() -> Any:
    """RLlib's IMPALA: each batch of a runner is learnt from once, as it comes.

    Its learner gets a process of its own: in RLlib 2.60 the default, in the algorithm's, may never
    learn.
    """
    config = with_our_rollouts(with_the_game(IMPALAConfig()), ENVS * TURNS // RUNNERS)
    config = config.env_runners(num_cpus_per_env_runner=0.5).learners(num_learners=1)
    config = config.reporting(min_time_s_per_iteration=1)  # else its main process spins
    return config.training(
        minibatch_size=2000, entropy_coeff=0.01, vf_loss_coeff=0.5, grad_clip=0.5
    )


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
        newest = result["env_runners"].get("episode_return_mean", float("nan"))
        mean = mean if newest != newest else newest  # nan: no episode ended meanwhile
        if reached is None and mean >= GOAL:
            reached = now - began
        if now - began >= seconds or (reached is not None and now - at_first >= 10):
            break
    rate = (turns - turns_at_first) / TURNS / (time.perf_counter() - at_first)
    return Measured(name, rate, reached, mean)


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a try is over")
    parser.add_argument("--algo", choices=("ppo", "impala", "both"), default="both")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with connected(None):
        phalanx.cluster.rllib.register()
        if args.algo != "impala":
            show(compare_ppo(args.seconds))
        if args.algo != "ppo":
            show(compare_impala(args.seconds))
    print(", ".join(f"{name} {value}" for name, value in describe_machine().items()))
    print(f"ray {ray.__version__}, torch {torch.__version__}")


def compare_ppo(seconds: float) -> tuple[list[Measured], list[Measured]]:
    ours("to compile", 0.0, **PPO)
    on_ray = {"runner": "ray", "num_samplers": RUNNERS}
    return [
        ours("phalanx PPO, local", seconds, **PPO),
        ours("phalanx PPO, Ray", seconds, **PPO, **on_ray),
    ], [
        rllib("RLlib PPO, its settings", seconds, with_the_game(PPOConfig())),
        rllib("RLlib PPO, our settings", seconds, ppo("sync")),
        rllib("RLlib PPO, our settings and batches", seconds, ppo("vector_entry_point")),
    ]


def compare_impala(seconds: float) -> tuple[list[Measured], list[Measured]]:
    ours("to compile", 0.0, **IMPALA)
    return [
        ours("phalanx IMPALA, local", seconds, **IMPALA),
        ours("phalanx IMPALA, Ray", seconds, **IMPALA, runner="ray"),
    ], [rllib("RLlib IMPALA, our settings", seconds, impala())]


def show(measured: tuple[list[Measured], list[Measured]]) -> None:
    mine, theirs = measured
    print(f"| | episodes/s | seconds to {GOAL:.0f} | return at the end |\n|--|--|--|--|")
    for row in (*mine, *theirs):
        goal = "not reached" if row.seconds_to_goal is None else f"{row.seconds_to_goal:.1f}"
        print(f"| {row.name} | {row.episodes_per_s:,.1f} | {goal} | {row.last_return:.1f} |")
    for row in mine:
        for other in theirs:
            print(f"{row.name} / {other.name}: {row.episodes_per_s / other.episodes_per_s:.1f} x")


if __name__ == "__main__":
    main()
