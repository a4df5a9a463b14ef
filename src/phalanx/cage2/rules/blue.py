"""What the defender can do."""

from phalanx.cage2.rules.network import ACTIVE, RUNNING, Network
from phalanx.cage2.rules.scenario import OP_SERVER0, PLACEABLE, USER0
from phalanx.compiled.bits import all_but, has, only
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


@rule
def restore(net: Network, host: int) -> None:
    """Put the host back to its image: no red session (but red's first one, on User0), no malware,
    no decoys.

    [Q3] The operational service runs again, and no later Impact can stop it in this episode.
    """
    gone = all_but(host)
    net.removable &= gone
    net.files &= gone
    if host != USER0:
        net.sessions &= gone
        net.root &= gone
    net.decoys[host] = 0
    net.restored |= only(host)
    if host == OP_SERVER0:
        net.service |= RUNNING | ACTIVE


@rule
def place_decoy(net: Network, host: int, decoy: int) -> bool:
    """Start a decoy if the host's system and its free ports allow; returns whether they did."""
    fits = has(PLACEABLE[host, net.decoys[host]], decoy)
    if fits:
        net.decoys[host] |= only(decoy)
    return fits
