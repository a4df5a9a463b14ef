"""What the defender can do."""

from phalanx.cage2.rules.network import ACTIVE, RUNNING, Network
from phalanx.cage2.rules.scenario import BLOCKED
from phalanx.cage2.rules.sessions import end_all_if_any, end_removable_if_any, own_red
from phalanx.cage2.rules.web_decoys import (
    add_vsftpd_if_counted,
    counted,
    forget_vsftpd_if_counted,
)
from phalanx.cage2.rules.world import World
from phalanx.compiled.bits import all_but, has, number, only
from phalanx.compiled.rule import rule


@rule
def analyse(net: Network, host: int) -> bool:
    """Look for malware on the disk.

    [Q1] A shell's file lies there whoever the shell runs as, and after Remove.
    """
    return has(net.files, host)


@rule
def remove(net: Network, host: int) -> None:
    """Stop red's user-level shell if blue saw it start.

    [Q2] Root, SSH and unseen shells survive.
    """
    if has(net.removable, host):
        net.removable &= all_but(host)
        net.sessions &= all_but(host)
    end_removable_if_any(own_red(net), host)


@rule
def restore(world: World, net: Network, host: int) -> None:
    """Put the host back to its image: no red session (but red's first one, in CAGE-2 on User0), no
    malware, no decoys.

    [Q3] The operational service runs again, and no later Impact can stop it in this episode.
    """
    gone = all_but(host)
    net.removable &= gone
    net.files &= gone
    if host != world.start:
        net.sessions &= gone
        net.root &= gone
    end_all_if_any(own_red(net), world, host)
    net.decoys[host] = 0
    forget_vsftpd_if_counted(counted(net), host)
    net.restored |= only(host)
    if host == world.goal:
        net.service |= RUNNING | ACTIVE


@rule
def shuffle(net: Network, host: int) -> None:
    """Move the host's services to other ports: what red remembers of them is worth nothing.

    No action of the challenge's: scenarios name it in `blue_actions`.
    """
    net.ports[host] = 0
    net.scanned &= all_but(host)


@rule
def placeable(world: World, host: int, decoys: int) -> int:
    """The decoys that the host's system and its free ports allow beside those that stand."""
    return number(world.fits[host]) & ~number(BLOCKED[decoys])


@rule
def place_decoy(world: World, net: Network, host: int, decoy: int) -> bool:
    """Start a decoy if the host's system and its free ports allow; returns whether they did."""
    fits = has(placeable(world, host, net.decoys[host]), decoy)
    if fits:
        net.decoys[host] |= only(decoy)
        add_vsftpd_if_counted(counted(net), host, decoy)
    return fits
