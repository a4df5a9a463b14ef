"""Play many episodes and say what they brought: mean, standard error, quantiles."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.workflow import NAMED_ORDERS, NUM_ORDERS, order_name, parse_order
from phalanx.errors import ConfigError
from phalanx.play.episodes import StateCost, play_episodes
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.in_env import play_env
from phalanx.play.players import Player, check_sampling, open_players
from phalanx.statistics import interval
from phalanx.training.recipe import Network, find_network

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Cell:
    """One policy against one attacker over one horizon."""

    policy: str
    red_agent: str
    horizon: int
    episodes: int
    mean: float
    stderr: float
    low: float
    high: float
    std: float
    min: float
    max: float
    quantiles: dict[str, float]
    workflow: str | None = None
    """the order of repair that was to be followed"""
    compliance: float | None = None
    """share of all fixes that followed it; None without a fix"""
    fixes_per_episode: float | None = None
    share_without_fix: float | None = None
    true_state: dict[str, Any] | None = None
    """what saving on the true state brought, and how far compliance is off by it"""


def play_cells(
    config: EvaluateConfig,
    played: Callable[[str, int, float], None] = lambda *_: None,
    players: Sequence[Player] | None = None,
    network: Network | None = None,
) -> Iterator[Cell]:
    """The cells of the table, one after the other. `played` hears: cell, episodes, mean.

    players: those that the settings name, if not given.
    network: the factory of a run's own network, if the settings do not name it.
    """
    if config.elsewhere:
        yield from _cells_elsewhere(config, played, network)
        return
    if players is None:
        players = open_players(config, network)
    if config.sample:
        check_sampling(players)
    if config.judged_by is not None and any(
        chosen_workflows(config, player.workflow) == [None] for player in players
    ):
        raise ConfigError("this policy is told no order; give --workflow instead of --judged-by")
    for player in players:
        workflows = chosen_workflows(config, player.workflow)
        for workflow, red_agent in product(workflows, config.red_agent):
            yield from _cells_against(config, player, workflow, red_agent, played)


def _cells_against(
    config: EvaluateConfig,
    player: Player,
    workflow: str | None,
    red_agent: str,
    played: Callable[[str, int, float], None],
) -> Iterator[Cell]:
    """A defender against one attacker, over each horizon."""
    for horizons in played_together(config, player):
        turns = "/".join(map(str, horizons))
        heard = partial(played, f"{player.name} against {red_agent}, {turns} turns")
        orders = order_numbers(workflow, config.episodes)
        cost = None if config.true_state == "exact" or orders is None else StateCost()
        results = play_episodes(config.games, player, red_agent, horizons, orders, heard, cost)
        for k, horizon in enumerate(horizons):
            cell = summarise(player.name, red_agent, horizon, results.returns[:, k])
            if workflow is not None:
                fixes, compliant = results.fixes[:, k], results.compliant[:, k]
                cell = with_compliance(cell, workflow, fixes, compliant, config.true_state)
                if cost is not None and horizon == max(horizons):
                    figures = cost.figures(config.true_state, config.episodes)
                    cell = dataclasses.replace(cell, true_state=figures)
            yield cell


def _cells_elsewhere(
    config: EvaluateConfig, played: Callable[[str, int, float], None], network: Network | None
) -> Iterator[Cell]:
    """Policies of another environment: one number each, and its interval."""
    network = network or find_network(config.network)
    for name, env in config.elsewhere.items():
        returns = play_env(
            config.checkpoints[name], config.env, config.episodes, config.seed, config.sample,
            network, partial(played, f"{name} on {env}"),
        )  # fmt: skip
        yield summarise(name, env, 0, returns)


def chosen_workflows(config: EvaluateConfig, trained_for: str | None) -> list[str | None]:
    """The orders that are played: as asked for, else the one that the policy was trained for."""
    if config.workflow_grid:
        return [order_name(number) for number in range(NUM_ORDERS)]
    if config.workflow == "named":
        return list(NAMED_ORDERS)
    return [config.workflow or trained_for]


def order_numbers(workflow: str | None, episodes: int) -> npt.NDArray[np.int64] | None:
    """The order of each episode; with `all` they take turns."""
    if workflow is None:
        return None
    if workflow == "all":
        return np.arange(episodes) % NUM_ORDERS
    return np.full(episodes, parse_order(workflow))


def played_together(config: EvaluateConfig, player: Player) -> list[tuple[int, ...]]:
    """Short games are the beginnings of long ones, but for policies that see the time left.

    And where fixes are judged at the end of an episode: each has its own.
    """
    horizons = config.horizon
    if config.true_state == "episode_end":
        return [(horizon,) for horizon in horizons]
    if player.horizon is None:
        return [horizons]
    known = tuple(horizon for horizon in horizons if horizon <= player.horizon)
    longer: list[tuple[int, ...]] = [(horizon,) for horizon in horizons if horizon > player.horizon]
    return [known, *longer] if known else longer


def summarise(policy: str, red_agent: str, horizon: int, returns: npt.NDArray[np.float64]) -> Cell:
    return Cell(
        policy=policy,
        red_agent=red_agent,
        horizon=horizon,
        **interval(returns),
        std=float(returns.std(ddof=1)),
        min=float(returns.min()),
        max=float(returns.max()),
        quantiles={str(q): float(np.quantile(returns, q)) for q in QUANTILES},
    )


def with_compliance(cell: Cell, workflow: str, fixes: Any, compliant: Any, true_state: str) -> Cell:
    """A cell, and how well its episodes followed the workflow: pooled over all fixes."""
    judged = true_state != "off" and fixes.any()
    return dataclasses.replace(
        cell,
        workflow=workflow,
        compliance=float(compliant.sum() / fixes.sum()) if judged else None,
        fixes_per_episode=float(fixes.mean()),
        share_without_fix=float((fixes == 0).mean()),
    )
