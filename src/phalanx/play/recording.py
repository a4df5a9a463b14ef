"""Play a defender and keep what happened in each turn, for `phalanx explain`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx.cage2.rules.network import RUNNING
from phalanx.cage2.rules.scenario import HOST_OF_ACTION
from phalanx.play.cells import order_numbers
from phalanx.play.episodes import begin, end, new_batch, next_actions
from phalanx.play.explain import DECOYED, KIND_OF_ACTION, Record, blank_record
from phalanx.play.explain_config import ExplainConfig
from phalanx.play.players import Player


def record_episodes(
    config: ExplainConfig,
    red_agent: str,
    player: Player,
    played: Callable[[str, int], None] = lambda *_: None,
) -> Record:
    """Play the episodes that `phalanx evaluate` plays, and keep what happened in each turn."""
    record = blank_record(config.horizon, config.episodes)
    orders = order_numbers(config.workflow or player.workflow, config.episodes)
    for first in range(0, config.episodes, player.at_once):
        chosen = slice(first, min(first + player.at_once, config.episodes))
        size = chosen.stop - first
        batch = new_batch(config.played.games, red_agent, (config.horizon,), player, first, size)
        mine = None if orders is None else orders[chosen]
        defender = begin(config.played.games, player, first, mine)
        for turn in range(config.horizon):
            record_turn(record, (turn, chosen), batch, next_actions(batch, defender))
            played(red_agent, size)
        end(defender)
        for name in ("decoys", "red", "line_target"):
            getattr(record, name)[chosen] = batch.nets[name]
        record.returns[chosen] = batch.nets["tenths"] / 10
        batch.close()
    return record


def record_turn(record: Record, at: tuple[int, slice], batch: Any, actions: Any) -> None:
    """Play a turn and write down what was true before it and when it was scored."""
    nets, each = batch.nets, (np.arange(batch.num_envs), HOST_OF_ACTION[actions])
    record.actions[at] = actions
    record.sessions[at], record.root[at] = nets["sessions"], nets["root"]
    decoys = nets["decoys"][each]
    batch.play(actions)
    is_decoy = KIND_OF_ACTION[actions] == DECOYED
    record.placed[at] = is_decoy & (nets["decoys"][each] != decoys)
    record.scored_root[at] = nets["root"]
    record.service_down[at] = nets["service"] & RUNNING == 0
