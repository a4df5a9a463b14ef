"""Now a move of B-line's, now one of Meander's, by a coin that is thrown in every turn.

    phalanx evaluate react-restore --red-agent examples/attackers/coin.py:coin

Who has just taken a host also escalates there. Each goes by what the other has found out. B-line
has to know which user host points to which gateway: it is written for CAGE-2's own network.
"""

from typing import Any

from b_line import (
    ESCALATE,
    EXPLOIT,
    SCAN,
    SCAN_TARGET,
    SWEEP,
    WHAT,
    host_of,
    move_of,
    neighbours,
    next_step,
)
from meander import (
    ESCALATED,
    EXPLOITED,
    LAST_ESCALATION,
    LAST_EXPLOIT,
    SCANNED,
    SWEPT,
    learn,
    next_move,
)

from phalanx.cage2.attack import all_but, attacker, has, helper, one_of, only, subnet_of, succeeded

ENTERPRISE0, ENTERPRISE1, ENTERPRISE2 = 1, 2, 3
GATEWAY = (0,) * 9 + (ENTERPRISE1, ENTERPRISE1, ENTERPRISE0, ENTERPRISE0)  # [host]: User1 to User4

# Meander needs seven words of the memory. In the last one are B-line's steps made so far, as a set;
# whether its next step is due, not its last one; that step; and its user host, or 0.
LINE = 7
DUE, STEP, TARGET = 15, 16, 24  # places in it


@helper
def read(memory: Any, place: int) -> int:
    return (memory[LINE] >> place) & 0xFF


@helper
def write(memory: Any, place: int, value: int) -> None:
    memory[LINE] = (memory[LINE] & ~(0xFF << place)) | (value << place)


@helper
def note_for_meander(memory: Any, what: int, at: int) -> None:
    """Meander's notes on a move of B-line's, as if it were its own."""
    if what == SWEEP:
        memory[SWEPT] |= only(at)
    elif what == SCAN:
        memory[SCANNED] |= only(at)
    elif what == EXPLOIT:
        memory[EXPLOITED] |= only(at)
        memory[ESCALATED] &= all_but(at)
        memory[LAST_EXPLOIT] = at + 1
    else:
        if what == ESCALATE:
            memory[ESCALATED] |= only(at)
        memory[LAST_ESCALATION] = at + 1


@helper
def step_of_line(net: Any, memory: Any, die: int) -> int:
    step = read(memory, STEP)
    memory[LINE] = (memory[LINE] & all_but(DUE)) | only(step)
    if step == SCAN_TARGET and read(memory, TARGET) == 0:
        write(memory, TARGET, one_of(neighbours(net), die))
    target = read(memory, TARGET)
    host = host_of(net, step, target, GATEWAY[target], ENTERPRISE2)
    what = WHAT[step]
    note_for_meander(memory, what, subnet_of(net, host) if what == SWEEP else host)
    return move_of(net, step, host)


@attacker
def coin(net: Any, memory: Any, die: int) -> int:
    line_moved_last = not has(memory[LINE], DUE)
    if line_moved_last:
        write(memory, STEP, next_step(net, read(memory, STEP), memory[LINE]))
        memory[LINE] |= only(DUE)
    just_taken = memory[LAST_EXPLOIT] != 0 and succeeded(net)
    learn(net, memory)
    lines_turn = line_moved_last if just_taken else die & 1 == 1
    if lines_turn:
        return step_of_line(net, memory, die)
    return next_move(net, memory, die)
