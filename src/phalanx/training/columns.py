"""What the files of a run hold, in words: each column of its tables, each key of summary.json.

The pages of the documentation are made of these, and a test runs small trainings and compares: what
is written is explained, and what is explained is written. A `*` stands for a name that depends on
the run, such as an attacker's; keys within keys are joined by dots.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

UPDATES = {
    "update": "updates so far; with several workers one row may stand for several updates",
    "episodes": "episodes that have ended so far",
    "steps": "steps of all environments so far; on CAGE-2, turns",
    "return": "mean return of the episodes that ended in this update; nan if none did",
    "return_*": (
        "the same for one kind of episode: one column for each attacker on CAGE-2, else one column "
        "named after the environment"
    ),
    "own_return": (
        "with `--reward`: mean return of these episodes under your own reward, every turn as your "
        "function gives it; `return` stays the game's"
    ),
    "workflow": "with `--workflow`: the order of repair, or all",
    "alignment": (
        "with `--workflow`: mean reward of an episode for following its order; not in `return`"
    ),
    "total_return": "with `--workflow`: return plus alignment",
    "compliance": (
        "with `--workflow`: share of all fixes (Remove or Restore) that followed the order; nan "
        "without a fix"
    ),
    "fixes_per_episode": "with `--workflow`: fixes in an episode, on average",
    "share_without_fix": "with `--workflow`: share of episodes without any fix",
    "learning_rate": "learning rate of this update, by its schedule",
    "entropy_weight": "weight of the entropy in this update, by its schedule",
    "restore_price": (
        "on the compiled CAGE-2: what the learner pays for a Restore, from 0.2 to the game's 1; "
        "returns always have the whole price"
    ),
    "policy_loss": "mean of the clipped policy loss over the rows that were learnt from",
    "value_loss": "mean of half the squared error of the critic, in units of the learner's rewards",
    "entropy": "mean entropy of the policy's choice, in nats; 0 is a policy that never hesitates",
    "kl": (
        "estimated KL divergence of the policy from the one before the update; with impala, from "
        "the one that played"
    ),
    "clip_fraction": "share of rows whose probability moved beyond `--clip`",
    "explained_variance": (
        "how much of the variance of its targets the critic explains: 1 is all, 0 is no better "
        "than a constant"
    ),
    "grad_norm": "mean norm of the gradient, before `--max-grad-norm` bounds it",
    "epochs": "passes over the rollout; fewer than `--k-epochs` if `--target-kl` ended them",
    "teacher_weight": "with `--teacher`: weight of its decisions in this update, by its schedule",
    "teacher_loss": (
        "with `--teacher`: mean of -log π of its decisions, before the steps of this update"
    ),
    "teacher_likely": "with `--teacher`: share of its decisions that are likelier than not",
    "lag": "age of the oldest weights that played in the rollout, in updates",
    "dropped_steps": "steps of this update that were too old to learn from (`--sync-every`)",
    "collect_s": "seconds spent on playing, or on waiting for what was played",
    "learn_s": "seconds spent on learning",
    "simulator_s": "of these seconds: environments played",
    "policy_s": "... networks chose actions",
    "copying_s": "... rows, rollouts and weights went from one place to another",
    "waiting_s": "... waited for environments, samplers or threads that were still at it",
    "logging_s": "... went into tables, events, trackers and checkpoints",
    "elapsed_s": "seconds of training so far, those before `--resume` included",
    "wall_time": "date and time of the row, UTC",
}

EPISODES = {
    "update": "the update in which the episode ended",
    "env": "number of the environment that played it, from 0",
    "kind": "the attacker on CAGE-2, else the environment",
    "length": "its steps; on CAGE-2, turns",
    "return": "the sum of the game's rewards",
    "own_return": "with `--reward`: the sum of your own rewards",
    "workflow": "with `--workflow`: number of the order that it was to follow, from 0 to 119",
    "fixes": "with `--workflow`: Removes and Restores",
    "compliant": "with `--workflow`: fixes that followed the order",
    "alignment": "with `--workflow`: reward for following the order; not in `return`",
}

FAULTS = {
    "update": "updates that were done when it happened",
    "env": "the environment that was being stepped or built; empty if none was",
    "worker": "the worker process; empty for environments of the trainer's own process",
    "exit_code": "exit code of a process that ended; empty if it was killed or lives on",
    "signal": "the signal that killed a process, such as SIGKILL",
    "lost": "environments whose episode under way was lost",
    "what": "what happened, in one line",
    "traceback": "the traceback, or the last words of the process",
}

_INTERVAL = {
    "mean": "their mean",
    "stderr": "its standard error; null for a single number",
    "low": "lower end of the 95 % confidence interval of the mean, by Student's t",
    "high": "its upper end",
    "episodes": "how many episodes these are",
}

SUMMARY = {
    "algorithm": "ppo, impala or a3c",
    "env": "the environment",
    "num_envs": "environments side by side",
    "num_workers": "worker processes that stepped them; null where there were none to choose",
    "notes": "what was chosen at the start, and why: a list of lines",
    "state": "finished, stopped (Ctrl-C) or failed; a run that was killed leaves no summary",
    "schedule_progress": "how far the schedules had come at the last update, from 0 to 1",
    "steps": "steps of all environments",
    "episodes": "episodes that ended",
    "updates": "updates",
    "seconds": "seconds spent on updates, without compiling",
    "elapsed_s": "seconds of training by the clock, those before `--resume` included",
    "compile_s": "seconds spent on compiling before the first update",
    "steps_per_s": "steps / seconds",
    "episodes_per_s": "episodes / seconds",
    "time_split.*": (
        "shares of the learning thread's seconds: `simulator` (environments play), `policy` "
        "(networks choose), `copying`, `waiting`, `learning`, `logging` (checkpoints too), `idle`"
    ),
    "time_split_elsewhere.*": "the same of each sampler or worker that played aside",
    "peak_memory_mb": "highest memory of the process and its children, added up",
    **{
        f"returns.*.{name}": f"the last episodes, all of them and by kind: {words}"
        for name, words in _INTERVAL.items()
    },
    **{
        f"own_return.{name}": f"with `--reward`: returns under it, last episodes: {words}"
        for name, words in _INTERVAL.items()
    },
    "workflow": "with `--workflow`: the order of repair, or all",
    **{
        f"alignment.{name}": f"with `--workflow`: rewards for following, last episodes: {words}"
        for name, words in _INTERVAL.items()
    },
    "compliance": "with `--workflow`: share of the last episodes' fixes that followed the order",
    "fixes_per_episode": "with `--workflow`: fixes in an episode, on average",
    "share_without_fix": "with `--workflow`: share of the last episodes without any fix",
    "follows_workflow": (
        "with `--workflow`: whether `--compliance-threshold` and `--min-fixes` are met"
    ),
    "faults": "rows of faults.csv",
    "seed": "the seed",
    "device": "cpu or cuda: where the networks learnt",
    "threads": "threads that played and learnt",
    "lag.*": "columns of rollouts that were played by weights so many updates old",
    "dropped_steps": "steps that were too old to learn from",
    "rollouts.received": "rollouts that arrived",
    "rollouts.learnt": "rollouts that were learnt from",
    "rollouts.dropped": "rollouts that were wholly too old",
    "versions.*": "of phalanx, Python and the packages; of a checkout also the commit it is at",
    "machine.*": "cores, processor and system",
    "score": (
        "after `phalanx train` on CAGE-2: the scores that it printed, as `phalanx evaluate --json` "
        "writes them"
    ),
}

EXPLAINED = {"updates": UPDATES, "episodes": EPISODES, "faults": FAULTS, "summary": SUMMARY}


def entry_for(name: str, table: Mapping[str, str]) -> str | None:
    """The entry of a table that explains a column or key; None if there is none."""
    if name in table:
        return name
    return next((entry for entry in table if "*" in entry and fnmatchcase(name, entry)), None)


def keys_of(facts: Mapping[str, object], table: Mapping[str, str] = SUMMARY) -> list[str]:
    """The keys of nested facts, joined by dots; one that is explained as a whole stays whole."""
    found: list[str] = []
    for name, value in facts.items():
        if isinstance(value, Mapping) and name not in table:
            found += [f"{name}.{key}" for key in keys_of(value, {})]
        else:
            found.append(name)
    return found
