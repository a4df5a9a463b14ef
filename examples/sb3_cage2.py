"""CAGE-2 in Stable-Baselines3: PPO on a compiled batch.

pip install 'phalanx[sb3]'
python examples/sb3_cage2.py --red-agent meander --steps 500000
"""

from argparse import ArgumentParser

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

from phalanx.cage2.sb3 import Cage2VecEnv
from phalanx.statistics import interval


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--red-agent", default="b_line", help="b_line, meander, sleep or a mixture")
    parser.add_argument("--horizon", type=int, default=30, help="turns of an episode")
    parser.add_argument("--num-envs", type=int, default=128)
    parser.add_argument("--steps", type=int, default=200_000, help="turns of all networks")
    parser.add_argument("--episodes", type=int, default=200, help="to evaluate with")
    args = parser.parse_args()
    torch.set_num_threads(1)  # small networks: more threads wait for each other

    settings = {
        "red_agent": args.red_agent,
        "horizon": args.horizon,
        "rules": "2.1-leaderboard",
        "observation": "history",
    }
    envs = Cage2VecEnv(args.num_envs, seed=0, **settings)
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=args.horizon,
        batch_size=args.num_envs * args.horizon // 4,
        learning_rate=1e-3,
        gamma=0.99,
        seed=0,
        device="cpu",
    )
    model.learn(args.steps)

    fresh = VecMonitor(Cage2VecEnv(args.num_envs, seed=1_000_000, **settings))
    returns, _ = evaluate_policy(model, fresh, args.episodes, return_episode_rewards=True)
    found = interval(returns)
    half_width = found["high"] - found["mean"]
    print(f"mean return {found['mean']:.2f} ± {half_width:.2f} over {len(returns)} episodes")
    envs.close()
    fresh.close()


if __name__ == "__main__":
    main()
