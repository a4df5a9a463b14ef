"""A recorded game of the original, replayed turn by turn with the outcomes that it had."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from phalanx.cage2.attack.own_red import OwnRed
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS
from phalanx.cage2.scenario.worlds import worlds_of
from phalanx.cage2.settings import DEFAULT_PRIOR, FIRST_OWN, red_agent_number
from phalanx.errors import TraceError
from phalanx.show.replay.left_out import prior_told
from phalanx.show.replay.trajectory import Recorder
from phalanx.verify.replay import (
    VerifyResult,
    begin_recorded,
    loaded_dice,
    recorded_moves,
    recorded_red,
)
from phalanx.verify.replay import replay as replay_all
from phalanx.verify.traces import Traces, read_traces


def record_trace(path: Path, episode: int, red_agent: str | None = None) -> Recorder:
    """Episode number `episode` of a folder of recorded games, or of one of its files."""
    traces, number = find_episode(path, episode, red_agent)
    one = only(traces, number)
    result = VerifyResult(one.rules)
    replay_all(one, result)
    if result.mismatches:
        raise TraceError(f"the replay leaves the recording: {result.first_mismatch}")
    worlds = worlds_of([one.scenario])
    nets, is_own = begin_recorded(one, worlds), int(one.red[0]) == FIRST_OWN
    if is_own:
        OwnRed((recorded_red,), worlds, [one.scenario])
    turns = len(one.steps["blue"])
    nets["horizon"] = turns
    prior, left_out = prior_told(one.scenario, DEFAULT_PRIOR, one.path.stem if is_own else "")
    if (one.steps["green"] > 0).any() and not one.scenario.green:
        prior, left_out = None, ["The belief is left out: how often green acts is not recorded."]
    recorder = Recorder(
        nets,
        policy="recorded",
        seed=None,
        episode=episode,
        source="trace",
        horizon=turns,
        prior=prior,
        scenario=one.scenario,
        worlds=worlds,
        attackers=(*ALL_RED_AGENTS, one.path.stem),
    )
    recorder.notes += left_out
    for turn in range(turns):
        step = {name: values[turn : turn + 1] for name, values in one.steps.items()}
        if is_own:
            recorder.nets["memory"][:, 0] = recorded_moves(step)
        recorder.play(int(step["blue"][0]), dice=loaded_dice(step))
    return recorder


def find_episode(path: Path, episode: int, red_agent: str | None) -> tuple[Traces, int]:
    """The file of an episode, and its number there."""
    count = 0
    for traces in read_traces(path):
        mine = np.arange(len(traces.red))
        if red_agent is not None:
            mine = mine[traces.red == red_agent_number(red_agent)]
        if episode < count + len(mine):
            return traces, int(mine[episode - count])
        count += len(mine)
    whose = "" if red_agent is None else f" of {red_agent}"
    raise TraceError(
        f"{path} has {count} episodes{whose}, numbered from 0; got --episode {episode}"
    )


def only(traces: Traces, episode: int) -> Traces:
    """The same recording with one of its episodes."""
    rows = slice(int(traces.start[episode]), int(traces.start[episode + 1]))
    mine = slice(episode, episode + 1)
    return replace(
        traces,
        red=traces.red[mine],
        start=np.array([0, rows.stop - rows.start]),
        steps={name: values[rows] for name, values in traces.steps.items()},
        initial={name: values[mine] for name, values in traces.initial.items()},
    )
