"""Score on the leaderboard's nine cells against the time spent training.

python benchmarks/time_to_quality.py --config champion --seed 1 [--plot curve.png]

After every so many episodes training stops for a moment, and the policy plays 2,000 fresh episodes
a cell, deterministically. That time is not counted.
"""

import tempfile
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import yaml

from phalanx.cage2.rules.scenario import PUBLISHED
from phalanx.cli.train import EVALUATION_SEED
from phalanx.configs import config_path
from phalanx.play.evaluate import evaluate
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run

GOALS = (-54.57, -46.0, -44.0, -43.0, -42.0)


def score(run: Run, episodes: int) -> float:
    settings = {"rules": run.config.rules, "episodes": episodes, "seed": EVALUATION_SEED}
    return evaluate(run, leaderboard=True, **settings).total


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=config_path, default="champion")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=20_000, help="episodes between evaluations")
    parser.add_argument("--episodes", type=int, default=2000, help="played in each cell")
    parser.add_argument("--output-dir", type=Path, help="keep the run folder here")
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    curve: list[tuple[float, int, float]] = []

    def watch(run: Run) -> None:
        if run.episodes >= (len(curve) + 1) * args.every or run.progress >= 1:
            curve.append((run.spent_s, run.episodes, score(run, args.episodes)))
            spent, episodes, total = curve[-1]
            print(f"{spent:6.0f} s {episodes:8,} episodes: {total:.2f}", flush=True)

    settings = yaml.safe_load(args.config.read_text())
    if "hidden" in settings:
        settings["hidden"] = tuple(settings["hidden"])
    with tempfile.TemporaryDirectory() as place:
        config = TrainConfig(**settings, seed=args.seed)
        folder = args.output_dir or Path(place)
        train(replace(config, output_dir=folder, name=f"seed{args.seed}"), on_update=watch)
    for goal in GOALS:
        first = next((spent for spent, _, total in curve if total >= goal), None)
        print(f"{goal}: " + ("not reached" if first is None else f"{first / 60:.1f} minutes"))
    if args.plot is not None:
        draw(curve, args.plot)


def draw(curve: list[tuple[float, int, float]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot([spent / 60 for spent, _, _ in curve], [total for _, _, total in curve], marker=".")
    for name, scores in PUBLISHED.items():
        axes.axhline(sum(scores.values()), linestyle=":", color="grey")
        axes.text(0, sum(scores.values()), name, fontsize=8, va="bottom")
    axes.set(xlabel="minutes of training on two cores", ylabel="all nine cells", ylim=(-62, -42))
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
