"""What blue may choose from when red scans or exploits: lists of lotteries over what comes of it.

A menu has K outcomes and some rows of K chances; blue takes a row, then chance takes an outcome.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.belief import SEEN_SHELL, UNSEEN_SHELL
from phalanx.cage2.rules.network import LOADED
from phalanx.cage2.rules.red import SEEN_SHARE, chance_of_exploit
from phalanx.cage2.rules.scenario import (
    DECOYS,
    EXPLOIT_RANKS,
    FAILS,
    HARAKA,
    LISTENING,
    MEETS,
    NOTHING,
    NUM_EXPLOITS,
    NUM_HOSTS,
    OPTIONS,
    PLACEABLE,
    SSH,
)
from phalanx.cage2.rules.world import Worlds
from phalanx.cage2.scenario.read import CAGE2_WORLDS

MOST_OUTCOMES = 32
OF_PORTS = MOST_OUTCOMES  # menus OF_PORTS + set of exploits: red draws one, blue has no choice
OF_HOST = OF_PORTS + (1 << NUM_EXPLOITS)  # menus OF_HOST + host: blue chooses what red remembers
NUM_MENUS = OF_HOST + NUM_HOSTS

Lottery = tuple[float, ...]
Play = tuple[int, int]  # the loaded dice of exploit and detection that lead to an outcome


class Menus(NamedTuple):
    """All menus, row after row. Menu K - 1 is the free choice among K outcomes."""

    sizes: npt.NDArray[np.int32]  # [menus] outcomes
    rows: npt.NDArray[np.int32]  # [menus] lotteries
    first: npt.NDArray[np.int32]  # [menus] where its chances begin
    chances: npt.NDArray[np.float64]  # rows of `size` chances each
    plays: npt.NDArray[np.int64]  # [menus, MOST_OUTCOMES, 2] dice that lead to each outcome
    standable: npt.NDArray[np.uint8]  # [hosts, MOST_OUTCOMES] sets of decoys with different ports
    num_standable: npt.NDArray[np.int32]  # [hosts]
    alike: npt.NDArray[np.uint8]  # [hosts, ports] one of the sets of ports that do the same there
    worlds: Worlds  # [1] the network


def standable_sets(host: int) -> list[int]:
    """All sets of decoys that can stand on a host, in whatever order they were placed."""
    found = {0}
    while True:
        more = {
            s | 1 << d for s in found for d in range(len(DECOYS)) if PLACEABLE[host, s] >> d & 1
        }
        if more <= found:
            return sorted(found)
        found |= more


def make_menus() -> Menus:
    menus = [_free_choice(k) for k in range(1, MOST_OUTCOMES + 1)]
    menus += [_exploit_by_ports(options) for options in range(1 << NUM_EXPLOITS)]
    menus += [_exploit_of_host(host) for host in range(NUM_HOSTS)]
    plays = np.zeros((NUM_MENUS, MOST_OUTCOMES, 2), np.int64)
    for k, (its_plays, _rows) in enumerate(menus):
        if its_plays:
            plays[k, : len(its_plays)] = its_plays
    sizes = [len(rows[0]) for _plays, rows in menus]
    counts = [len(rows) for _plays, rows in menus]
    lengths = np.multiply(sizes, counts)
    sets = [_with_different_ports(host) for host in range(NUM_HOSTS)]
    standable = np.zeros((NUM_HOSTS, MOST_OUTCOMES), np.uint8)
    for host, its_sets in enumerate(sets):
        standable[host, : len(its_sets)] = its_sets
    return Menus(
        np.array(sizes, np.int32),
        np.array(counts, np.int32),
        np.array(np.cumsum(lengths) - lengths, np.int32),
        np.array([chance for _plays, rows in menus for row in rows for chance in row]),
        plays,
        standable,
        np.array([len(one) for one in sets], np.int32),
        np.array([_alike(host) for host in range(NUM_HOSTS)], np.uint8),
        CAGE2_WORLDS,
    )


def _with_different_ports(host: int) -> list[int]:
    """One set of decoys for each set of ports that a scan of the host can see."""
    return list({int(LISTENING[host, s]): s for s in standable_sets(host)}.values())


def _alike(host: int) -> list[int]:
    """For each set of ports, one that gives red the same chances on a host.

    Nothing genuine answers on ports that only decoys open. They count by their number: how many red
    ranks above all that is genuine, and how many below.
    """
    bare = int(LISTENING[host, 0])
    seen = {int(LISTENING[host, decoys]) for decoys in standable_sets(host)}
    opened = [e for e in range(NUM_EXPLOITS) if any((ports & ~bare) >> e & 1 for ports in seen)]
    highest = max((EXPLOIT_RANKS[e] for e in range(NUM_EXPLOITS) if bare >> e & 1), default=0.0)
    above = [e for e in opened if EXPLOIT_RANKS[e] > highest]
    below = [e for e in opened if EXPLOIT_RANKS[e] < highest]
    alike = []
    for ports in range(1 << NUM_EXPLOITS):
        chosen = ports & ~sum(1 << e for e in opened)
        for group in (above, below):
            chosen |= sum(1 << e for e in group[: sum(ports >> e & 1 for e in group)])
        alike.append(chosen)
    return alike


def _free_choice(size: int) -> tuple[list[Play], list[Lottery]]:
    return [], [tuple(float(i == k) for i in range(size)) for k in range(size)]


def _exploit_by_ports(options: int) -> tuple[list[Play], list[Lottery]]:
    """Red's draw from the exploits that it has on offer, and whether its shell is seen."""
    plays: list[Play] = []
    chances: list[float] = []
    for exploit in range(NUM_EXPLOITS):
        if options >> exploit & 1:
            share = chance_of_exploit(options, exploit)
            plays += [(LOADED + exploit, SEEN_SHELL), (LOADED + exploit, UNSEEN_SHELL)]
            chances += [share * SEEN_SHARE, share * (1 - SEEN_SHARE)]
    return (plays, [tuple(chances)]) if plays else ([(LOADED, SEEN_SHELL)], [(1.0,)])


def _exploit_of_host(host: int) -> tuple[list[Play], list[Lottery]]:
    """A row for each set of ports that red may remember. Exploits that meet the same are one."""
    kinds: dict[tuple[int, bool, bool], int] = {}
    for exploit in range(NUM_EXPLOITS):
        kinds.setdefault(_kind(host, exploit), exploit)
    plays = [
        (kind, (LOADED + exploit, die))
        for kind, exploit in kinds.items()
        for die in (SEEN_SHELL, UNSEEN_SHELL)
    ]
    rows = []
    for decoys in standable_sets(host):
        options = int(OPTIONS[LISTENING[host, decoys]])
        shares = dict.fromkeys(kinds, 0.0)
        for exploit in range(NUM_EXPLOITS):
            if options >> exploit & 1:
                shares[_kind(host, exploit)] += chance_of_exploit(options, exploit)
        seen = {SEEN_SHELL: SEEN_SHARE, UNSEEN_SHELL: 1 - SEEN_SHARE}
        rows.append(tuple(shares[kind] * seen[die] for kind, (_exploit, die) in plays))
    return [play for _kind, play in plays], list(dict.fromkeys(rows))


def _kind(host: int, exploit: int) -> tuple[int, bool, bool]:
    """What tells exploits of one host apart: what the genuine service gives, and special rules."""
    answer = int(MEETS[host, exploit])
    if answer in (NOTHING, FAILS):
        return NOTHING, False, False
    return answer, exploit == SSH, exploit == HARAKA
