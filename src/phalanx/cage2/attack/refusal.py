"""What is said of a move that red cannot make."""

import numpy as np

from phalanx.cage2.rules.own_attackers import BITS_OF_TURN
from phalanx.cage2.rules.red_actions import (
    BITS_OF_ACTION,
    ESCALATE,
    IMPACT,
    NUM_RED_ACTIONS,
    RAISED,
    SWEEP,
    red_action_name,
)
from phalanx.cage2.scenario.plan import Scenario


def turn_of(net: np.void) -> int:
    """The turn in which it was made, counted from 1."""
    return int(net["refused_turn"]) & ((1 << BITS_OF_TURN) - 1)


def attacker_of(net: np.void) -> int:
    """Who made it, as the user's own are counted."""
    return int(net["refused_turn"]) >> BITS_OF_TURN


def refusal(name: str, net: np.void, scenario: Scenario, error: str) -> str:
    """One line: attacker, turn, move, why. error: what its code stopped with, if it did."""
    move, turn = int(net["refused_move"]), turn_of(net)
    who = f"the attacker {name}"
    if move == RAISED:
        return f"{who} stopped in turn {turn} with {error}"
    action, target = move & ((1 << BITS_OF_ACTION) - 1), move >> BITS_OF_ACTION
    sleep = 'let it sleep instead: @attacker(impossible="sleep")'
    if not 0 <= action < NUM_RED_ACTIONS:
        return f"{who} answered turn {turn} with {move}, which is no move; return scan(host), …"
    names = scenario.subnet_names if action == SWEEP else scenario.host_names
    what, kind = red_action_name(action), "subnet" if action == SWEEP else "host"
    if not 0 <= target < len(names):
        return (
            f"{who} played {what} on {kind} {target} in turn {turn}; {kind}s have the numbers "
            f"0 to {len(names) - 1}; {sleep}"
        )
    why = f"red does not know that {kind} yet"
    if action in (ESCALATE, IMPACT):
        why = "red has had no session there yet"
        if int(net["named"]) >> target & 1:
            why = (
                "red does not know its operating system, since it was taken by a single "
                "exploit (the original stops there with an error): use exploit_first(host, …)"
            )
    return f"{who} played {what} on {names[target]} in turn {turn}: {why}; or {sleep}"
