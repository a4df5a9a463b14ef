"""Which numbers a saved game may hold: kernels check no bounds, and a file can hold anything."""

from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.attackers import LAST_STEP
from phalanx.cage2.rules.belief import CAPACITY, STANDING
from phalanx.cage2.rules.mind import Minds
from phalanx.cage2.rules.network import ACTIVE, NAME_KNOWN, NETWORK, RUNNING, UNKNOWN
from phalanx.cage2.rules.observation import NUM_BITS, ROAMS
from phalanx.cage2.rules.scenario import (
    ALL_RED_AGENTS,
    DECOYS,
    EXPLOIT_PORTS,
    NO_HOST,
    NUM_ACTIONS,
    NUM_HOSTS,
    SUBNETS,
)
from phalanx.cage2.workflow import NUM_ORDERS
from phalanx.errors import ConfigError

Records = npt.NDArray[np.void]
Range = tuple[int, int]


def _set_of(size: int) -> Range:
    return 0, (1 << size) - 1


HOST_SETS = (
    "sessions", "root", "removable", "files", "restored", "known", "named", "scanned",
    "scan_tried", "exploited", "escalated", "mapped",
)  # fmt: skip
HOSTS_OR_NONE = ("line_target", "last_exploited", "last_escalated", "alert")

# Of a record of NETWORK; fields that are not here may hold any number of their type.
NETWORK_RANGES: dict[str, Range] = {
    **dict.fromkeys(HOST_SETS, _set_of(NUM_HOSTS)),
    **dict.fromkeys(HOSTS_OR_NONE, (NO_HOST, NUM_HOSTS - 1)),
    "seen": _set_of(NUM_BITS),
    "decoys": _set_of(len(DECOYS)),
    "ports": _set_of(len(EXPLOIT_PORTS)),
    "subnets": _set_of(len(SUBNETS)),
    "swept": _set_of(len(SUBNETS)),
    "line_step": (0, LAST_STEP),
    "succeeded": (0, UNKNOWN),
    "found_nothing": (0, 1),
    "service": (0, RUNNING | ACTIVE | NAME_KNOWN),
    "red": (0, len(ALL_RED_AGENTS) - 1),
}
MEMORY_RANGES: dict[str, Range] = {
    "decoys": _set_of(len(DECOYS)),
    "decoys_found": _set_of(len(DECOYS)),
    "last_action": (0, NUM_ACTIONS),
    "style": (0, ROAMS),
}
CONDUCT_RANGES: dict[str, Range] = {"order": (0, NUM_ORDERS - 1)}
TURNS = ("scan_turn", "exploit_turn", "remove_turn", "restore_turn")  # of a record of MEMORY


def check_networks(nets: Records) -> None:
    _check_ranges(nets, NETWORK_RANGES)
    _demand(nets["turn"] <= nets["horizon"], "turn")


def check_memories(memories: Records) -> None:
    _check_ranges(memories, MEMORY_RANGES)
    for name in TURNS:
        _demand(memories[name] <= memories["turn"][:, None], name)


# --- minds: what blue remembers, and believes -----------------------------------------------------


def save_minds(minds: Minds) -> dict[str, npt.NDArray[Any]]:
    """As arrays; of beliefs only the half that holds them, with zeros where no state is."""
    arrays: dict[str, npt.NDArray[Any]] = {"memories": minds.memories.copy()}
    if minds.beliefs is not None:
        standing = minds.beliefs.standing.copy()
        everyone, sides = np.arange(len(standing)), standing["side"].copy()
        held = np.arange(CAPACITY) < standing["count"][:, None]
        words = minds.beliefs.words[everyone, sides, :CAPACITY]
        arrays["belief_words"] = np.where(held[:, :, None], words, np.uint64(0))
        arrays["belief_weights"] = np.where(held, minds.beliefs.weights[everyone, sides], 0.0)
        standing["side"] = 0
        arrays["belief_standing"] = standing
    return arrays


def restore_minds(minds: Minds, saved: dict[str, npt.NDArray[Any]]) -> None:
    """Go on from what `save_minds` gave and `check_minds` found right."""
    minds.memories[:] = saved["memories"]
    if minds.beliefs is not None:
        minds.beliefs.words[:, 0, :CAPACITY] = saved["belief_words"]
        minds.beliefs.weights[:, 0] = saved["belief_weights"]
        minds.beliefs.standing[:] = saved["belief_standing"]


def check_minds(minds: Minds, saved: dict[str, npt.NDArray[Any]]) -> None:
    """Refuse what is none of these minds."""
    check_memories(saved["memories"])
    if minds.beliefs is None:
        return
    size = len(minds.beliefs.standing)
    wanted = {
        "belief_words": ((size, CAPACITY, minds.beliefs.words.shape[3]), np.uint64),
        "belief_weights": ((size, CAPACITY), np.float64),
        "belief_standing": ((size,), STANDING),
    }
    for name, (shape, kind) in wanted.items():
        if name not in saved or (saved[name].shape, saved[name].dtype) != (shape, kind):
            raise ConfigError(f"the saved state does not fit: {name} must be {shape} of {kind}")
    words, weights, standing = (saved[name] for name in wanted)
    _demand((standing["count"] > 0) & (standing["count"] <= CAPACITY), "count")
    held = np.arange(CAPACITY) < standing["count"][:, None]
    _demand(standing["side"] == 0, "side")
    _demand((weights[held] > 0) & (weights[held] <= 1), "weights")
    check_networks(np.ascontiguousarray(words[held]).view(NETWORK)[:, 0])


def check_conducts(conducts: Records) -> None:
    _check_ranges(conducts, CONDUCT_RANGES)
    _demand(np.isfinite(conducts["score"]), "score")


def _check_ranges(batch: Records, ranges: dict[str, Range]) -> None:
    for name, (low, high) in ranges.items():
        _demand((batch[name] >= low) & (batch[name] <= high), name)


def _demand(holds: Any, name: str) -> None:
    if not holds.all():
        at = int(np.argwhere(~holds)[0][0])
        raise ConfigError(f"the saved state is none of this game: {name} of network {at}")
