"""Which of many episodes to look at: the worst, the best, the median or a typical one."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from phalanx.play.cells import order_numbers
from phalanx.play.episodes import play_episodes
from phalanx.play.evaluate_config import Games
from phalanx.play.players import Player
from phalanx.show.replay.config import PICKS
from phalanx.show.replay.episode import Chosen

BEST, MEDIAN, TYPICAL, WORST = PICKS


def pick_episode(
    games: Games,
    player: Player,
    chosen: Chosen,
    pick: str,
    played: Callable[[int, float], None] = lambda *_: None,
) -> tuple[int, npt.NDArray[np.float64]]:
    """The number of an episode out of those that `phalanx evaluate` plays, and all their returns.

    played: hears how many episodes were played, and the mean return so far.
    """
    horizons: tuple[int, ...] = (chosen.horizon,)
    if pick == TYPICAL:  # what every turn had brought by then
        horizons = tuple(range(1, chosen.horizon + 1))
    orders = order_numbers(chosen.workflow or player.workflow, games.episodes)

    def heard(rows: int, mean: float) -> None:
        played(rows // len(horizons), mean)

    so_far = play_episodes(games, player, chosen.red_agent, horizons, orders, heard).returns
    return choose(so_far, pick), so_far[:, -1]


def choose(so_far: npt.NDArray[np.float64], pick: str) -> int:
    """The first of those that fit. so_far: [N, T] the return of each episode after each turn.

    Typical is the episode whose return so far stays nearest to the mean of all, turn by turn.
    """
    if pick == TYPICAL:
        return int(np.abs(so_far - so_far.mean(axis=0)).mean(axis=1).argmin())
    ranked = np.argsort(so_far[:, -1], kind="stable")
    place = {WORST: 0, MEDIAN: (len(ranked) - 1) // 2, BEST: -1}[pick]
    level = so_far[ranked[place], -1]
    return int(np.flatnonzero(so_far[:, -1] == level)[0])
