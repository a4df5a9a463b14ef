"""Which actions are worth thinking about: decoys that cannot be placed are masked."""

from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.blue import placeable
from phalanx.cage2.rules.scenario import FIRST_DECOY, RESTORE
from phalanx.cage2.rules.world import Worlds, host_of, verb_of
from phalanx.compiled.bits import has
from phalanx.compiled.rule import kernel


@kernel
def write_masks(worlds: Any, numbers: Any, decoys: Any, masks: Any) -> None:
    for i in range(len(decoys)):
        world = worlds[numbers[i]]
        for action in range(world.num_actions):
            verb, host = verb_of(world, action), host_of(world, action)
            masks[i, action] = (
                verb < FIRST_DECOY
                or verb >= RESTORE
                or has(placeable(world, host, decoys[i, host]), verb - FIRST_DECOY)
            )


def action_masks(
    worlds: Worlds, numbers: npt.NDArray[Any], decoys: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """bool [N, actions]: False for a decoy that blue knows it cannot place.

    numbers: [N] of their worlds. decoys: uint8 [N, hosts] that stand.
    """
    masks = np.empty((len(decoys), int(worlds["num_actions"][0])), np.bool_)
    write_masks(worlds, numbers, decoys, masks)
    return masks
