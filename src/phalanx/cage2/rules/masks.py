"""Which actions are worth thinking about: what cannot be placed, or is in vain, is masked."""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.blue import placeable
from phalanx.cage2.rules.scenario import (
    ANALYSE,
    AS_ROOT,
    AS_USER,
    FIRST_DECOY,
    NUM_DECOYS,
    REMOVE,
    RESTORE,
    SLEEP,
)
from phalanx.cage2.rules.world import (
    NO_ACTION_OF,
    World,
    Worlds,
    host_of,
    hosts_in,
    is_there,
    verb_of,
)
from phalanx.compiled.bits import has, number
from phalanx.compiled.rule import kernel, rule

VSFTPD = NUM_DECOYS - 1
NO_OUTPUT = -1
CERTAIN = np.float32(1 - 1e-6)  # a chance that may be 1, but for rounding

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Outputs = npt.NDArray[np.int64]  # [actions] where each stands in a mask; NO_OUTPUT: nowhere


@kernel
def write_masks(
    worlds: Worlds,
    numbers: npt.NDArray[np.uint16],
    decoys: npt.NDArray[np.uint8],
    masks: npt.NDArray[np.bool_],
) -> None:
    for i in range(len(decoys)):
        world = worlds[numbers[i]]
        for action in range(world.num_actions):
            verb, host = verb_of(world, action), host_of(world, action)
            masks[i, action] = is_there(world, action) and (
                verb < FIRST_DECOY
                or verb >= RESTORE
                or has(placeable(world, host, decoys[i, host]), verb - FIRST_DECOY)
            )


def action_masks(
    worlds: Worlds, numbers: npt.NDArray[np.uint16], decoys: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """bool [N, actions]: False for a decoy that blue knows it cannot place, and for hosts that are
    not there.

    numbers: [N] of their worlds. decoys: uint8 [N, hosts] that stand.
    """
    masks = np.empty((len(decoys), int(worlds["num_actions"][0])), np.bool_)
    write_masks(worlds, numbers, decoys, masks)
    return masks


def useful_actions_in(worlds: Worlds) -> npt.NDArray[np.bool_]:
    """bool [actions]: those that can ever help in one of these networks.

    None on the host where red begins or on one that no exploit takes, no Monitor, no impossible
    decoy. Vsftpd is left out: it lures what Apache lures, and nothing where port 80 is taken.
    """
    count = int(worlds["num_actions"][0])  # they mean the same in all of the networks
    verbs, hosts = (worlds[name][0, :count] for name in ("verb_of_action", "host_of_action"))
    can_fall = np.isin(worlds["meets"], (AS_USER, AS_ROOT))
    falls = np.array(can_fall.any(axis=2))  # [networks, hosts]
    falls[np.arange(len(worlds)), worlds["start"]] = False
    fits = worlds["fits"][:, :, None] >> np.arange(NUM_DECOYS) & 1 != 0
    fits[:, :, VSFTPD] = False
    helps = np.zeros((*falls.shape, SLEEP), np.bool_)  # ... [host verbs]
    helps[:, :, [ANALYSE, REMOVE, RESTORE]] = True
    helps[:, :, FIRST_DECOY:RESTORE] = fits
    useful = np.array((helps & falls[:, :, None]).any(axis=0))  # in one of them
    about_host = useful[hosts, np.minimum(verbs, RESTORE)]
    return np.array(np.where(verbs < SLEEP, about_host, verbs == SLEEP))


# --- by what can be known -------------------------------------------------------------------------


@rule
def is_effective(world: World, obs: Floats, verb: int, host: int) -> bool:
    """Whether Analyse or Remove can show or change anything, by the belief in `obs`.

    Remove does nothing unless there may be a shell that it stops. Analyse tells nothing if it is
    certain what it will find. After a surprise the belief may be wrong, and everything can.
    """
    hosts, hidden = hosts_in(world), number(world.open_size)
    if obs[hidden + number(world.hidden_size) - 1] > 0:
        return True
    if verb == REMOVE:
        return obs[hidden + 2 * hosts + host] > 0
    file = obs[hidden + 3 * hosts + host]
    return 0 < file < CERTAIN


@rule
def write_effective(world: World, obs: Floats, outputs: Outputs, row: Bools) -> None:
    """Of Analyse and Remove, those that are there and can show or change anything."""
    for verb in (ANALYSE, REMOVE):
        for host in range(hosts_in(world)):
            action = number(world.action_of[verb, host])
            if action != NO_ACTION_OF and outputs[action] != NO_OUTPUT:
                is_worth_it = is_there(world, action) and is_effective(world, obs, verb, host)
                row[outputs[action]] = is_worth_it


@kernel
def write_all_effective(worlds: Worlds, obs: Floats, rows: Bools) -> None:
    world = worlds[0]
    for i in range(len(obs)):
        for verb in (ANALYSE, REMOVE):
            for host in range(hosts_in(world)):
                action = number(world.action_of[verb, host])
                if action != NO_ACTION_OF:
                    rows[i, action] = is_effective(world, obs[i], verb, host)


def effective_actions(worlds: Worlds, obs: npt.NDArray[np.generic]) -> Bools:
    """bool [N, actions]: False for those that can change and show nothing, by the belief in `obs`.

    worlds: networks that are shown in the same way. obs: [N, D] that show a belief, or the truth.
    """
    rows = np.ones((len(obs), int(worlds["num_actions"][0])), np.bool_)
    write_all_effective(worlds, np.ascontiguousarray(obs, np.float32), rows)
    return rows
