"""What blue keeps from turn to turn: its memory, and its belief if its observations show one."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.belief import (
    NO_PRIOR,
    Beliefs,
    Prior,
    be_certain,
    begin_belief,
    believe,
    copy_likely,
    is_same_belief,
    make_beliefs,
    write_belief,
)
from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.observation import (
    BELIEVED,
    BITS,
    TRUE,
    Memory,
    Seen,
    forget,
    memory_dtype,
    remember,
    write_what_is_seen,
)
from phalanx.cage2.rules.scenario import NUM_HOSTS
from phalanx.cage2.rules.world import World
from phalanx.compiled.bits import number
from phalanx.compiled.rule import records, rule
from phalanx.compiled.spread import BytesOrFloats


class Minds(NamedTuple):
    """One per network, for observations of one kind."""

    memories: npt.NDArray[np.void]  # of memory_dtype [N], or one for all if observations need none
    beliefs: Beliefs | None  # None is known to the compiler, which then leaves out all of it
    kind: int
    features: npt.NDArray[np.float32] | None = None  # [worlds, numbers], where they are shown


def make_minds(
    size: int,
    kind: int,
    prior: Prior,
    num_hosts: int = NUM_HOSTS,
    features: npt.NDArray[np.float32] | None = None,
) -> Minds:
    beliefs = make_beliefs(size, prior) if kind >= TRUE else None
    return Minds(records(size if kind else 1, memory_dtype(num_hosts)), beliefs, kind, features)


NO_MINDS = make_minds(1, BITS, NO_PRIOR)  # of networks that show only bits


@rule
def begin_mind(minds: Minds, i: int, world_number: int) -> None:
    """A new episode: nothing was seen, nothing done."""
    if minds.kind:
        forget(minds.memories[i])
    begin_belief_if_any(minds.beliefs, i, world_number)


@rule
def take_in(world: World, minds: Minds, i: int, action: int, seen: Seen) -> None:
    """One turn: blue's own action and the bits that it was shown."""
    if minds.kind:
        remember(world, minds.memories[i], action, seen)
    if minds.kind == BELIEVED:
        believe_if_any(world, minds.beliefs, i, action, seen)


@rule
def tell_truth(minds: Minds, i: int, net: Network) -> None:
    """What no defender can have: a belief that is certain, and right."""
    be_certain_if_any(minds.beliefs, i, net)


@rule
def write_mind(
    world: World, minds: Minds, i: int, seen: Seen, horizon: int, row: BytesOrFloats
) -> None:
    """The observation, as far as blue can know it."""
    memory = minds.memories[i if minds.kind else 0]
    write_what_is_seen(world, memory, seen, minds.kind, horizon, row)
    write_belief_if_any(world, minds.beliefs, i, row)


@rule
def write_features_if_any(
    features: npt.NDArray[np.float32] | None,
    world: World,
    world_number: int,
    kind: int,
    row: BytesOrFloats,
) -> None:
    """What the plan says of each host, after all else."""
    if features is not None:
        first = number(world.sizes[kind])
        for k in range(features.shape[1]):
            row[first + k] = features[world_number, k]


@rule
def begin_belief_if_any(beliefs: Beliefs | None, i: int, world_number: int) -> None:
    if beliefs is not None:
        begin_belief(beliefs, i, world_number)


@rule
def believe_if_any(world: World, beliefs: Beliefs | None, i: int, action: int, seen: Seen) -> None:
    if beliefs is not None:
        believe(world, beliefs, i, action, seen)


@rule
def copy_likely_if_any(
    source: Beliefs | None, i: int, target: Beliefs | None, j: int, least: float
) -> None:
    if source is not None and target is not None:
        copy_likely(source, i, target, j, least)


@rule
def be_certain_if_any(beliefs: Beliefs | None, i: int, net: Network) -> None:
    if beliefs is not None:
        be_certain(beliefs, i, net)


@rule
def write_belief_if_any(world: World, beliefs: Beliefs | None, i: int, row: BytesOrFloats) -> None:
    if beliefs is not None:
        write_belief(world, beliefs, i, row[number(world.open_size) :])


@rule
def is_same_mind(minds: Minds, i: int, j: int) -> bool:
    """Whether two networks' blue will always see the same, if the same happens to both."""
    if minds.kind >= TRUE:
        is_same = is_same_to_belief(minds.memories[i], minds.memories[j])
    elif minds.kind:
        is_same = is_same_memory(minds.memories[i], minds.memories[j])
    else:
        is_same = True
    return is_same and is_same_belief_if_any(minds.beliefs, i, j)


@rule
def is_same_belief_if_any(beliefs: Beliefs | None, i: int, j: int) -> bool:
    if beliefs is not None:
        return is_same_belief(beliefs, i, j)
    return True


@rule
def is_same_memory(one: Memory, other: Memory) -> bool:
    """Whether two memories will always show the same, if the same happens to both."""
    for host in range(len(one.decoys)):
        if (
            one.scan_turn[host] != other.scan_turn[host]
            or one.exploit_turn[host] != other.exploit_turn[host]
            or one.remove_turn[host] != other.remove_turn[host]
            or one.restore_turn[host] != other.restore_turn[host]
            or one.exploits[host] != other.exploits[host]
            or one.decoys_found[host] != other.decoys_found[host]
        ):
            return False
    is_same = one.last_action == other.last_action and one.style == other.style
    return is_same and is_same_to_belief(one, other)


@rule
def is_same_to_belief(one: Memory, other: Memory) -> bool:
    """The same, of what a `belief` observation shows of a memory."""
    for host in range(len(one.decoys)):
        is_restored, is_other = one.restore_turn[host] > 0, other.restore_turn[host] > 0
        if one.decoys[host] != other.decoys[host] or is_restored != is_other:
            return False
    return one.turn == other.turn
