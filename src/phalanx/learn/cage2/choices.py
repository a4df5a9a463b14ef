"""What a policy may choose from: its outputs, and in each turn which of them are masked."""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.blue import placeable
from phalanx.cage2.rules.masks import NO_OUTPUT
from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.scenario import FIRST_DECOY, NUM_DECOYS
from phalanx.cage2.rules.world import NO_ACTION_OF, World, hosts_in, is_there
from phalanx.compiled.bits import number
from phalanx.compiled.rule import rule
from phalanx.learn.compiled.distributions import Bools

Numbers = npt.NDArray[np.int64]


def outputs_of(actions: Numbers, useful: Bools) -> Numbers:
    """[all actions] the policy's output for each, or NO_OUTPUT if it may not be chosen."""
    outputs = np.full(len(useful), NO_OUTPUT)
    outputs[actions] = np.where(useful[actions], np.arange(len(actions)), NO_OUTPUT)
    return outputs


@rule
def write_mask_of_host(world: World, net: Network, host: int, outputs: Numbers, row: Bools) -> None:
    """The decoys that can be placed on a host, as far as they are ever chosen."""
    fits = placeable(world, host, net.decoys[host])
    for decoy in range(NUM_DECOYS):
        action = number(world.action_of[FIRST_DECOY + decoy, host])
        if action != NO_ACTION_OF and outputs[action] != NO_OUTPUT:
            row[outputs[action]] = (fits >> decoy) & 1 != 0


@rule
def write_mask(world: World, net: Network, actions: Numbers, outputs: Numbers, row: Bools) -> None:
    """Outputs worth thinking about: those of useful actions, less decoys that cannot be placed."""
    for output in range(len(row)):
        action = number(actions[output])
        row[output] = outputs[action] != NO_OUTPUT and is_there(world, action)
    for host in range(hosts_in(world)):
        write_mask_of_host(world, net, host, outputs, row)
