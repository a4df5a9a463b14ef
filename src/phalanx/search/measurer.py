"""Where a search plays: its policies, told an order, on dice that all orders share."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.settings import red_agent_weights
from phalanx.cage2.workflow import NUM_ORDERS, order_name
from phalanx.learn.cage2.all_orders import PlayedOrders
from phalanx.play.all_orders import BY_ITSELF, play_with_all_orders
from phalanx.play.episodes import play_episodes
from phalanx.play.evaluate_config import Games
from phalanx.play.players import Player, trained_player
from phalanx.play.trained import TrainedDefender, load_defender
from phalanx.search.config import SearchConfig
from phalanx.search.logs import find_policy
from phalanx.search.measured import Row
from phalanx.statistics import interval
from phalanx.training.cage2_extension import passes_gate
from phalanx.training.folder import RunFolder
from phalanx.training.recipe import Network

MEASURE, FINAL, CONFIRM = 2_000_003, 3_000_017, 4_000_037  # added to the seed: dice of their own
NEXT_LEARNER = 10_000_019  # ... and for each learner
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


class Measured(NamedTuple):
    """A policy that was told an order, over some episodes."""

    figures: dict[str, Any]
    """as summary.json has them"""
    returns: npt.NDArray[np.float64]
    fixes: npt.NDArray[np.int64]
    """of each episode"""
    compliant: npt.NDArray[np.int64]
    """... that followed the order"""
    passed: bool
    """the gate"""


class Measurer:
    """Plays the policies in the folder of a search.

    reference: the order that others are compared with, on the same dice; None: no other is.
    """

    reference: int | None = None

    def __init__(self, config: SearchConfig, folder: RunFolder, network: Network | None) -> None:
        self.config, self.folder, self.network = config, folder, network
        self.weights = red_agent_weights(config.red_agent)
        self._defenders: dict[Path, TrainedDefender] = {}
        self._reference_returns: dict[tuple[str, int], Floats] = {}

    def measure(self, number: int, learner: int = 1) -> list[Row]:
        """Play a learner's policy for an order against each attacker.

        All orders meet the same dice; other learners meet others, so that what they differ in holds
        all luck.
        """
        path, rows = self.policy_of(number, learner), []
        for attacker, episodes in self.episodes_against().items():
            dice = dice_of(learner)
            played = self.play(path, number, episodes, dice, order_name(number), red_agent=attacker)
            paired = self._paired_error(number, learner, attacker, played.returns)
            rows.append(row_of(played, attacker, learner, number, paired, {}))
        return rows

    def measure_all(self, learner: int) -> list[Row]:
        """The same for all orders, which a learner's school has taught it; also judged by their
        reverses.
        """
        path, by_order = self.policy_of(0, learner), [list[Row]() for _ in range(NUM_ORDERS)]
        for attacker, episodes in self.episodes_against().items():
            played = self.play_all(path, episodes, dice_of(learner), attacker)
            if self.reference is not None:
                self._reference_returns[attacker, learner] = played.returns[:, self.reference]
            for number, rows in enumerate(by_order):
                returns, fixes = played.returns[:, number], played.fixes[:, number]
                judged = played.compliant[:, :, number]
                own = self._measured(number, order_name(number), returns, fixes, judged[BY_ITSELF])
                again = judged_again(fixes, *judged)
                paired = self._paired_error(number, learner, attacker, returns)
                rows.append(row_of(own, attacker, learner, number, paired, again))
        return [row for rows in by_order for row in rows]

    def play_all(
        self, path: Path, episodes: int, dice: int, red_agent: str | None = None
    ) -> PlayedOrders:
        """Play a policy with all orders, as `play` does with one."""
        player, against = self._player(path, "all orders"), red_agent or self.config.red_agent
        games = self._games(episodes, dice)
        return play_with_all_orders(games, player, against, self.config.horizon)

    def measure_free(self, learner: int) -> list[Row]:
        """Play a learner without workflows, on the dice that all orders of that learner meet."""
        dice = dice_of(learner)
        return [
            row_of(
                self.play(
                    self.folder.path / f"free-{learner}",
                    0,
                    episodes,
                    dice,
                    "no order",
                    red_agent=attacker,
                ),
                attacker,
                learner,
                None,
                None,
                {},
            )
            for attacker, episodes in self.episodes_against().items()
        ]

    def episodes_against(self) -> dict[str, int]:
        """How many episodes measure an order against each attacker."""
        many = self.config.episodes_of_a_visit
        if self.config.judges_all or len(self.weights) == 1:
            return dict.fromkeys(self.weights, many)
        return {name: max(2, round(many * weight)) for name, weight in self.weights.items()}

    def _paired_error(
        self, number: int, learner: int, attacker: str, returns: Floats
    ) -> float | None:
        """The standard error of a mean without what the dice do to all orders alike.

        By how much the differences from one order of reference scatter: half of that is its own.
        """
        key = attacker, learner
        if self.reference is None or number == self.reference:
            self._reference_returns[key] = returns
            return None
        if key not in self._reference_returns:  # it was measured before this search was resumed
            first = self.reference
            again = self.play(
                self.policy_of(first, learner),
                first,
                len(returns),
                dice_of(learner),
                "reference",
                red_agent=attacker,
            )
            self._reference_returns[key] = again.returns
        apart = returns - self._reference_returns[key]
        return float(np.std(apart, ddof=1) / math.sqrt(2 * len(apart)))

    def play(
        self,
        path: Path,
        number: int,
        episodes: int,
        dice: int,
        name: str,
        *,
        red_agent: str | None = None,
        judged_by: str | None = None,
        rule: str | None = None,
    ) -> Measured:
        """Play a policy that is told an order; equal `dice` are equal games for all policies.

        red_agent: if not all that the search is about. judged_by: an order other than that told.
        rule: a rule of compliance other than the search's.
        """
        games = self._games(episodes, dice, rule=rule, judged_by=judged_by)
        orders = np.full(episodes, number)
        against = red_agent or self.config.red_agent
        horizons = (self.config.horizon,)
        played = play_episodes(games, self._player(path, name), against, horizons, orders)
        returns, fixes, compliant = played.returns[:, 0], played.fixes[:, 0], played.compliant[:, 0]
        return self._measured(number, name, returns, fixes, compliant)

    def _player(self, path: Path, name: str) -> Player:
        """The policy in a folder, which is opened once."""
        if path not in self._defenders:
            self._defenders[path] = load_defender(path, self.network)
        return trained_player(name, self._defenders[path])

    def _games(
        self, episodes: int, dice: int, rule: str | None = None, judged_by: str | None = None
    ) -> Games:
        c = self.config
        return Games(
            episodes,
            c.rules,
            (c.seed + dice) % 2**63,
            c.threads,
            rule or c.compliance_rule,
            judged_by=judged_by,
            simulator=c.simulator,
        )

    def _measured(
        self, number: int, name: str, returns: Floats, fixes: Numbers, compliant: Numbers
    ) -> Measured:
        figures = {
            "workflow": number,
            "order": order_name(number),
            "name": name,
            **interval(returns),
            "compliance": float(compliant.sum() / fixes.sum()) if fixes.any() else None,
            "fixes_per_episode": float(fixes.mean()),
            "share_without_fix": float((fixes == 0).mean()),
        }
        return Measured(figures, returns, fixes, compliant, passes_gate(figures, self.config))

    def policy_of(self, number: int, learner: int = 1) -> Path:
        return find_policy(self.folder.path, self.config.start_from, number, learner)


def dice_of(learner: int) -> int:
    """Those on which all orders of a learner are measured."""
    return MEASURE + (learner - 1) * NEXT_LEARNER


def judged_again(
    fixes: Numbers, own: Numbers, reverse: Numbers, either: Numbers
) -> dict[str, float | None]:
    """Columns of measured.csv, of episodes that were judged in several ways.

    fixes: of each episode; of these own and reverse followed the order and its reverse, and
    `either` would have followed every order. Where red holds one type of hosts, an order and its
    reverse agree; of all other fixes at most one of the two allows any.
    """
    by_own = int((own - either).sum())
    disputed = by_own + int((reverse - either).sum())
    return {
        "reverse_compliance": float(reverse.sum() / fixes.sum()) if fixes.any() else None,
        "disputed_fixes": disputed / len(fixes),
        "disputed_compliance": by_own / disputed if disputed else None,
    }


def row_of(
    played: Measured,
    attacker: str,
    learner: int,
    number: int | None,
    paired: float | None,
    judged: Mapping[str, float | None],
) -> Row:
    """A row of measured.csv; number None: of a learner that was not told to follow any order.

    judged: what judging it by other orders gave.
    """
    names = ("mean", "stderr", "compliance", "fixes_per_episode", "share_without_fix")
    told = {name: played.figures[name] for name in names}
    told |= {"paired_stderr": paired, **judged}
    if number is None:
        told["compliance"] = None
    figures: dict[str, Any] = {
        name: None if value is None else float(f"{value:.6g}")  # as the file has it
        for name, value in told.items()
    }
    episodes = len(played.returns)
    return Row(attacker=attacker, learner=learner, workflow=number, episodes=episodes, **figures)
