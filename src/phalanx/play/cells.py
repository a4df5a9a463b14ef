"""Play many episodes and say what they brought: mean, standard error, quantiles."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.workflow import NAMED_ORDERS, NUM_ORDERS, order_name, parse_order
from phalanx.display import progress_display
from phalanx.errors import ConfigError
from phalanx.play.episodes import Judges, cost_of_state, play_episodes
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.in_env import play_env
from phalanx.play.players import Player, open_players
from phalanx.statistics import interval, quantiles
from phalanx.training.recipe import Network, find_network


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
    true_state: dict[str, object] | None = None
    """what saving on the true state brought, and how far compliance is off by it"""
    planning: dict[str, float] | None = None
    """what planning cost and changed, if the policy plans"""
    returns: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    """[episodes] those of any two policies were played on the same dice"""


def play_cells(
    config: EvaluateConfig,
    players: Sequence[Player] | None = None,
    network: Network | None = None,
    progress: bool | None = False,
) -> Iterator[Cell]:
    """The cells of the table, one after the other.

    players: those that the settings name, if not given.
    network: the factory of a run's own network, if the settings do not name it.
    progress: show how far it is; None: only in a notebook.
    """
    if players is None:
        players = [] if config.elsewhere else open_players(config, network)
    for player in players:
        if config.sample and not player.can_sample:
            raise ConfigError(
                f"--sample draws the actions of a trained policy; {player.name} has no "
                "probabilities to draw from"
            )
        if config.judged_by is not None and chosen_workflows(config, player.workflow) == [None]:
            raise ConfigError(
                "this policy is told no order; give --workflow instead of --judged-by"
            )
    count = len(config.elsewhere)
    if not config.elsewhere:
        each = len(config.red_agent) * len(config.horizon) * len(chosen_workflows(config, None))
        count = len(players) * each
    with progress_display("episodes", progress) as display:
        task = display.add_task("starting", total=config.episodes * count, note="")

        def played(name: str, episodes: int, mean: float) -> None:
            display.update(task, advance=episodes, description=name, note=f"return {mean:.1f}")

        for name, env in config.elsewhere.items():  # one number each, and its interval
            factory = network or find_network(config.network)
            returns = play_env(config, name, factory, partial(played, f"{name} on {env}"))
            yield _cell(name, env, 0, returns)
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
    """A defender against one attacker, over each horizon. `played` hears: cell, episodes, mean."""
    orders = order_numbers(workflow, config.episodes)
    for horizons in played_together(config, player):
        turns, judged = "/".join(map(str, horizons)), list[Judges]()
        heard = partial(played, f"{player.name} against {red_agent}, {turns} turns")
        before = replace(player.spent) if player.spent else None
        results = play_episodes(config.games, player, red_agent, horizons, orders, heard, judged)
        planning = player.spent.since(before) if player.spent and before else None
        for k, horizon in enumerate(horizons):
            followed: dict[str, object] = {}
            if workflow is not None:
                fixes, is_judged = results.fixes[:, k], config.true_state != "off"
                share = results.compliant[:, k].sum() / max(1, fixes.sum())
                followed = {
                    "workflow": workflow,
                    "compliance": float(share) if is_judged and fixes.any() else None,
                    "fixes_per_episode": float(fixes.mean()),
                    "share_without_fix": float((fixes == 0).mean()),
                }
                if config.true_state != "exact" and horizon == max(horizons):
                    followed["true_state"] = cost_of_state(config.games, judged)
            returns = results.returns[:, k]
            yield _cell(player.name, red_agent, horizon, returns, planning=planning, **followed)


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


def _cell(
    policy: str, red_agent: str, horizon: int, returns: npt.NDArray[np.float64], **followed: Any
) -> Cell:
    return Cell(
        policy=policy,
        red_agent=red_agent,
        horizon=horizon,
        **interval(returns),
        std=float(returns.std(ddof=1)),
        min=float(returns.min()),
        max=float(returns.max()),
        quantiles=quantiles(returns),
        returns=returns,
        **followed,
    )
