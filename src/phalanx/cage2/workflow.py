"""The 120 orders in which a team can repair its hosts: numbers, names, codes and distances."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import (
    DEFENDER,
    ENTERPRISE_HOSTS,
    NUM_HOSTS,
    OP_HOSTS,
    OP_SERVER0,
    USER0,
    hosts,
)
from phalanx.errors import ConfigError, choices

UNIT_TYPES = ("defender", "enterprise", "op_server", "op_host", "user")
NUM_TYPES = len(UNIT_TYPES)
HOSTS_OF_TYPE = (
    hosts(DEFENDER),
    ENTERPRISE_HOSTS,
    hosts(OP_SERVER0),
    OP_HOSTS & ~hosts(OP_SERVER0),
    hosts(*range(USER0, NUM_HOSTS)),
)
TYPE_OF_HOST = np.array(
    [next(t for t, members in enumerate(HOSTS_OF_TYPE) if members >> h & 1) for h in range(13)],
    np.uint8,
)

# [number, position]: the type at that position; numbers are in lexicographic order.
ORDERS = np.array(list(permutations(range(NUM_TYPES))), np.uint8)
NUM_ORDERS = len(ORDERS)
POSITIONS = np.argsort(ORDERS, axis=1).astype(np.uint8)  # [number, type]: its position
CODE_SIZE = NUM_TYPES * NUM_TYPES
CODES = np.eye(NUM_TYPES, dtype=np.float32)[ORDERS].reshape(NUM_ORDERS, CODE_SIZE)

NAMED_ORDERS = {
    "critical_first": (0, 2, 1, 3, 4),
    "enterprise_focus": (1, 0, 2, 3, 4),
    "user_priority": (4, 0, 1, 2, 3),
    "operational_focus": (2, 3, 0, 1, 4),
    "balanced": (0, 1, 2, 4, 3),
    "reverse": (4, 3, 1, 2, 0),
}


def order_number(order: Sequence[int]) -> int:
    """The number of an order of types: its lexicographic rank."""
    return int(np.flatnonzero((np.array(order) == ORDERS).all(axis=1))[0])


def reverse_of(number: int) -> int:
    """The order that has the least urgent type first."""
    return order_number(ORDERS[number][::-1].tolist())


def order_name(number: int) -> str:
    """`defender,op_server,enterprise,op_host,user`."""
    return ",".join(UNIT_TYPES[unit] for unit in ORDERS[number])


def short_name(number: int) -> str:
    """`D,S,E,H,U`, for tables."""
    return ",".join("DESHU"[unit] for unit in ORDERS[number])


def parse_order(text: str | int) -> int:
    """The number of an order as people write it.

    Commas, arrows or spaces between the types, unique prefixes, a named order, or the number.
    """
    word = str(text).strip().lower().replace("-focus", "_focus")
    if word in NAMED_ORDERS:
        return order_number(NAMED_ORDERS[word])
    if word.isdecimal():
        if int(word) >= NUM_ORDERS:
            raise ConfigError(f"workflow {word} is not one of 0..{NUM_ORDERS - 1}")
        return int(word)
    parts = [part for part in re.split(r"\s*(?:,|->|→|>)\s*|\s+", word) if part]
    if len(parts) < 2:
        near = get_close_matches(word, NAMED_ORDERS, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(
            f"unknown workflow {text!r}: give all of {','.join(UNIT_TYPES)} in an order of yours, "
            f"or one of {', '.join(NAMED_ORDERS)}{hint}"
        )
    order = [_parse_type(part) for part in parts]
    twice = [UNIT_TYPES[unit] for unit in dict.fromkeys(order) if order.count(unit) > 1]
    missing = [name for unit, name in enumerate(UNIT_TYPES) if unit not in order]
    wrong = [f"repeats {', '.join(twice)}"] if twice else []
    wrong += [f"lacks {', '.join(missing)}"] if missing else []
    if wrong:
        raise ConfigError(
            f"workflow {text!r} {' and '.join(wrong)}; give each of {', '.join(UNIT_TYPES)} once"
        )
    return order_number(order)


def _parse_type(word: str) -> int:
    word = word.replace("-", "_")
    fits = [unit for unit, name in enumerate(UNIT_TYPES) if name.startswith(word)]
    if word in UNIT_TYPES:
        return UNIT_TYPES.index(word)
    if len(fits) > 1:
        both = " or ".join(UNIT_TYPES[unit] for unit in fits)
        raise ConfigError(f"unit type {word!r} can be {both}; write more of it")
    if not fits:
        raise ConfigError(choices("unit type", word, UNIT_TYPES))
    return fits[0]


def _distances() -> npt.NDArray[np.float64]:
    before = np.stack(
        [POSITIONS[:, a] < POSITIONS[:, b] for a, b in combinations(range(NUM_TYPES), 2)], axis=1
    )
    return (before[:, None] != before[None]).mean(axis=2)


# [number, number]: Kendall's tau distance, the share of pairs in which two orders disagree.
DISTANCES = _distances()


# --- judging a fix --------------------------------------------------------------------------------

COMPLIANCE_RULES = ("host", "type")
ALIGNMENTS = ("delta", "per_fix", "gate")  # ways to reward it
OWN, BETTER = range(2)
Numbers = int | npt.NDArray[np.integer]


def in_any_order(rule: str) -> str:
    """The rule by which a fix is compliant if it is by `rule` whatever the order.

    That is where red holds hosts of the target's type alone, so that no order has a say.
    """
    return f"{rule} in any order"


def _judged(rule: str, whatever_the_order: bool = False) -> npt.NDArray[np.uint16]:
    """[number, host, (OWN, BETTER)]: one of the first must be infected, none of the second.

    host: the target itself, and the hosts of better-ranked types; User0 never counts.
    type: any host of the target's type, and of better-ranked types, User0 included.
    whatever_the_order: all other types count as better-ranked.
    """
    counted = ~0 if rule == "type" else ~hosts(USER0)
    table = np.zeros((NUM_ORDERS, NUM_HOSTS, 2), np.uint16)
    for number, order in enumerate(ORDERS):
        better = 0
        for unit in order:
            mine = HOSTS_OF_TYPE[unit]
            for host in np.flatnonzero(unit == TYPE_OF_HOST).tolist():
                own = mine if rule == "type" else hosts(host)
                before = ~mine if whatever_the_order else better
                table[number, host] = own & counted & ALL, before & counted & ALL
            better |= mine
    return table


ALL = (1 << NUM_HOSTS) - 1
JUDGED = {rule: _judged(rule) for rule in COMPLIANCE_RULES}
JUDGED |= {in_any_order(rule): _judged(rule, True) for rule in COMPLIANCE_RULES}


def judge(
    rule: str, orders: Numbers, targets: Numbers, infected: npt.NDArray[np.uint16]
) -> npt.NDArray[np.bool_]:
    """Whether fixes of `targets` followed their orders, by the hosts that red held just before.

    orders: numbers [N] or one; targets: hosts [N]; infected: sets of hosts [N].
    """
    own, better = np.moveaxis(JUDGED[rule][orders, targets], -1, 0)
    return ((infected & own) != 0) & ((infected & better) == 0)
