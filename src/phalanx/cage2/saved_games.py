"""Which numbers a saved game may hold: kernels check no bounds, and a file can hold anything."""

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Arrays
from phalanx.cage2.rules.attackers import LAST_STEP
from phalanx.cage2.rules.belief import CAPACITY, STANDING
from phalanx.cage2.rules.memory import NO_ACTION, saved_memory_dtype
from phalanx.cage2.rules.mind import Minds
from phalanx.cage2.rules.network import ACTIVE, NAME_KNOWN, RUNNING, UNKNOWN
from phalanx.cage2.rules.observation import ROAMS
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, DECOYS, EXPLOIT_PORTS, NO_HOST
from phalanx.cage2.rules.world import Worlds, num_hosts_of, spot_words
from phalanx.cage2.workflow import NUM_ORDERS
from phalanx.errors import ConfigError

Records = npt.NDArray[np.void]
Saved = Arrays  # a game as arrays, by their names
Range = tuple[int, int]


def _set_of(size: int) -> Range:
    return 0, (1 << size) - 1


HOST_SETS = (
    "sessions",
    "root",
    "removable",
    "files",
    "restored",
    "known",
    "named",
    "scanned",
    "scan_tried",
    "exploited",
    "escalated",
    "mapped",
)
OWN_HOST_SETS = ("lead_root", "oldest_root", "systems", "root_told")  # of attackers of one's own
HOSTS_OR_NONE = ("line_target", "last_exploited", "last_escalated", "alert")

# Of the record of a network; fields that are not here may hold any number of their type.
NETWORK_RANGES: dict[str, Range] = {
    "decoys": _set_of(len(DECOYS)),
    "ports": _set_of(len(EXPLOIT_PORTS)),
    "line_step": (0, LAST_STEP),
    "succeeded": (0, UNKNOWN),
    "found_nothing": (0, 1),
    "service": (0, RUNNING | ACTIVE | NAME_KNOWN),
}
MEMORY_RANGES: dict[str, Range] = {
    "decoys": _set_of(len(DECOYS)),
    "decoys_found": _set_of(len(DECOYS)),
    "style": (0, ROAMS),
}
CONDUCT_RANGES: dict[str, Range] = {"order": (0, NUM_ORDERS - 1)}
TURNS = ("scan_turn", "exploit_turn", "remove_turn", "restore_turn")  # of a memory


def check_networks(nets: Records, worlds: Worlds, num_attackers: int = len(ALL_RED_AGENTS)) -> None:
    hosts, subnets = num_hosts_of(worlds), int(worlds["num_subnets"].max())
    _check_ranges(nets, NETWORK_RANGES)
    _check_ranges(nets, dict.fromkeys(HOSTS_OR_NONE, (NO_HOST, hosts - 1)))
    _check_ranges(nets, dict.fromkeys(("subnets", "swept"), _set_of(subnets)))
    _check_ranges(nets, {"world": (0, len(worlds) - 1), "red": (0, num_attackers - 1)})
    own = OWN_HOST_SETS if "memory" in (nets.dtype.names or ()) else ()
    for name in (*HOST_SETS, *own):
        _demand(~out_of_set(nets[name], hosts), name)
    for word in range(nets["seen"].shape[1]):
        bits = min(max(4 * hosts - 64 * word, 0), 64)
        _demand(~out_of_set(nets["seen"][:, word], bits), "seen")
    _demand(nets["turn"] <= nets["horizon"], "turn")


def out_of_set(sets: npt.NDArray[np.integer], size: int) -> npt.NDArray[np.bool_]:
    """Where a set has members that do not exist."""
    return sets.astype(np.uint64) & ~np.uint64((1 << size) - 1) != 0


def check_memories(memories: Records, worlds: Worlds) -> None:
    _check_ranges(memories, MEMORY_RANGES)
    last = memories["last_action"]
    _demand((last < worlds["num_actions"][0]) | (last == NO_ACTION), "last_action")
    for name in TURNS:
        _demand(memories[name] <= memories["turn"][:, None], name)


# --- minds: what blue remembers, and believes -----------------------------------------------------


def memories_to_save(minds: Minds, worlds: Worlds) -> Records:
    """Without what follows from the rest; an empty one where observations need none."""
    size = 1 if minds.memories is None else len(minds.memories)
    saved = np.zeros(size, saved_memory_dtype(num_hosts_of(worlds)))
    if minds.memories is not None:
        for name in saved.dtype.names or ():
            saved[name] = minds.memories[name]
    return saved


def restore_memories(memories: Records, saved: Saved, worlds: Worlds) -> None:
    """Go on from what `memories_to_save` gave, with the rest."""
    for name in saved["memories"].dtype.names or ():
        memories[name] = saved["memories"][name]
    for k in np.unique(saved["nets"]["world"]):
        there = saved["nets"]["world"] == k
        for kept, shown in (("decoys", "standing"), ("decoys_found", "found")):
            memories[shown][there] = spots_of(memories[kept][there], worlds[k])


def spots_of(decoys: npt.NDArray[np.uint8], world: np.void) -> npt.NDArray[np.int64]:
    """Sets of decoys [N, hosts] as sets of their places in observations, int64 [N, words]."""
    spots = slice(world["num_decoy_spots"])
    is_in = decoys[:, world["decoy_spot_host"][spots]] >> world["decoy_spot"][spots] & 1
    in_bytes = np.packbits(is_in, axis=1, bitorder="little")
    sets = np.zeros((len(decoys), spot_words(decoys.shape[1])), np.int64)
    sets.view(np.uint8)[:, : in_bytes.shape[1]] = in_bytes
    return sets


def save_minds(minds: Minds, worlds: Worlds) -> Saved:
    """As arrays; of beliefs only the half that holds them, with zeros where no state is."""
    arrays: Saved = {"memories": memories_to_save(minds, worlds)}
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


def restore_minds(minds: Minds, saved: Saved, worlds: Worlds) -> None:
    """Go on from what `save_minds` gave and `check_minds` found right."""
    if minds.memories is not None:
        restore_memories(minds.memories, saved, worlds)
    if minds.beliefs is not None:
        minds.beliefs.words[:, 0, :CAPACITY] = saved["belief_words"]
        minds.beliefs.weights[:, 0] = saved["belief_weights"]
        minds.beliefs.standing[:] = saved["belief_standing"]


def check_minds(minds: Minds, saved: Saved, worlds: Worlds) -> None:
    """Refuse what is none of these minds."""
    check_memories(saved["memories"], worlds)
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
    states = np.ascontiguousarray(words[held]).view(minds.beliefs.states.dtype)
    check_networks(states[:, 0], worlds)


def check_conducts(conducts: Records) -> None:
    _check_ranges(conducts, CONDUCT_RANGES)
    _demand(np.isfinite(conducts["score"]), "score")


def _check_ranges(batch: Records, ranges: dict[str, Range]) -> None:
    for name, (low, high) in ranges.items():
        _demand((batch[name] >= low) & (batch[name] <= high), name)


def _demand(holds: npt.NDArray[np.bool_], name: str) -> None:
    if not holds.all():
        at = int(np.argwhere(~holds)[0][0])
        raise ConfigError(f"the saved state is none of this game: {name} of network {at}")
