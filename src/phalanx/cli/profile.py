"""The command `phalanx profile`: tables of where the time goes, and what to try."""

import json
from dataclasses import fields

from rich.console import Console

from phalanx.display import new_table, progress_display
from phalanx.files import write_json, write_text
from phalanx.machine import describe_machine
from phalanx.show.profile.bottleneck import CROWDED, Verdict, bottleneck
from phalanx.show.profile.config import ProfileConfig
from phalanx.show.profile.profile import Profile, profile
from phalanx.show.profile.python_functions import Function, most_expensive
from phalanx.show.profile.trace_file import Trace
from phalanx.stopwatch import PARTS

FUNCTIONS = 20
WIDTH = 130  # of tables, where there is no terminal
NEXT_TO_NOTHING = 0.0005


def main(config: ProfileConfig) -> int:
    """Train for a few seconds and tell where they went."""
    trace = None if config.trace_file is None else Trace()
    with progress_display(None, wanted=not config.quiet) as display:
        task = display.add_task("starting", total=None, note="")
        seen = profile(config, trace, lambda phase: display.update(task, description=phase))
    verdict = bottleneck(seen)
    costly = most_expensive(seen.functions, FUNCTIONS, but="show/profile/profile.py")
    show(seen, verdict, costly)
    if trace is not None and config.trace_file is not None:
        write_text(config.trace_file, json.dumps(trace.as_events()) + "\n")
        whole = "" if trace.is_full_at is None else f" (of the first {trace.is_full_at:.1f} s)"
        spans = f"{len(trace.spans):,} spans{whole}"
        print(f"{config.trace_file}: {spans}, for ui.perfetto.dev or speedscope.app")
    if config.json is not None:
        write_json(config.json, as_dict(seen, verdict, costly))
    return 0


def show(seen: Profile, verdict: Verdict, costly: list[Function]) -> None:
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    title = f"Where {seen.seconds:.1f} s of training went, in percent"
    used = [part for part in PARTS if any(split[part] for split in seen.shares.values())]
    rows = [
        [name, *(_cell(split[part]) for part in used), f"{100 * sum(split.values()):.1f}"]
        for name, split in seen.shares.items()
    ]
    console.print(new_table(title, ["thread", *used, "sum"], rows, words=["thread"]))
    for line in (*facts_in_words(seen), "", verdict.sentence):
        print(line)
    for k, advice in enumerate(verdict.advice):
        print(f"{'try ' if k == 0 else 'or  '}{advice}")
    print()
    title = f"Python functions by what they and all they called took, in {seen.counted_s:.1f} s"
    rows = [
        [*one[:3], f"{one.calls:,}", f"{one.own_s:.3f}", f"{one.total_s:.3f}"]
        for one in costly  # [:3]: thread, name, place
    ]
    columns = ["thread", "function", "place", "calls", "own s", "total s"]
    console.print(new_table(title, columns, rows, words=columns[:3]))
    for line in seen.unseen:
        print(f"not seen: {line}")


def facts_in_words(seen: Profile) -> list[str]:
    steps, episodes = seen.steps / seen.seconds, seen.episodes / seen.seconds
    lines = [f"{seen.updates:,} updates: {steps:,.0f} steps/s, {episodes:,.1f} episodes/s"]
    if seen.is_fused:
        lines.append(
            "simulator and policy are one compiled call: it reads the processor's counter whenever "
            "128 networks go from one to the other"
        )
    if seen.barriers_per_episode is not None:
        lines.append(f"barriers per episode: {seen.barriers_per_episode:,.2f}")
    if seen.tasks and seen.updates and seen.threads > 1:
        lines.append(f"meetings of the threads per update: {seen.tasks / seen.updates:,.0f}")
    if seen.num_workers and seen.shares.get("main"):
        size = seen.bytes_per_step
        known = "not known, values are messages" if size is None else f"{size:,}"
        lines.append(f"bytes between processes per environment step: {known}")
    if seen.others_cores > CROWDED:
        lines.append(
            f"warning: other programs kept {seen.others_cores:.1f} of {seen.cores} cores busy: "
            "waiting is larger than on a quiet machine"
        )
    return lines


def as_dict(seen: Profile, verdict: Verdict, costly: list[Function]) -> dict[str, object]:
    """For --json."""
    plain = ("config", "functions", "shares", "unseen")
    return {
        **{item.name: getattr(seen, item.name) for item in fields(seen) if item.name not in plain},
        "steps_per_s": seen.steps / seen.seconds,
        "episodes_per_s": seen.episodes / seen.seconds,
        "threads_and_processes": seen.shares,
        "sums": {name: sum(split.values()) for name, split in seen.shares.items()},
        "bottleneck": verdict.sentence,
        "try": verdict.advice,
        "functions": [one._asdict() for one in costly],
        "not_seen": seen.unseen,
        "settings": seen.config.as_dict(),
        "machine": describe_machine(),
    }


def _cell(share: float) -> str:
    return f"{100 * share:.1f}" if share > NEXT_TO_NOTHING else ""
