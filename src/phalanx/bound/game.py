"""The relaxed game against one attacker: all its positions, and what they are worth."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from phalanx.bound.graph import (
    EXPLORED,
    FOUND,
    add_position,
    explore,
    look_up,
    make_graph,
    with_twice_the_room,
)
from phalanx.bound.induction import Solved, solve
from phalanx.bound.menus import make_menus
from phalanx.bound.position import positions_of
from phalanx.cage2.belief import prior_of
from phalanx.cage2.rules.belief import words_of
from phalanx.cage2.rules.scenario import DEFAULT_RULES

FIRST_ROOM = (1 << 16, 1 << 18, 1 << 18, 1 << 20)  # positions, moves, branches, outcomes
AT_A_TIME = 20_000  # positions between two calls of `on_found`


class RelaxedGame:
    """Blue sees more than it can, and has decoys for nothing: what no defender can beat.

    game = RelaxedGame("b_line", rules="2.1-leaderboard")
    numbers = game.positions_of(batch.nets)          # of any networks with this attacker and rules
    for solved in game.solve(100):                   # with 1, 2, ... 100 turns left
        solved.values[numbers], solved.actions[numbers]
    """

    def __init__(
        self,
        red_agent: str,
        *,
        rules: str = DEFAULT_RULES,
        on_found: Callable[[int], None] = lambda positions: None,
    ) -> None:
        self.menus = make_menus()
        self.start = prior_of(red_agent, rules, 1).states
        self.graph = make_graph(*FIRST_ROOM)
        add_position(self.graph, self.menus, words_of(self.start)[0])
        counts = self.graph.counts
        while counts[EXPLORED] < counts[FOUND]:
            if not explore(self.graph, self.menus, AT_A_TIME):
                self.graph = with_twice_the_room(self.graph)
                counts = self.graph.counts
            on_found(int(counts[FOUND]))

    def positions_of(self, nets: npt.NDArray[np.void]) -> npt.NDArray[np.int32]:
        """The numbers of the positions of networks; -1 for what cannot come up in this game."""
        return look_up(self.graph, words_of(positions_of(nets, self.menus)))

    def solve(self, turns: int, at_once: bool = False) -> Iterator[Solved]:
        """What positions are worth with 1, 2, ... turns left; see `induction.solve`."""
        return solve(self.graph, self.menus, turns, at_once)
