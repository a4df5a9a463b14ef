"""How a run is going, for whoever watches: on a terminal, in a log file, or in a notebook."""

import html
import math
import time
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from phalanx.display import left, span, sparkline
from phalanx.statistics import interval
from phalanx.stopwatch import split_in_words
from phalanx.training.run import Run
from phalanx.training.time_split import COLLECTING
from phalanx.training.update_record import Episode

EVERY_S = 0.9  # how often the facts are brought up to date at most
POINTS = 128  # of a curve; twice as many are halved
LABELS = 9  # characters
RARE = 0.1  # of the episodes: kinds with fewer are told together


class Returns(NamedTuple):
    """The last episodes of one kind."""

    kind: str
    mean: float
    reach: float
    """of the 95 % interval, to either side"""
    curve: tuple[float, ...]
    """means over the run so far"""


class Facts(NamedTuple):
    """How a run is going at one moment."""

    share: float
    """done, 0 to 1"""
    left_s: float | None
    at: float
    """when that was, by `time.monotonic`"""
    done: int
    unit: str
    """of what is counted: episodes or steps"""
    speed: float
    returns: tuple[Returns, ...]
    episodes: int
    """that the returns are of"""
    split: str
    samplers: str
    added: dict[str, str]
    """by the game: lines by their label"""
    warnings: tuple[str, ...]


class Curve:
    """Numbers of a run so far, coarser the longer it lasts."""

    def __init__(self) -> None:
        self.points: list[float] = []
        self._each, self._sum, self._count = 1, 0.0, 0

    def add(self, value: float) -> None:
        if not math.isfinite(value):
            return
        self._sum, self._count = self._sum + value, self._count + 1
        if self._count == self._each:
            self.points.append(self._sum / self._count)
            self._sum, self._count = 0.0, 0
        if len(self.points) == 2 * POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points, self._each = [(a + b) / 2 for a, b in pairs], 2 * self._each


class TrainingView:
    """Looks at a run after each update, and draws what it saw last, whoever asks.

    view = TrainingView(run)
    view.look()                # in the run's own thread; most of the time it costs next to nothing
    print(view.in_file())      # in any thread
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._curves = {kind: Curve() for kind in run.extension.kinds}
        self._first, self._began = run.progress, time.monotonic()
        self._looked = -math.inf
        self.facts: Facts | None = None  # before the first update

    def look(self, at_once: bool = False) -> None:
        run, now = self._run, time.monotonic()
        for kind, curve in self._curves.items():
            curve.add(run.latest.get(f"return_{kind}", math.nan))
        if run.updates and (at_once or now - self._looked >= EVERY_S):
            self._looked = now
            self.facts = self._facts(now)

    def _facts(self, now: float) -> Facts:
        run, share = self._run, self._run.progress
        gained = share - self._first
        unit = "steps" if run.config.total_steps is not None else "episodes"
        done, recent = getattr(run, unit), list(run.recent)
        own = [sampler.watch for sampler in run.source.samplers if run.workers is None]
        others = [watch.peek() for watch in own if watch is not run.watch]
        together = {part: sum(one[part] for one in others) for part in (others or [{}])[0]}
        return Facts(
            share,
            (now - self._began) * (1 - share) / gained if gained > 0 else None,
            now,
            done,
            unit,
            done / run.spent_s,
            tuple(self._returns(recent)),
            len(recent),
            split_in_words({k: v for k, v in run.seconds.items() if k != COLLECTING}),
            split_in_words(together),
            run.extension.in_words(recent),
            tuple(run.warnings()),
        )

    def _returns(self, recent: list[Episode]) -> list[Returns]:
        totals: dict[str, list[float]] = {kind: [] for kind in self._curves}
        for episode in recent:
            totals[episode.kind].append(episode.total)
        often = [kind for kind, those in totals.items() if len(those) >= RARE * len(recent) > 0]
        rare = {kind: those for kind, those in totals.items() if those and kind not in often}
        returns = [_returns_of(kind, totals[kind], self._curves[kind]) for kind in often]
        if len(rare) == 1:
            ((kind, those),) = rare.items()
            returns.append(_returns_of(kind, those, self._curves[kind]))
        elif rare:
            all_rare = [total for those in rare.values() for total in those]
            returns.append(_returns_of(f"{len(rare)} others", all_rare, Curve()))
        return returns

    # --- three ways to look at it -----------------------------------------------------------------

    def on_terminal(self) -> RenderableType:
        first = Table.grid(expand=True, padding=(0, 2, 0, 0))
        first.add_column(width=LABELS - 1)
        first.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for _ in ("bar", "share", "left"):
            first.add_column(no_wrap=True, justify="right")
        f = self.facts
        bar = ProgressBar(total=1.0, completed=f.share if f else 0.0, width=20)
        shares = (f"{f.share:.0%}".replace("%", " %"), self._left(f)) if f else ("", "")
        first.add_row(Text("training", style="bold"), self.title, bar, *shares)
        if f is None:
            return Group(first, _labelled("", self.before_first()))
        lines = [_labelled("return", _returns_in_words(f))] if f.returns else []
        lines.append(_labelled("speed", f"{_speed(f.speed)} {f.unit}/s · {f.split}"))
        if f.samplers:
            lines.append(_labelled("samplers", f.samplers))
        lines += [_labelled(label, words) for label, words in f.added.items()]
        lines += [_labelled("warning", one, "yellow") for one in f.warnings]
        return Group(first, *lines)

    def in_file(self) -> str:
        """`12:04:10  62 %  124,000 episodes  1,042/s  b_line -10.4  meander -13.5  1:09 left`."""
        f, clock = self.facts, time.strftime("%H:%M:%S")
        if f is None:
            return f"{clock}  {self.before_first()}"
        words = [clock, f"{f.share:.0%}".replace("%", " %"), f"{f.done:,} {f.unit}"]
        words.append(f"{_speed(f.speed)}/s")
        words += [f"{one.kind} {one.mean:.1f}" for one in f.returns]
        if f.returns and math.isfinite(reach := _reach(f)):
            words.append(f"± {reach:.1f}")
        words += f.added.values()
        words += [f.split.replace(" · ", "  "), self._left(f), *f.warnings]
        return "  ".join(filter(None, words))

    def in_cell(self) -> str:
        f = self.facts
        if f is None:
            return f"<div>{html.escape(self.before_first())}</div>"
        rows = {
            "return": _returns_in_words(f) if f.returns else "",
            "speed": f"{_speed(f.speed)} {f.unit}/s · {f.split}",
            "samplers": f.samplers,
            **f.added,
            "warning": "; ".join(f.warnings),
        }
        cells = "".join(
            f"<tr><th style='text-align:left'>{name}</th>"
            f"<td style='text-align:left'>{html.escape(words)}</td></tr>"
            for name, words in rows.items()
            if words
        )
        share = f"{f.share:.0%}".replace("%", " %")
        return (
            f"<div><b>{html.escape(self.title)}</b> <progress value='{f.share:.4f}' max='1'>"
            f"</progress> {share} &nbsp; {html.escape(self._left(f))}</div><table>{cells}</table>"
        )

    @property
    def title(self) -> str:
        """`first · ppo · b_line, meander`."""
        run = self._run
        what = ", ".join(run.extension.kinds)
        return f"{run.folder.path.name} · {run.config.algo} · {what}"

    def before_first(self) -> str:
        return f"before its first update, {span(time.monotonic() - self._began)}"

    def _left(self, facts: Facts) -> str:
        """Counted down since the facts were looked at."""
        if facts.left_s is None:
            return ""
        return f"{left(facts.left_s - (time.monotonic() - facts.at))} left"


def _returns_of(kind: str, totals: list[float], curve: Curve) -> Returns:
    known = interval(totals)
    reach = math.nan if known["high"] is None else known["high"] - known["mean"]
    return Returns(kind, known["mean"], reach, tuple(curve.points))


def _labelled(label: str, words: str, style: str = "") -> Text:
    line = Text(f"{label:<{LABELS}} ", style="bold", no_wrap=True, overflow="ellipsis")
    line.append(words, style=style or "not bold")
    return line


def _returns_in_words(facts: Facts) -> str:
    """`b_line -10.4 ▁▃▅▆▇▇   meander -13.5 ▁▄▆▆▇▇   (last 2,000 episodes, ± 0.2)`."""
    words = [
        f"{one.kind} {one.mean:.1f}".replace("-", "\N{MINUS SIGN}") + f" {sparkline(one.curve)}"
        for one in facts.returns
    ]
    words = [word.rstrip() for word in words]
    reach = _reach(facts)
    sure = f", ± {reach:.1f}" if math.isfinite(reach) else ""
    return "   ".join([*words, f"(last {facts.episodes:,} episodes{sure})"])


def _reach(facts: Facts) -> float:
    """The widest of the intervals."""
    return max(one.reach for one in facts.returns)


def _speed(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"
