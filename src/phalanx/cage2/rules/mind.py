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
from phalanx.cage2.rules.memory import (
    Memories,
    Memory,
    forget,
    is_same_memory,
    is_same_to_belief,
    memory_dtype,
    remember,
    write_open,
    write_remembered,
)
from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.observation import BELIEVED, BITS, TRUE, Seen, write_bits
from phalanx.cage2.rules.scenario import NUM_HOSTS
from phalanx.cage2.rules.world import World
from phalanx.compiled.bits import number
from phalanx.compiled.rule import records, rule
from phalanx.compiled.spread import BytesOrFloats


class Minds(NamedTuple):
    """One per network, for observations of one kind."""

    # None is known to the compiler, which then leaves out all that is about it.
    memories: Memories | None  # None if only bits are shown
    beliefs: Beliefs | None
    kind: int
    shows_past: bool | None  # None if only bits are shown, or a belief in place of what was seen
    features: npt.NDArray[np.float32] | None = None  # [worlds, numbers], where they are shown


def make_minds(
    size: int,
    kind: int,
    prior: Prior,
    num_hosts: int = NUM_HOSTS,
    features: npt.NDArray[np.float32] | None = None,
) -> Minds:
    beliefs = make_beliefs(size, prior) if kind >= TRUE else None
    memories = records(size, memory_dtype(num_hosts)) if kind else None
    return Minds(memories, beliefs, kind, shows_past(kind), features)


def shows_past(kind: int) -> bool | None:
    """Whether observations of a kind are made of what was seen before: True, or None."""
    return True if BITS < kind < TRUE else None


NO_MINDS = make_minds(1, BITS, NO_PRIOR)  # of networks that show only bits


@rule
def begin_mind(minds: Minds, i: int, world_number: int) -> None:
    """A new episode: nothing was seen, nothing done."""
    forget_if_any(minds.memories, i)
    begin_belief_if_any(minds.beliefs, i, world_number)


@rule
def take_in(world: World, minds: Minds, i: int, action: int, seen: Seen) -> None:
    """One turn: blue's own action and the bits that it was shown."""
    remember_if_any(world, minds.memories, i, action, seen)
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
    write_what_is_seen(world, minds, minds.memories, minds.beliefs, i, seen, horizon, row)
    write_belief_if_any(world, minds.beliefs, i, row)


@rule
def write_what_is_seen(
    world: World,
    minds: Minds,
    memories: Memories | None,
    beliefs: Beliefs | None,
    i: int,
    seen: Seen,
    horizon: int,
    row: BytesOrFloats,
) -> None:
    """The bits, and what blue remembers, if that is shown; no secrets."""
    if memories is None:
        write_bits(world, seen, row)
    elif beliefs is None:
        write_past_if_any(world, memories[i], minds.shows_past, seen, minds.kind, horizon, row)
    else:
        write_open(world, memories[i], seen, horizon, row)


@rule
def write_past_if_any(
    world: World,
    memory: Memory,
    shows_past: bool | None,
    seen: Seen,
    kind: int,
    horizon: int,
    row: BytesOrFloats,
) -> None:
    if shows_past is not None:
        write_remembered(world, memory, seen, kind, horizon, row)


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
def forget_if_any(memories: Memories | None, i: int) -> None:
    if memories is not None:
        forget(memories[i])


@rule
def remember_if_any(
    world: World, memories: Memories | None, i: int, action: int, seen: Seen
) -> None:
    if memories is not None:
        remember(world, memories[i], action, seen)


@rule
def begin_belief_if_any(beliefs: Beliefs | None, i: int, world_number: int) -> None:
    if beliefs is not None:
        begin_belief(beliefs, i, world_number)


@rule
def believe_if_any(world: World, beliefs: Beliefs | None, i: int, action: int, seen: Seen) -> None:
    if beliefs is not None:
        believe(world, beliefs, i, action, seen)


@rule
def is_surprised_if_any(beliefs: Beliefs | None, i: int) -> bool:
    """Whether a turn of this episode was such that no state explained it."""
    if beliefs is not None:
        return beliefs.standing[i].surprises > 0
    return False


@rule
def copy_memory_if_any(source: Memories | None, i: int, target: Memories | None, j: int) -> None:
    if source is not None and target is not None:
        target[j] = source[i]


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
    is_same = is_same_memory_if_any(minds.memories, i, j, minds.kind)
    return is_same and is_same_belief_if_any(minds.beliefs, i, j)


@rule
def is_same_memory_if_any(memories: Memories | None, i: int, j: int, kind: int) -> bool:
    if memories is not None:
        if kind >= TRUE:
            return is_same_to_belief(memories[i], memories[j])
        return is_same_memory(memories[i], memories[j])
    return True


@rule
def is_same_belief_if_any(beliefs: Beliefs | None, i: int, j: int) -> bool:
    if beliefs is not None:
        return is_same_belief(beliefs, i, j)
    return True
