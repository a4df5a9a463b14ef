"""A reward of the user's own: asked for through the address of its code.

So kernels are compiled once, whatever is rewarded, and only the user's function is for a new one.
"""

from collections.abc import Callable
from typing import NamedTuple

from llvmlite import ir
from numba import types

from phalanx.cage2.rules.network import RUNNING, Network
from phalanx.cage2.rules.scenario import NO_HOST, SLEEP
from phalanx.cage2.rules.world import World, host_of, verb_of
from phalanx.compiled.bits import number
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


class Turn(NamedTuple):
    """What a reward may look at, after a turn: the truth. Sets of hosts are bit masks."""

    reward: float  # the scenario's own: what the turn cost blue, times -1
    turn: int  # turns played in this episode, this one among them
    horizon: int
    verb: int  # of blue's action: its place in ALL_VERBS (cage2/rules/scenario.py)
    host: int  # that it was about, or -1
    held_before: int  # hosts on which red had a session before blue's action
    held: int  # ... after the turn
    root: int  # ... as root
    known: int  # hosts whose address red knows
    scanned: int  # ... whose ports
    service_down: int  # 1 while the operational service is down
    red_action: int  # its place in RED_ACTIONS (cage2/rules/red_actions.py)
    red_host: int  # that it was about (of a sweep: the subnet), or -1
    red_succeeded: int  # 0 no, 1 yes, 2 it did nothing


UNCOMPILED: dict[int, Callable[[Turn], float]] = {}  # by address, where nothing is compiled
NUM_WHOLE = len(Turn._fields) - 1


def ask_reward(address: int, turn: Turn) -> float:
    """What the function at this address gives."""
    return float(UNCOMPILED[int(address)](turn))


@machine_code_of(ask_reward)
def _call(typing_context: TypingContext, address: Type, turn: Type) -> Intrinsic:
    """double reward(double, int64, int64, ...)"""

    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        word, real = ir.IntType(64), ir.DoubleType()
        kind = ir.FunctionType(real, [real] + [word] * NUM_WHOLE)
        function = builder.inttoptr(args[0], kind.as_pointer())
        values = [builder.extract_value(args[1], k) for k in range(1 + NUM_WHOLE)]
        return builder.call(function, values)

    return types.float64(types.int64, turn), generate


@rule
def own_reward(
    world: World, net: Network, tenths: int, action: int, before: int, move: int, target: int
) -> float:
    """What the user's function gives for this turn."""
    verb = verb_of(world, action)
    is_about_host = verb < SLEEP or host_of(world, action) > 0
    turn = Turn(
        (0 - tenths) / 10.0,
        number(net.turn),
        number(net.horizon),
        verb,
        host_of(world, action) if is_about_host else number(NO_HOST),
        number(before),
        number(net.sessions),
        number(net.root),
        number(net.known),
        number(net.scanned),
        number(0 if net.service & RUNNING else 1),
        number(move),
        number(target),
        number(net.succeeded),
    )
    return ask_reward(number(world.reward), turn)
