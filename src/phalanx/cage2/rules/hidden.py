"""The hidden state of a network as numbers from 0 to 1."""

import numpy as np

from phalanx.cage2.rules.attackers import plan_move
from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.red import chance_of_exploit, exploits_against, meets, takes
from phalanx.cage2.rules.red_actions import ESCALATE, EXPLOIT, IMPACT, RED_SLEEP, SCAN, SWEEP
from phalanx.cage2.rules.scenario import (
    ALL_RED_AGENTS,
    LISTENING,
    NO_HOST,
    NUM_EXPLOITS,
    NUM_HOSTS,
)
from phalanx.cage2.rules.scenario import AS_ROOT as GIVES_ROOT
from phalanx.cage2.rules.scenario import AS_USER as GIVES_USER
from phalanx.cage2.rules.world import World, hosts_in
from phalanx.compiled.bits import count, lowest, number
from phalanx.compiled.rule import rule
from phalanx.compiled.spread import BytesOrFloats

# Ports of a host that red can ever remember.
PORT_SPOTS = tuple(
    (host, port)
    for host in range(NUM_HOSTS)
    for port in range(NUM_EXPLOITS)
    if (LISTENING[host] >> port & 1).any()
)

# Where each part begins in CAGE-2. First sets of hosts, 13 numbers each.
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
NUM_STEPS, NUM_FLAGS = 15, 3
STEP = NEXT_IMPACT + 1  # [15] B-line's
TARGET = STEP + NUM_STEPS  # [13] B-line's
SERVICE = TARGET + NUM_HOSTS  # [3]
SUBNETS = SERVICE + NUM_FLAGS  # [3] that red knows
ATTACKER = SUBNETS + 3
SURPRISED = ATTACKER + len(ALL_RED_AGENTS)  # how far this cannot be relied on, see belief.py
HIDDEN_SIZE = SURPRISED + 1


@rule
def add_hidden(
    world: World,
    net: Network,
    own: Network,
    differing: Network,
    weight: np.float32,
    coin: int,
    row: BytesOrFloats,
) -> None:
    """Add what is true of a network, `weight` times, but for what `add_shared` adds. It is left
    with its next move planned.

    differing: bits that are not the same in all possible networks. own: those of them that are set.
    coin: how it falls where an attacker throws one.
    """
    users = number(differing.sessions) | number(differing.root)
    users &= number(net.sessions) & ~number(net.root)
    moves = add_sets(world, own, users, weight, row)
    hosts = hosts_in(world)
    add_dangers(world, net, weight, row, moves - 2 * hosts)
    step = moves + 4 * hosts + 2
    target = step + NUM_STEPS
    subnets = target + hosts + NUM_FLAGS
    row[subnets + number(world.num_subnets) + number(net.red)] += weight
    if net.line_target != NO_HOST:
        row[target + number(net.line_target)] += weight
    if net.line_done:
        row[step + number(net.line_step)] += weight
    add_next_move(world, net, weight, coin, row, moves)


@rule
def add_shared(
    world: World, shared: Network, differing: Network, weight: np.float32, row: BytesOrFloats
) -> None:
    """Add bits that are set in all possible networks, `weight` times."""
    users = number(shared.sessions) & ~(number(shared.root) | number(differing.root))
    add_sets(world, shared, users, weight, row)


@rule
def add_sets(world: World, net: Network, users: int, weight: np.float32, row: BytesOrFloats) -> int:
    """Add these users' hosts and all other sets of a network; where red's next move stands."""
    hosts = hosts_in(world)
    add_set(users, weight, row, 0)
    add_set(number(net.root), weight, row, hosts)
    add_set(number(net.removable), weight, row, 2 * hosts)
    add_set(number(net.files), weight, row, 3 * hosts)
    add_set(number(net.known), weight, row, 4 * hosts)
    add_set(number(net.scanned), weight, row, 5 * hosts)
    add_set(number(net.scan_tried), weight, row, 6 * hosts)
    add_set(number(net.exploited), weight, row, 7 * hosts)
    add_set(number(net.escalated), weight, row, 8 * hosts)
    add_set(number(net.mapped), weight, row, 9 * hosts)
    at, any_ports = 10 * hosts, 0
    for host in range(hosts):
        any_ports |= number(net.ports[host])
    if any_ports:
        for spot in range(world.num_port_spots):
            ports = number(net.ports[world.port_spot_host[spot]])
            row[at + spot] += weight * ((ports >> number(world.port_spot[spot])) & 1)
    moves = at + number(world.num_port_spots) + 2 * hosts
    service = moves + 4 * hosts + 2 + NUM_STEPS + hosts
    add_set(number(net.service), weight, row, service)
    add_set(number(net.subnets), weight, row, service + NUM_FLAGS)
    return moves


@rule
def add_set(members: int, weight: np.float32, row: BytesOrFloats, first: int) -> None:
    while members:
        row[first + lowest(members)] += weight
        members &= members - 1


@rule
def add_dangers(
    world: World, net: Network, weight: np.float32, row: BytesOrFloats, first: int
) -> None:
    """Whether an exploit would take each host whose ports red remembers, and as whom."""
    hosts = hosts_in(world)
    for host in range(hosts):
        options = exploits_against(net, host)
        left = options
        while left:
            chosen = lowest(left)
            left &= left - 1
            answer = meets(world, net, host, chosen)
            if answer == GIVES_USER:
                row[first + host] += weight * np.float32(chance_of_exploit(options, chosen))
            elif answer == GIVES_ROOT:
                row[first + hosts + host] += weight * np.float32(chance_of_exploit(options, chosen))


@rule
def add_next_move(
    world: World, net: Network, weight: np.float32, coin: int, row: BytesOrFloats, first: int
) -> None:
    """What red will do if blue does nothing, and whether an exploit will take its host.

    In this order: scans, exploits, escalations, losses, one number a host each; sweep, impact.
    """
    hosts = hosts_in(world)
    move, targets = plan_move(world, net, coin)
    if move == RED_SLEEP:
        return
    if move == SWEEP:
        row[first + 4 * hosts] += weight
        return
    if move == IMPACT:
        row[first + 4 * hosts + 1] += weight
        return
    share = weight / np.float32(count(targets))
    if move == SCAN:
        add_set(targets, share, row, first)
    elif move == ESCALATE:
        add_set(targets, share, row, first + 2 * hosts)
    elif move == EXPLOIT:
        add_set(targets, share, row, first + hosts)
        while targets:
            host = lowest(targets)
            targets &= targets - 1
            options = exploits_against(net, host)
            left = options
            while left:
                chosen = lowest(left)
                left &= left - 1
                if takes(world, net, host, chosen):
                    chance = np.float32(chance_of_exploit(options, chosen))
                    row[first + 3 * hosts + host] += share * chance
