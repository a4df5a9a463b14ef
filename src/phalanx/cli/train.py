"""The command `phalanx train`: progress, then the scores of what was learnt."""

import json
import math
import sys

from phalanx.cage2.rules.scenario import HORIZONS, RED_AGENTS
from phalanx.cage2.scenario.attackers import can_attack
from phalanx.cage2.scenario.names import CAGE2_NAME
from phalanx.play.evaluate import evaluate
from phalanx.statistics import interval
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run
from phalanx.trust import asked_again

EVALUATION_SEED = 1_000_000  # far from any that one trains with


def main(config: TrainConfig) -> int:
    """Train and show how it goes, then play the nine cells of the leaderboard."""
    run = train(config, progress=not config.quiet)
    seconds = run.spent_s
    print(
        f"{run.episodes:,} episodes in {seconds:.0f} s ({run.episodes / seconds:,.0f} a second); "
        f"run folder {run.folder.path}"
    )
    own = run.extension.in_words(run.recent).get("reward")
    if own is not None:
        print(f"return of the last {len(run.recent):,} episodes under {own}")
    if run.stopped:
        again = f"--resume {run.folder.path}{asked_again(run.config.as_dict())}"
        print(f"stopped; continue with phalanx train {again}", file=sys.stderr)
        return 130
    if config.env == "cage2":
        show_results(run)
    else:
        last = interval([e.total for e in run.recent] or [math.nan])
        print(f"return of the last {last['episodes']} episodes: {last['mean']:.2f}")
    return 0


def show_results(run: Run, episodes: int = 1000) -> None:
    """The policy's returns on fresh episodes, beside the scores of the challenge's best.

    summary.json has them too, as `score`.
    """
    horizons = tuple(h for h in HORIZONS if h <= run.config.horizon) or (run.config.horizon,)
    shown = not run.config.quiet
    is_cage2 = run.config.scenario == CAGE2_NAME
    able = None if is_cage2 else can_attack(run.sampler.batch.scenarios.members, RED_AGENTS)
    scores = evaluate(
        run,
        horizon=horizons,
        episodes=episodes,
        seed=EVALUATION_SEED,
        red_agent=able,
        progress=shown,
    )
    facts = json.loads((run.folder.path / "summary.json").read_text())
    run.folder.write_summary(facts | {"score": scores.as_dict()})
    print(scores.beside_published() if is_cage2 and run.config.workflow is None else scores)
