"""What an attacker can do: each call gives a move, to be returned.

A move that red cannot make (with a host or subnet that it does not know) stops the game with a line
that says so, unless the attacker is to sleep then: `@attacker(impossible="sleep")`.
"""

from phalanx.cage2.rules.red_actions import (
    BITS_OF_ACTION,
    ESCALATE,
    EXPLOIT,
    FIRST_PREFERRED,
    FIRST_SINGLE,
    IMPACT,
    RED_SLEEP,
    SCAN,
    SWEEP,
)
from phalanx.cage2.rules.scenario import (
    BLUE_KEEP,
    ETERNAL_BLUE,
    FTP,
    HARAKA,
    HTTP_RFI,
    HTTPS_RFI,
    NUM_EXPLOITS,
    SQL,
    SSH,
)
from phalanx.compiled.bits import number
from phalanx.compiled.rule import rule

NO_ACTION = (1 << BITS_OF_ACTION) - 1  # of an exploit that there is not


@rule
def move(action: int, target: int) -> int:
    """An action and its target in one number."""
    return number(action) | (number(target) << BITS_OF_ACTION)


@rule
def sleep() -> int:
    """Do nothing."""
    return move(RED_SLEEP, 0)


@rule
def sweep(subnet: int) -> int:
    """DiscoverRemoteSystems: learn all addresses of a subnet that red knows."""
    return move(SWEEP, subnet)


@rule
def scan(host: int) -> int:
    """DiscoverNetworkServices: learn which ports of a host listen."""
    return move(SCAN, host)


@rule
def exploit(host: int) -> int:
    """ExploitRemoteService: one of the exploits that the remembered ports allow, the best of them
    three times in four.
    """
    return move(EXPLOIT, host)


@rule
def exploit_first(host: int, preferred: int) -> int:
    """ExploitRemoteService with a priority: this exploit, if the remembered ports allow it and
    others besides.
    """
    is_one = 0 <= preferred < NUM_EXPLOITS
    return move(FIRST_PREFERRED + preferred if is_one else NO_ACTION, host)


@rule
def exploit_alone(host: int, chosen: int) -> int:
    """One exploit (SSH, …), whatever red remembers of the host.

    It tells nothing of the operating system, without which a user cannot escalate.
    """
    return move(FIRST_SINGLE + chosen if 0 <= chosen < NUM_EXPLOITS else NO_ACTION, host)


@rule
def eternal_blue(host: int) -> int:
    return exploit_alone(host, ETERNAL_BLUE)


@rule
def blue_keep(host: int) -> int:
    return exploit_alone(host, BLUE_KEEP)


@rule
def http_rfi(host: int) -> int:
    return exploit_alone(host, HTTP_RFI)


@rule
def https_rfi(host: int) -> int:
    return exploit_alone(host, HTTPS_RFI)


@rule
def ssh_brute_force(host: int) -> int:
    return exploit_alone(host, SSH)


@rule
def sql_injection(host: int) -> int:
    return exploit_alone(host, SQL)


@rule
def haraka_rce(host: int) -> int:
    return exploit_alone(host, HARAKA)


@rule
def ftp_directory_traversal(host: int) -> int:
    return exploit_alone(host, FTP)


@rule
def escalate(host: int) -> int:
    """PrivilegeEscalate: become root through a session on a host whose name red knows."""
    return move(ESCALATE, host)


@rule
def impact(host: int) -> int:
    """Impact: stop the operational service through a session on its host."""
    return move(IMPACT, host)
