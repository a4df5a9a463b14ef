"""The facts of a run, as summary.json has them."""

from typing import TYPE_CHECKING

from phalanx.files import Facts
from phalanx.machine import describe_hardware, describe_versions, peak_memory_mb
from phalanx.statistics import interval
from phalanx.stopwatch import shares_of
from phalanx.training.time_split import seconds_elsewhere

if TYPE_CHECKING:
    from phalanx.training.run import Run


def summary(run: "Run", state: str) -> Facts:
    """The facts of a run, as summary.json has them."""
    seconds = run.spent_s
    returns = {"all": [e.total for e in run.recent]}
    for name in run.extension.kinds:
        returns[name] = [e.total for e in run.recent if e.kind == name]
    return {
        "algorithm": run.config.algo,
        "env": run.config.env_name,
        "num_envs": run.config.num_envs,
        "num_workers": run.recipe.num_workers,
        "notes": run.notes,
        "state": state,
        "schedule_progress": run.schedule_progress,
        "steps": run.steps,
        "episodes": run.episodes,
        "updates": run.updates,
        "seconds": seconds,
        "elapsed_s": run.elapsed_s,
        "compile_s": run.compile_s,
        "steps_per_s": run.steps / seconds,
        "episodes_per_s": run.episodes / seconds,
        "time_split": shares_of(run.seconds),
        "time_split_elsewhere": {
            name: shares_of(spent) for name, spent in seconds_elsewhere(run).items()
        },
        "peak_memory_mb": peak_memory_mb(),
        "returns": {name: interval(values) for name, values in returns.items() if values}
        or {"all": interval(run.sampler.running) | {"episodes": 0}},  # none has ended yet
        **run.extension.summary(run.recent),
        "faults": run.faults_recorded,
        "seed": run.config.seed,
        "device": run.recipe.device,
        "threads": run.recipe.threads,
        "lag": {str(lag): count for lag, count in sorted(run.lags.items())},
        "dropped_steps": run.dropped_steps,
        "rollouts": {"received": run.rollouts.total()}
        | {what: run.rollouts[what] for what in ("learnt", "dropped")},
        "versions": describe_versions(),
        "machine": describe_hardware(),
    }
