"""The hidden state of a network as numbers from 0 to 1."""

from typing import Any

import numpy as np

from phalanx.cage2.rules.attackers import (
    ESCALATE,
    EXPLOIT,
    IMPACT,
    RED_SLEEP,
    SCAN,
    SWEEP,
    plan_move,
)
from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.red import chance_of_exploit, exploits_against, meets, takes
from phalanx.cage2.rules.scenario import (
    ALL_RED_AGENTS,
    LISTENING,
    NO_HOST,
    NUM_EXPLOITS,
    NUM_HOSTS,
)
from phalanx.cage2.rules.scenario import AS_ROOT as GIVES_ROOT
from phalanx.cage2.rules.scenario import AS_USER as GIVES_USER
from phalanx.compiled.bits import count, lowest, number
from phalanx.compiled.rule import rule

# Ports of a host that red can ever remember.
PORT_SPOTS = tuple(
    (host, port)
    for host in range(NUM_HOSTS)
    for port in range(NUM_EXPLOITS)
    if (LISTENING[host] >> port & 1).any()
)
_SPOT_HOSTS = np.array([host for host, _ in PORT_SPOTS], np.int64)
_SPOT_PORTS = np.array([port for _, port in PORT_SPOTS], np.int64)

# Where each part begins. First sets of hosts, 13 numbers each.
(USER, ROOT, REMOVABLE, FILES, KNOWN, SCANNED, SCAN_TRIED, EXPLOITED, ESCALATED, MAPPED, PORTS) = (
    range(0, 11 * NUM_HOSTS, NUM_HOSTS)
)
AS_USER = PORTS + len(PORT_SPOTS)  # [13] the chance that an exploit would take the host now
AS_ROOT = AS_USER + NUM_HOSTS  # ... and make red root at once
NEXT_SCAN = AS_ROOT + NUM_HOSTS  # [13] the chance that red's next move is a scan of the host
NEXT_EXPLOIT = NEXT_SCAN + NUM_HOSTS
NEXT_ESCALATE = NEXT_EXPLOIT + NUM_HOSTS
NEXT_LOSS = NEXT_ESCALATE + NUM_HOSTS  # [13] ... an exploit that takes it
NEXT_SWEEP = NEXT_LOSS + NUM_HOSTS
NEXT_IMPACT = NEXT_SWEEP + 1
STEP = NEXT_IMPACT + 1  # [15] B-line's
TARGET = STEP + 15  # [13] B-line's
SERVICE = TARGET + NUM_HOSTS  # [3]
SUBNETS = SERVICE + 3  # [3] that red knows
ATTACKER = SUBNETS + 3
SURPRISED = ATTACKER + len(ALL_RED_AGENTS)  # how far this cannot be relied on, see belief.py
HIDDEN_SIZE = SURPRISED + 1


@rule
def add_hidden(net: Network, weight: np.float32, coin: int, row: Any) -> None:
    """Add what is true of a network, `weight` times. It is left with its next move planned.

    coin: how it falls where an attacker throws one.
    """
    add_set(number(net.sessions) & ~number(net.root), weight, row, USER)
    add_set(number(net.root), weight, row, ROOT)
    add_set(number(net.removable), weight, row, REMOVABLE)
    add_set(number(net.files), weight, row, FILES)
    add_set(number(net.known), weight, row, KNOWN)
    add_set(number(net.scanned), weight, row, SCANNED)
    add_set(number(net.scan_tried), weight, row, SCAN_TRIED)
    add_set(number(net.exploited), weight, row, EXPLOITED)
    add_set(number(net.escalated), weight, row, ESCALATED)
    add_set(number(net.mapped), weight, row, MAPPED)
    for spot in range(len(_SPOT_HOSTS)):
        row[PORTS + spot] += weight * ((net.ports[_SPOT_HOSTS[spot]] >> _SPOT_PORTS[spot]) & 1)
    add_dangers(net, weight, row)
    add_set(number(net.service), weight, row, SERVICE)
    add_set(number(net.subnets), weight, row, SUBNETS)
    row[ATTACKER + number(net.red)] += weight
    if net.line_target != NO_HOST:
        row[TARGET + number(net.line_target)] += weight
    if net.line_done:
        row[STEP + number(net.line_step)] += weight
    add_next_move(net, weight, coin, row)


@rule
def add_set(members: int, weight: np.float32, row: Any, first: int) -> None:
    while members:
        row[first + lowest(members)] += weight
        members &= members - 1


@rule
def add_dangers(net: Network, weight: np.float32, row: Any) -> None:
    """Whether an exploit would take each host whose ports red remembers, and as whom."""
    for host in range(NUM_HOSTS):
        options = exploits_against(net, host)
        left = options
        while left:
            chosen = lowest(left)
            left &= left - 1
            answer = meets(net, host, chosen)
            if answer == GIVES_USER:
                row[AS_USER + host] += weight * np.float32(chance_of_exploit(options, chosen))
            elif answer == GIVES_ROOT:
                row[AS_ROOT + host] += weight * np.float32(chance_of_exploit(options, chosen))


@rule
def add_next_move(net: Network, weight: np.float32, coin: int, row: Any) -> None:
    """What red will do if blue does nothing, and whether an exploit will take its host."""
    move, targets = plan_move(net, coin)
    if move == RED_SLEEP:
        return
    if move == SWEEP:
        row[NEXT_SWEEP] += weight
        return
    if move == IMPACT:
        row[NEXT_IMPACT] += weight
        return
    share = weight / np.float32(count(targets))
    if move == SCAN:
        add_set(targets, share, row, NEXT_SCAN)
    elif move == ESCALATE:
        add_set(targets, share, row, NEXT_ESCALATE)
    elif move == EXPLOIT:
        add_set(targets, share, row, NEXT_EXPLOIT)
        while targets:
            host = lowest(targets)
            targets &= targets - 1
            options = exploits_against(net, host)
            left = options
            while left:
                chosen = lowest(left)
                left &= left - 1
                if takes(net, host, chosen):
                    chance = np.float32(chance_of_exploit(options, chosen))
                    row[NEXT_LOSS + host] += share * chance
