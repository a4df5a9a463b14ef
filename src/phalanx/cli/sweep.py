"""The command `phalanx sweep`: a progress line, and the combinations, best first."""

import sys

from rich.console import Console, RenderableType
from rich.text import Text

from phalanx.cluster.sweep import Sweep, sweep
from phalanx.cluster.sweep_config import SweepConfig
from phalanx.display import new_table, progress_display


def main(config: SweepConfig) -> int:
    """Sweep with a progress line, then show the combinations, best first."""
    with progress_display(None) as progress:
        total, begun = len(config.trials), False
        task = progress.add_task("sweep", total=total, note="starting Ray")

        def heard(swept: Sweep) -> None:
            nonlocal begun
            if not begun:
                progress.say(f"sweeping: {total} trials; folder {swept.path}")
                begun = True
            note = f"{len(swept.outcomes)} of {total} trials done"
            note += f", {len(swept.running)} running"
            best = swept.ranking()[0]
            if best.mean is not None:
                note += f" · best {best.mean:.2f} {best.name}"
            if swept.stopped:
                note = "stopping: running trials save what they have"
            progress.update(task, completed=sum(swept.progress.values()), note=note)

        swept = sweep(config, heard)
    done = sum(outcome.state == "finished" for outcome in swept.outcomes.values())
    print(
        f"{done} of {len(config.trials)} trials finished in {swept.seconds:.0f} s; folder "
        f"{swept.path}"
    )
    show(swept)
    if swept.stopped:
        print("stopped; phalanx train --resume continues a stopped trial", file=sys.stderr)
        return 130
    return 1 if swept.failed else 0


def show(swept: Sweep) -> None:
    """The combinations, best first, and below each the trials of it that did not finish."""
    rows: list[list[RenderableType]] = []
    for one in swept.ranking():
        name = Text(one.name.replace(" ", "\n"))
        if one.seeds:
            mean = f"{one.mean:.2f}" + (
                "" if one.half_width is None else f" ± {one.half_width:.2f}"
            )
            seeds = ",".join(map(str, one.seeds))
            rows.append([name, seeds, mean, f"{one.episodes_per_s:,.0f}", Text(one.folder)])
        for trial in swept.config.trials:
            outcome = swept.outcome(trial)
            if trial.combination == one.name and outcome.state != "finished":
                what = outcome.error or str(trial.path.relative_to(swept.path))
                rows.append([name, str(trial.config.seed), outcome.state, "", Text(what)])
    names = ("combination", "seeds", "mean return", "episodes/s", "folder")
    words = ("combination", "seeds", "folder")
    table = new_table(None, names, rows, words, overflow="fold")
    Console(width=max(100, Console().width)).print(table)
    several = any(len(one.seeds) > 1 for one in swept.ranking())
    over = "over seeds (Student's t)" if several else "over the last episodes of one seed"
    print(f"return of the last episodes in training ± its 95 % interval {over}")
