"""CAGE-2 in RLlib: PPO or IMPALA on the new API stack.

pip install 'phalanx[ray,torch]'
python examples/rllib_cage2.py --algo impala --red-agent meander --iterations 5
"""

from argparse import ArgumentParser

import ray
import torch
from ray.rllib.algorithms import IMPALAConfig, PPOConfig

import phalanx.cluster.rllib


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algo", choices=("ppo", "impala"), default="ppo")
    parser.add_argument("--red-agent", default="b_line", help="b_line, meander, sleep or a mixture")
    parser.add_argument("--horizon", type=int, default=30, help="turns of an episode")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--env-runners", type=int, default=1, help="processes that play")
    parser.add_argument("--envs-per-runner", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=3840, help="turns of an update")
    args = parser.parse_args()
    torch.set_num_threads(1)  # small networks: more threads wait for each other

    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    phalanx.cluster.rllib.register()
    config = (
        (PPOConfig() if args.algo == "ppo" else IMPALAConfig())
        .environment(
            "CAGE2",
            env_config={
                "red_agent": args.red_agent,
                "horizon": args.horizon,
                "rules": "2.1-leaderboard",
                "observation": "history",
            },
        )
        .env_runners(
            num_env_runners=args.env_runners,
            num_envs_per_env_runner=args.envs_per_runner,
            gym_env_vectorize_mode="vector_entry_point",  # one compiled batch in each runner
        )
        .training(train_batch_size_per_learner=args.batch_size, lr=1e-3, gamma=0.99)
        .reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=args.batch_size)
        .debugging(seed=0)
    )
    if args.algo == "ppo":
        config = config.training(minibatch_size=min(512, args.batch_size), num_epochs=4)
    else:
        config = config.learners(num_learners=0)  # a small network learns in this process
        # It would ask the runners again and again, and take a core from them for that.
        config = config.training(timeout_s_sampler_manager=1.0)

    algo = config.build_algo()
    try:
        for iteration in range(1, args.iterations + 1):
            result = algo.train()
            mean = result["env_runners"].get("episode_return_mean", float("nan"))
            turns = result.get("num_env_steps_sampled_lifetime", 0)
            print(f"iteration {iteration}: mean return {mean:.2f} after {turns:,.0f} turns")
    finally:
        algo.stop()
        ray.shutdown()


if __name__ == "__main__":
    main()
