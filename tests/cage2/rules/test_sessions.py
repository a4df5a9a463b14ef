"""Red's sessions on a host, against a plain list of them."""

import itertools
from typing import Any

import numba
import numpy as np
import pytest

from phalanx.cage2.rules.network import LOADED, network_dtype
from phalanx.cage2.rules.scenario import HOSTS, NUM_HOSTS
from phalanx.cage2.rules.sessions import (
    add_session_if_any,
    begin_own_if_any,
    end_all_if_any,
    end_removable_if_any,
    raise_one_if_any,
)
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.rule import COMPILED, kernel, records

HOST, START = HOSTS.index("User1"), HOSTS.index("User0")
STUCK, REMOVABLE, ROOT = 1, 2, 3
ADD_ROOT, ADD_SEEN, ADD_UNSEEN, REMOVE, RESTORE, RAISE = range(6)


@kernel
def happens(worlds: Any, nets: Any, what: int, host: int, die: int) -> None:
    net, world = nets[0], worlds[0]
    if what < 0:
        begin_own_if_any(net, world)
        net.sessions = net.root = 1 << world.start
        net.removable = 0
    elif what <= ADD_UNSEEN:
        add_session_if_any(net, host, what == ADD_ROOT, what == ADD_SEEN)
    elif what == REMOVE:
        end_removable_if_any(net, host)
    elif what == RESTORE:
        end_all_if_any(net, world, host)
    else:
        raise_one_if_any(net, host, die)


def in_a_list(sessions: list[int], what: int, chosen: int, at_start: bool) -> list[int]:
    """The same as the original does it."""
    if what <= ADD_UNSEEN:
        return [*sessions, {ADD_ROOT: ROOT, ADD_SEEN: REMOVABLE, ADD_UNSEEN: STUCK}[what]]
    if what == REMOVE:
        return [kind for kind in sessions if kind != REMOVABLE]
    if what == RESTORE:
        return [ROOT] if at_start else []
    return [*sessions[:chosen], ROOT, *sessions[chosen + 1 :]]


def place(sessions: list[int], position: int) -> int:
    """Where a position of the list comes in the order that a loaded die counts."""
    ahead = next((k for k, kind in enumerate(sessions) if kind != REMOVABLE), len(sessions))
    if position <= ahead:
        return position
    behind = sessions[ahead:].count(REMOVABLE)
    return ahead + 1 + (0 if sessions[position] == REMOVABLE else behind)


@pytest.mark.parametrize("host", [HOST, START])
def test_counts_say_what_a_list_would(host: int) -> None:
    dice, nets = np.random.default_rng(host), records(1, network_dtype(NUM_HOSTS, own_red=True))
    happens(CAGE2_WORLDS, nets, -1, 0, 0)
    sessions = [ROOT] if host == START else []
    often = np.array([1, 6, 5, 2, 0.7, 3])
    raised = 0
    for _ in range(4000):
        what, chosen = int(dice.choice(6, p=often / often.sum())), 0
        if what == RAISE:
            if not sessions or ROOT in sessions:
                continue
            chosen, raised = int(dice.integers(len(sessions))), raised + 1
        happens(CAGE2_WORLDS, nets, what, host, LOADED + place(sessions, chosen))
        sessions = in_a_list(sessions, what, chosen, host == START)
        net = nets[0]
        removable = int(net["ahead"][host]) + int(net["behind"][host])
        assert removable == sessions.count(REMOVABLE)
        assert net["stuck"][host] == sessions.count(STUCK)
        assert net["rooted"][host] == sessions.count(ROOT)
        assert (int(net["sessions"]) >> host & 1) == bool(sessions)
        assert (int(net["root"]) >> host & 1) == (ROOT in sessions)
        assert (int(net["oldest_root"]) >> host & 1) == (sessions[:1] == [ROOT])
        assert (int(net["ahead"][host]) > 0) == (sessions[:1] == [REMOVABLE])
        assert (int(net["removable"]) >> host & 1) == ({*sessions} == {REMOVABLE})
    assert raised > 50 or host == START


def test_any_session_is_raised_as_often_as_any_other() -> None:
    kinds = (ADD_SEEN, ADD_SEEN, ADD_UNSEEN, ADD_SEEN, ADD_UNSEEN)
    found = {"ahead": 0, "lead": 0, "behind": 0, "stuck": 0}
    for die in np.linspace(0, LOADED - 1, 1000).astype(np.int64):
        nets = records(1, network_dtype(NUM_HOSTS, own_red=True))
        for what in kinds:
            happens(CAGE2_WORLDS, nets, what, HOST, 0)
        happens(CAGE2_WORLDS, nets, RAISE, HOST, die)
        net = nets[0]
        is_lead = bool(int(net["lead_root"]) >> HOST & 1)
        if is_lead:
            found["lead" if net["stuck"][HOST] == 1 else "ahead"] += 1
        else:
            found["stuck" if net["stuck"][HOST] == 1 else "behind"] += 1
    assert found == {"ahead": 400, "lead": 200, "behind": 200, "stuck": 200}


@pytest.mark.skipif(not COMPILED, reason="about types of the compiler")
def test_no_record_is_taken_for_another_that_has_fewer_fields() -> None:
    """Or rules that were compiled for CAGE-2 would play networks that hold more."""
    kinds = [
        numba.from_dtype(network_dtype(NUM_HOSTS, counts, own))
        for counts in (False, True)
        for own in (False, True)
    ]
    for one, other in itertools.permutations(kinds, 2):
        assert one.can_convert_to(None, other) is None
