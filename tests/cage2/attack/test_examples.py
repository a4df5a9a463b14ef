"""The built-in attackers as examples of one's own: move for move the same on the same dice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from phalanx.cage2 import Batch
from phalanx.cage2.attack.attacker import Attacker
from phalanx.cage2.attack.find import find_attacker
from phalanx.cage2.attack.knowledge import view_dtype
from phalanx.cage2.rules.batch_turn import LOG, replay_turn
from phalanx.cage2.rules.network import heads
from phalanx.cage2.rules.red_actions import BITS_OF_ACTION, IMPACT, RED_SLEEP
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, NUM_ACTIONS, action_index
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.rule import records

EXAMPLES = Path(__file__).parents[3] / "examples" / "attackers"
WRITTEN = [name for name in ALL_RED_AGENTS if name != "sleep"]
SIZE, TURNS = 200, 100
REPAIRS = [*range(15, 28), *range(132, 145)]
WAY_TO_SERVER = action_index("Restore", "Enterprise2")


def asker(example: Attacker) -> Callable[..., None]:
    """Asks it in the place of each network's attacker."""
    attack = numba.njit(example.function)

    @numba.njit  # type: ignore[untyped-decorator]
    def ask(views: Any, dice: Any, moves: Any) -> None:
        for i in range(len(views)):
            moves[i] = attack(views[i], views[i].memory, dice[i])

    return ask


@numba.njit  # type: ignore[untyped-decorator]
def throw(nets: Any, coins: Any) -> None:
    for i in range(len(nets)):
        coins[i] = heads(nets[i])


@pytest.mark.parametrize("rules", ["2.1-final", "2.1-leaderboard"])
@pytest.mark.parametrize("name", WRITTEN)
def test_an_example_makes_the_moves_of_the_built_in_attacker(name: str, rules: str) -> None:
    """The built-in one plays; the example sees what it sees, and has the bits of its dice.

    Blue repairs and places decoys at random in a third of the networks, takes the way to the server
    from red in another one, and leaves the last alone.
    """
    example = find_attacker(f"{EXAMPLES / name}.py:{name}")
    assert isinstance(example, Attacker)
    rng, ask = np.random.default_rng(3), asker(example)
    players = [name] * (SIZE - 1) + [example]  # one of one's own, so that memories are kept
    nets = Batch(SIZE, red_agent=players, rules=rules, seed=2, horizon=TURNS + 1).nets
    nets = nets[:-1].copy()
    log, everyone = records(len(nets), LOG), np.ones(len(nets), np.bool_)
    moves, coins = np.zeros(len(nets), np.int64), np.zeros(len(nets), np.int64)
    made = set[int]()
    for turn in range(TURNS):
        anything = rng.integers(NUM_ACTIONS, size=len(nets))
        blue = np.where(rng.random(len(nets)) < 0.3, rng.choice(REPAIRS, len(nets)), anything)
        blue[::3] = 0
        blue[1::3] = rng.choice([0, 0, 0, WAY_TO_SERVER], len(blue[1::3]))
        dice = rng.integers(2**32, size=(len(nets), 3))
        throw(nets, coins)
        ask(nets.view(view_dtype(nets.dtype)), dice[:, 0] << 31 | coins, moves)
        replay_turn(CAGE2_WORLDS, nets, everyone, blue, dice, log)
        action, target = log["red"].astype(np.int64), log["target"].astype(np.int64)
        target[action == RED_SLEEP] = 0
        assert np.array_equal(moves, action | target << BITS_OF_ACTION), turn
        made |= set(action.tolist())
    assert {IMPACT} < made


@pytest.mark.parametrize("name", WRITTEN)
def test_it_comes_as_far_by_itself(name: str) -> None:
    """With dice of its own, which are others."""
    blue, means, errors = np.random.default_rng(1).integers(NUM_ACTIONS, size=(50, 2000)), [], []
    for red_agent in (name, f"{EXAMPLES / name}.py:{name}"):
        batch = Batch(2000, red_agent=red_agent, horizon=50, seed=5)
        for actions in blue:
            batch.play(actions)
        means.append(batch.shown.returns.mean())
        errors.append(batch.shown.returns.var() / 2000)
    assert abs(means[0] - means[1]) < 4 * np.sqrt(sum(errors))
    assert means[0] < -10


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "coin"])
def test_it_plays_in_other_networks_too(name: str) -> None:
    scenario = EXAMPLES.parents[1] / "tests" / "scenarios" / "more_users.yaml"
    batch = Batch(16, red_agent=f"{EXAMPLES / name}.py:{name}", scenario=scenario, horizon=60)
    rng = np.random.default_rng(0)
    for _ in range(61):
        batch.play(rng.integers(batch.num_actions, size=16))
    assert batch.shown.returns.mean() < -5
