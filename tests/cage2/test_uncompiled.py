"""The kernels as plain Python: run by test_architecture.py in a process without compilation."""

from dataclasses import replace

import numpy as np
import pytest

from phalanx.cage2 import Batch
from phalanx.cage2.rules.scenario import NUM_ACTIONS
from phalanx.compiled.rule import COMPILED
from phalanx.verify.replay import VerifyResult, replay
from phalanx.verify.traces import Traces, read_folder
from tests.verify.test_verify import GOLDEN

pytestmark = pytest.mark.skipif(COMPILED, reason="runs where compilation is off")


def first_episodes(traces: Traces, count: int) -> Traces:
    start = traces.start[: count + 1]
    steps = {name: values[: start[-1]] for name, values in traces.steps.items()}
    initial = {name: values[:count] for name, values in traces.initial.items()}
    return replace(traces, red=traces.red[:count], start=start, steps=steps, initial=initial)


@pytest.mark.parametrize("name", ["final", "leaderboard"])
def test_recorded_steps_come_out_equal(name: str) -> None:
    for traces in read_folder(GOLDEN / name):
        result = VerifyResult(traces.rules)
        replay(first_episodes(traces, 20), result)
        assert result.steps > 300
        assert result.mismatches == 0


@pytest.mark.parametrize("observation", ["bits", "history", "memory", "belief"])
def test_a_batch_plays(observation: str) -> None:
    batch = Batch(3, red_agent="b_line=0.5,meander=0.5", observation=observation, horizon=20)
    for actions in np.random.default_rng(0).integers(NUM_ACTIONS, size=(45, 3)):
        shown = batch.play(actions)
    assert batch.nets["episode"].tolist() == [2, 2, 2]
    assert shown.rewards.max() <= 0
    assert batch.action_masks().shape == (3, NUM_ACTIONS)
