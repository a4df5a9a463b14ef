"""Upper bounds: the mean return that no defender can beat."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.bound.game import RelaxedGame
from phalanx.cage2.rules.batch_turn import LOG, replay_turn
from phalanx.cage2.rules.network import LOADED, NETWORK
from phalanx.cage2.rules.scenario import (
    B_LINE,
    NUM_ACTIONS,
    NUM_HOSTS,
    action_name,
)
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.rule import records

BLIND_TURNS = 2  # B-line draws its target in the second; until then all openings show the same


class Bound(NamedTuple):
    """No defender that sees only the 52 bits has a higher mean return than this."""

    red_agent: str
    rules: str
    horizon: int
    value: float
    at_once: float
    """the same for defenders that are told the true state in every turn: a looser bound"""
    opening: tuple[str, ...]
    """the first actions that reach `value`, where they had to be chosen blindly"""
    positions: int


class Openings(NamedTuple):
    """Blue's first actions, chosen before anything is seen, and where each target leaves it."""

    actions: npt.NDArray[np.int64]  # [openings, turns]
    positions: npt.NDArray[np.int32]  # [openings, targets]
    spent: npt.NDArray[np.int64]  # [turns + 1, openings, targets] tenths, after so many turns


def find_bounds(
    red_agent: str,
    horizons: Sequence[int],
    rules: str,
    on_found: Callable[[int], None] = lambda positions: None,
    on_turn: Callable[[], None] = lambda: None,
) -> list[Bound]:
    """A bound for each horizon. on_found: positions so far. on_turn: after each of 2 * the longest
    horizon.
    """
    game = RelaxedGame(red_agent, rules=rules, on_found=on_found)
    openings = blind_openings(game) if game.start["red"][0] == B_LINE else no_opening(game)
    late = _returns(game, openings, horizons, False, on_turn)
    at_once = _returns(game, openings, horizons, True, on_turn)
    found = []
    for horizon in horizons:
        best = int(late[horizon].argmax())
        found.append(
            Bound(
                red_agent,
                rules,
                horizon,
                float(late[horizon][best]) / 10 + 0.0,
                float(at_once[horizon].max()) / 10 + 0.0,
                tuple(action_name(int(a)) for a in openings.actions[best][:horizon]),
                game.graph.size,
            )
        )
    return found


def no_opening(game: RelaxedGame) -> Openings:
    """Blue knows all from the start."""
    positions = game.positions_of(game.start)[None]
    return Openings(np.zeros((1, 0), np.int64), positions, np.zeros((1, 1, 1), np.int64))


def blind_openings(game: RelaxedGame) -> Openings:
    """Both turns before B-line's target is known, played by the rules with every pair of actions
    and every target.
    """
    line = int(CAGE2_WORLDS["line_targets"][0])
    targets = np.array([host for host in range(NUM_HOSTS) if line >> host & 1])
    first, second, target = (
        axis.ravel() for axis in np.meshgrid(*[np.arange(NUM_ACTIONS)] * 2, targets, indexing="ij")
    )
    nets = records(len(first), NETWORK)
    nets[:] = game.start
    dice = np.zeros((len(nets), 3), np.int64)
    dice[:, 0] = LOADED + target
    log, everywhere = records(len(nets), LOG), np.ones(len(nets), np.bool_)
    spent = [np.zeros(len(nets), np.int64)]
    for actions in (first, second):
        replay_turn(CAGE2_WORLDS, nets, everywhere, actions, dice, log)
        spent.append(spent[-1] + log["cost"])
    by_target = (-1, len(targets))
    pairs = np.stack([first, second], 1).reshape(*by_target, BLIND_TURNS)[:, 0]
    positions = game.positions_of(nets).reshape(by_target)
    return Openings(pairs, positions, np.stack([one.reshape(by_target) for one in spent]))


def _returns(
    game: RelaxedGame,
    openings: Openings,
    horizons: Sequence[int],
    at_once: bool,
    on_turn: Callable[[], None],
) -> dict[int, npt.NDArray[np.float64]]:
    """The mean return of each opening by horizon, in tenths."""
    assert openings.positions.min() >= 0, "an opening leads out of the relaxed game"
    blind = len(openings.spent) - 1
    returns = {horizon: -openings.spent[min(horizon, blind)].mean(axis=1) for horizon in horizons}
    for solved in game.solve(max(horizons) - blind, at_once):
        if solved.turns + blind in returns:
            returns[solved.turns + blind] += solved.values[openings.positions].mean(axis=1)
        on_turn()
    return returns
