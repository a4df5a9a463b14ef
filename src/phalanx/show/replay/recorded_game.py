"""A recorded game of the original, replayed turn by turn with the outcomes that it had."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from phalanx.cage2.rules.scenario import HOSTS
from phalanx.cage2.settings import red_agent_number
from phalanx.errors import TraceError
from phalanx.show.replay.trajectory import Recorder
from phalanx.verify.replay import VerifyResult, begin_recorded, loaded_dice
from phalanx.verify.replay import replay as replay_all
from phalanx.verify.traces import Traces, read_traces


def record_trace(path: Path, episode: int, red_agent: str | None = None) -> Recorder:
    """Episode number `episode` of a folder of recorded games, or of one of its files."""
    traces, number = find_episode(path, episode, red_agent)
    one = only(traces, number)
    if one.scenario.host_names != HOSTS:
        raise TraceError(
            f"{one.path} was recorded in scenario {one.scenario.name}; replays show CAGE-2 only: "
            "see it checked by phalanx verify"
        )
    result = VerifyResult(one.rules)
    replay_all(one, result)
    if result.mismatches:
        raise TraceError(f"the replay leaves the recording: {result.first_mismatch}")
    nets = begin_recorded(one)
    turns = len(one.steps["blue"])
    nets["horizon"] = turns
    recorder = Recorder(
        nets, policy="recorded", seed=None, episode=episode, source="trace", horizon=turns
    )
    for turn in range(turns):
        step = {name: values[turn : turn + 1] for name, values in one.steps.items()}
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
