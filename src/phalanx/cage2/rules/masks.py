"""Which actions are worth thinking about: decoys that cannot be placed are masked."""

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
from phalanx.cage2.rules.world import Worlds, host_of, is_there, verb_of
from phalanx.compiled.bits import has
from phalanx.compiled.rule import kernel

VSFTPD = NUM_DECOYS - 1
NO_OUTPUT = -1


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
