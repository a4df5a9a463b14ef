"""The 120 orders: numbers, names, codes, distances; and how a fix is judged."""

from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.cage2.rules.scenario import HOST_OF_ACTION, HOSTS, NUM_HOSTS, USER0
from phalanx.cage2.workflow import (
    CODES,
    DISTANCES,
    NAMED_ORDERS,
    NUM_ORDERS,
    ORDERS,
    TYPE_OF_HOST,
    UNIT_TYPES,
    in_any_order,
    judge,
    order_name,
    order_number,
    parse_order,
    short_name,
)
from phalanx.errors import ConfigError
from phalanx.verify.traces import read_folder
from tests.cage2.game import Game, mask
from tests.naive import follows_order

GOLDEN = Path(__file__).parents[1] / "golden"
numbers = st.integers(0, NUM_ORDERS - 1)


def test_numbers_are_lexicographic_ranks() -> None:
    assert order_name(0) == "defender,enterprise,op_server,op_host,user"
    assert order_name(119) == "user,op_host,op_server,enterprise,defender"
    assert [tuple(order) for order in ORDERS] == sorted(permutations(range(5)))


@given(numbers)
def test_names_codes_and_numbers_belong_together(number: int) -> None:
    assert parse_order(order_name(number)) == number
    assert parse_order(str(number)) == number
    code = CODES[number].reshape(5, 5)  # a row per position
    assert code.sum(axis=0).tolist() == code.sum(axis=1).tolist() == [1] * 5
    assert order_number(code.argmax(axis=1).tolist()) == number


@pytest.mark.parametrize(
    "text",
    [
        "defender,op_server,enterprise,op_host,user",
        "defender -> op_server -> enterprise -> op_host -> user",
        "defender→op_server→enterprise→op_host→user",
        "def, op_s, ent, op_h, u",
        "Defender op-server ENTERPRISE op-host user",
        "critical_first",
        "6",
    ],
)
def test_orders_are_read_as_people_write_them(text: str) -> None:
    assert short_name(parse_order(text)) == "D,S,E,H,U"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("defender,enterprise,op_server,op_host", "lacks user"),
        ("defender,defender,op_server,op_host,user", "repeats defender and lacks enterprise"),
        ("defender,enterprize,op_server,op_host,user", "did you mean enterprise"),
        ("defender,op,enterprise,op_host,user", "can be op_server or op_host"),
        ("critical", "did you mean critical_first"),
        ("120", "not one of 0..119"),
        ("", "unknown workflow"),
    ],
)
def test_what_is_no_order_is_named(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_order(text)


def test_the_orders_that_people_ask_for() -> None:
    shown = {name: short_name(order_number(order)) for name, order in NAMED_ORDERS.items()}
    assert shown == {
        "critical_first": "D,S,E,H,U", "enterprise_focus": "E,D,S,H,U",
        "user_priority": "U,D,E,S,H", "operational_focus": "S,H,D,E,U", "balanced": "D,E,S,U,H",
        "reverse": "U,H,E,S,D",
    }  # fmt: skip


def test_distances_count_the_pairs_that_are_turned_around() -> None:
    for a, b in [(0, 119), (0, 1), (6, 6), (17, 93), (55, 102)]:
        one, other = order_name(a).split(","), order_name(b).split(",")
        turned = sum(
            (one.index(x) < one.index(y)) != (other.index(x) < other.index(y))
            for x, y in combinations(UNIT_TYPES, 2)
        )
        assert pytest.approx(turned / 10) == DISTANCES[a, b]
    assert DISTANCES[0, 119] == 1
    assert np.array_equal(DISTANCES, DISTANCES.T)


def test_every_host_has_its_type() -> None:
    kinds = [UNIT_TYPES[unit] for unit in TYPE_OF_HOST]
    assert kinds == ["defender", *["enterprise"] * 3, *["op_host"] * 3, "op_server", *["user"] * 5]


# --- judging --------------------------------------------------------------------------------------

CRITICAL_FIRST, REVERSE = (parse_order(name) for name in ("critical_first", "reverse"))


@pytest.mark.parametrize(
    ("rule", "infected", "target", "order", "follows"),
    [
        ("host", [], "User1", CRITICAL_FIRST, False),  # nothing infected
        ("host", ["User0"], "User0", REVERSE, False),  # only red's foothold: never counts
        ("type", ["User0"], "User0", REVERSE, True),
        ("type", ["User0"], "User3", REVERSE, True),  # a healthy neighbour will do
        ("type", ["User0", "Enterprise0"], "Enterprise0", REVERSE, False),  # User0 comes first
        ("host", ["User0", "Enterprise0"], "Enterprise0", REVERSE, True),
        ("host", ["User0", "User1", "Enterprise0"], "Enterprise0", CRITICAL_FIRST, True),
        ("host", ["User0", "User1", "Enterprise0"], "User1", CRITICAL_FIRST, False),
        ("host", ["User0", "User1", "Enterprise0"], "User1", REVERSE, True),
        ("host", ["User0", "User1", "Enterprise0"], "Enterprise0", REVERSE, False),
        ("host", ["User0", "User1", "User3"], "User3", REVERSE, True),  # a tie: either of them
        ("host", ["User0", "User1", "User3"], "User2", REVERSE, False),  # healthy target
        ("host", ["User0", "Enterprise0"], "Enterprise1", CRITICAL_FIRST, False),
        ("type", ["User0", "Enterprise0"], "Enterprise1", CRITICAL_FIRST, True),
    ],
)
def test_a_fix_is_judged_by_what_was_infected_before_it(
    rule: str, infected: list[str], target: str, order: int, follows: bool
) -> None:
    held = np.array([mask(*infected)], np.uint16)
    assert judge(rule, order, HOSTS.index(target), held) == follows
    assert follows_order(rule, order_name(order), target, set(infected)) == follows


def test_remove_of_a_root_session_follows_the_order_though_it_repairs_nothing() -> None:
    game = Game(red="sleep").session("Enterprise0", "root")
    before = game.sessions
    game.turn("Remove Enterprise0")
    assert game.access("Enterprise0") == "root"
    assert judge("host", CRITICAL_FIRST, HOSTS.index("Enterprise0"), np.array([before]))


def test_under_the_type_rule_24_orders_forbid_every_fix_but_of_users() -> None:
    held = np.full(NUM_ORDERS, mask("User0", "Enterprise0"), np.uint16)
    targets = np.full(NUM_ORDERS, HOSTS.index("Enterprise0"))
    user_first = ORDERS[:, 0] == UNIT_TYPES.index("user")
    assert user_first.sum() == 24
    assert not judge("type", np.arange(NUM_ORDERS), targets, held)[user_first].any()
    assert judge("host", np.arange(NUM_ORDERS), targets, held)[user_first].all()


@given(numbers, st.integers(0, 2**NUM_HOSTS - 1), st.integers(0, NUM_HOSTS - 1))
def test_judging_agrees_with_its_definition(number: int, infected: int, target: int) -> None:
    names = {host for h, host in enumerate(HOSTS) if infected >> h & 1}
    for rule in ("host", "type"):
        got = bool(judge(rule, number, target, np.array([infected], np.uint16))[0])
        assert got == follows_order(rule, order_name(number), HOSTS[target], names)


@given(st.integers(0, 2**NUM_HOSTS - 1), st.integers(0, NUM_HOSTS - 1))
def test_a_fix_in_any_order_is_one_that_every_order_allows(infected: int, target: int) -> None:
    held = np.array([infected], np.uint16)
    for rule in ("host", "type"):
        every = all(judge(rule, number, target, held)[0] for number in range(NUM_ORDERS))
        assert bool(judge(in_any_order(rule), 7, target, held)[0]) == every


def test_what_earlier_systems_got_wrong_is_told_apart() -> None:
    """A type that was acted on before does not count for ever: the host is clean again."""
    infected_again = np.array([mask("User0", "Enterprise0")], np.uint16)
    clean = np.array([mask("User0", "User1")], np.uint16)
    enterprise, user = HOSTS.index("Enterprise0"), HOSTS.index("User1")
    assert judge("host", CRITICAL_FIRST, enterprise, infected_again)  # the first time, and again
    assert judge("host", CRITICAL_FIRST, user, clean)  # enterprise was repaired: now the users
    assert not judge("host", CRITICAL_FIRST, user, clean | infected_again)


@pytest.mark.parametrize("rules", ["final", "leaderboard"])
def test_the_infected_hosts_are_those_of_the_recorded_true_state(rules: str) -> None:
    """Every recorded fix, judged by our set of sessions and by the recorded access table."""
    judged = 0
    for traces in read_folder(GOLDEN / rules):
        access, sessions = traces.steps["access"], traces.steps["sess"]
        assert np.array_equal(access != 0, sessions != 0)
        first = np.zeros(len(access), np.bool_)
        first[traces.start[:-1]] = True
        held = np.vstack([np.zeros((1, NUM_HOSTS)), access[:-1] != 0])
        held[first] = np.arange(NUM_HOSTS) == USER0
        sets = (held @ (1 << np.arange(NUM_HOSTS))).astype(np.uint16)
        actions = traces.steps["blue"].astype(np.int64)
        fixing = np.flatnonzero(((actions >= 15) & (actions < 28)) | (actions >= 132))
        for row in fixing[::7]:
            target = int(HOST_OF_ACTION[actions[row]])
            infected = {HOSTS[h] for h in np.flatnonzero(held[row])}
            for number in (0, 6, 50, 119):
                got = judge("host", number, target, sets[row : row + 1])[0]
                assert got == follows_order("host", order_name(number), HOSTS[target], infected)
                judged += 1
    assert judged > 1000
