"""Which numbers of an observation are about which host, where all hosts have as many of them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.hidden import NUM_FLAGS, NUM_STEPS
from phalanx.cage2.rules.observation import BITS, HISTORY, MEMORISED
from phalanx.cage2.rules.scenario import (
    ALL_RED_AGENTS,
    HORIZONS,
    NUM_DECOYS,
    NUM_EXPLOITS,
    NUM_VERBS,
)
from phalanx.cage2.rules.sizes import observation_size
from phalanx.cage2.rules.world import NUM_FEATURES, Worlds, num_hosts_of
from phalanx.errors import ConfigError

SETS, GROUPS, COMMON = "sets", "groups", "common"
Part = tuple[str, int]
"""SETS: so many times a number for each host, host after host. GROUPS: for each host so many
numbers side by side. COMMON: numbers that are about no host."""

HISTORY_PARTS: tuple[Part, ...] = (
    (GROUPS, 4), (SETS, 4), (GROUPS, NUM_DECOYS), (COMMON, NUM_VERBS), (SETS, 1), (COMMON, 1),
)  # fmt: skip
MEMORY_PARTS: tuple[Part, ...] = (*HISTORY_PARTS, (SETS, 3), (GROUPS, NUM_DECOYS), (COMMON, 2))


class Places(NamedTuple):
    """Where the numbers of an observation are."""

    of_hosts: npt.NDArray[np.int64]  # [hosts, numbers of each], features last
    common: npt.NDArray[np.int64]  # [numbers about no host]


def places_of(kind: int, worlds: Worlds) -> Places:
    """Those of observations of this kind, of networks that are shown host by host (`by_host`)."""
    if not worlds["shows_features"][0] or kind == BITS:
        raise ConfigError("hosts have as many numbers each only in batches with by_host=True")
    hosts, at = num_hosts_of(worlds), 0
    of_hosts: list[npt.NDArray[np.int64]] = []
    common: list[npt.NDArray[np.int64]] = []
    for way, count in _parts(kind, worlds):
        size = count if way == COMMON else count * hosts
        columns = np.arange(at, at + size)
        if way == COMMON:
            common.append(columns)
        else:
            of_hosts.append(
                columns.reshape(count, hosts).T if way == SETS else columns.reshape(hosts, count)
            )
        at += size
    assert at == observation_size(kind, worlds)
    return Places(np.hstack(of_hosts), np.concatenate(common))


def _parts(kind: int, worlds: Worlds) -> Iterator[Part]:
    """The parts of an observation, in their order."""
    if kind in (HISTORY, MEMORISED):
        yield from HISTORY_PARTS if kind == HISTORY else MEMORY_PARTS
    else:
        yield from ((GROUPS, 4), (GROUPS, NUM_DECOYS), (SETS, 1), (COMMON, 1 + 2 * len(HORIZONS)))
        # the hidden state: what red holds and knows, ports, dangers, red's next move, B-line
        yield from ((SETS, 10), (GROUPS, NUM_EXPLOITS), (SETS, 2), (SETS, 4), (COMMON, 2))
        yield from ((COMMON, NUM_STEPS), (SETS, 1), (COMMON, NUM_FLAGS))
        yield COMMON, int(worlds["num_subnets"][0]) + len(ALL_RED_AGENTS) + 1
    yield GROUPS, NUM_FEATURES
