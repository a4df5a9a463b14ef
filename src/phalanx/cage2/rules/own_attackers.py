"""An attacker of the user's own: asked for its move through the address of its code.

So kernels are compiled once, whoever attacks, and only the user's function is for a new attacker.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from phalanx.cage2.rules.network import Network, own_die
from phalanx.cage2.rules.red import (
    QUIET,
    choose_exploit,
    exploits_against,
    try_exploit,
)
from phalanx.cage2.rules.red_actions import (
    BITS_OF_ACTION,
    ESCALATE,
    FIRST_PREFERRED,
    FIRST_SINGLE,
    IMPACT,
    INVALID,
    NUM_RED_ACTIONS,
    RAISED,
    RED_SLEEP,
    SWEEP,
)
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, NO_EXPLOIT
from phalanx.cage2.rules.world import World, hosts_in
from phalanx.compiled.bits import has, number, only
from phalanx.compiled.llvm import (
    Builder,
    Context,
    Intrinsic,
    Signature,
    Type,
    TypingContext,
    Value,
    Values,
    machine_code_of,
)
from phalanx.compiled.rule import rule

BITS_OF_TURN = 32  # of what is noted of an impossible move; above them stands who made it
FIRST_OWN = len(ALL_RED_AGENTS)  # in `red` of a network: the user's own come after the built-in


# --- asking ---------------------------------------------------------------------------------------

Ask = Callable[[Network, npt.NDArray[np.int64], int], int]  # (net, memory, die) -> move
UNCOMPILED: dict[int, Ask] = {}  # by address, where nothing is compiled


def ask(address: int, own: Network, die: int) -> int:
    """The move that the attacker at this address chooses."""
    return UNCOMPILED[int(address)](own, own.memory, die)


@machine_code_of(ask)
def _call(typing_context: TypingContext, address: Type, own: Type, die: Type) -> Intrinsic:
    """int64 attacker(record *net, int64 die)"""

    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        word, place = ir.IntType(64), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(word, [place, word])
        attacker = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(attacker, [builder.bitcast(args[1], place), args[2]])

    return types.int64(types.int64, own, types.int64), generate


@rule
def plan_own_if_any(own: Network | None, world: World) -> tuple[int, int]:
    """What the attacker does next, and to which host or subnet; impossible moves are noted."""
    if own is not None and own.red >= FIRST_OWN:
        k = number(own.red) - FIRST_OWN
        move = ask(world.attackers[k], own, own_die(own))
        action, target = move & ((1 << BITS_OF_ACTION) - 1), move >> BITS_OF_ACTION
        if is_possible(world, own, action, target):
            return action, only(target)
        if not has(world.lenient, k) or move == RAISED:
            note_refused(world, own, move)
    return RED_SLEEP, 0


@rule
def is_possible(world: World, own: Network, action: int, target: int) -> bool:
    """Whether the original would let red play this: with what red knows, and no error."""
    if action == RED_SLEEP:
        return target == 0
    if target < 0 or action == INVALID or action >= NUM_RED_ACTIONS:
        return False
    if action == SWEEP:
        return target < own.num_subnets and has(own.subnets, target)
    if target >= hosts_in(world):
        return False
    if action == IMPACT:
        return has(own.named, target)
    if action == ESCALATE:  # without knowing the operating system, the original stops with an error
        is_user = has(own.sessions, target) and not has(own.root, target)
        return has(own.named, target) and (has(own.systems, target) or not is_user)
    return has(own.known, target)


@rule
def note_refused(world: World, own: Network, move: int) -> None:
    """For Python, which stops the game (Batch.check_moves); the first one is kept."""
    if own.refused_turn == 0:
        k = number(own.red) - FIRST_OWN
        own.refused_turn = (number(own.turn) + 1) | (k << BITS_OF_TURN)
        own.refused_move = move
    world.refused = 1


# --- exploits by name -----------------------------------------------------------------------------


@rule
def exploit_by_name_if_any(
    own: Network | None, world: World, action: int, host: int, exploit_die: int, detection_die: int
) -> tuple[bool, tuple[int, int, bool], int]:
    """One exploit alone, or ExploitRemoteService that prefers one; returns what `exploit` does."""
    if own is not None:
        if action < FIRST_PREFERRED:
            return try_exploit(world, own, host, action - FIRST_SINGLE, detection_die)
        options, preferred = exploits_against(own, host), action - FIRST_PREFERRED
        if options:
            chosen = choose_exploit(options, exploit_die)
            if has(options, preferred):
                chosen = preferred
            return try_exploit(world, own, host, chosen, detection_die)
    return False, QUIET, NO_EXPLOIT
