"""One network as text: what blue sees beside what is true."""

from collections.abc import Sequence

import numpy as np

from phalanx.cage2.rules.network import RUNNING
from phalanx.cage2.rules.observation import shown_of
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, DECOYS, HOSTS

ACTIVITY = ("-", "Scan", "?", "Exploit")
COMPROMISED = ("No", "Unknown", "User", "Privileged")
ACCESS = ("-", "user", "root")


def picture(
    net: np.void, hosts: Sequence[str] = HOSTS, attackers: Sequence[str] = ALL_RED_AGENTS
) -> str:
    """A table of the hosts, for people."""
    service = "running" if int(net["service"]) & RUNNING else "DOWN"
    lines = [
        f"turn {net['turn']} of {net['horizon']} · return {net['tenths'] / 10:.1f} · "
        f"red agent {attackers[net['red']]} · operational service {service}",
        f"{'':12} | {'blue sees':^20} | {'true':^25} |",
        f"{'host':12} | {'activity':8} {'compromised':11} | {'known':5} {'scanned':7} {'access':6} "
        f"{'file':4} | decoys",
    ]
    for h, host in enumerate(hosts):
        bits = int(shown_of(net["seen"], h))
        known, scanned, session, root, file = (
            int(net[name]) >> h & 1 for name in ("known", "scanned", "sessions", "root", "files")
        )
        decoys = ", ".join(
            decoy.name.removeprefix("Decoy")
            for k, decoy in enumerate(DECOYS)
            if int(net["decoys"][h]) >> k & 1
        )
        lines.append(
            f"{host:12} | {ACTIVITY[bits & 3]:8} {COMPROMISED[bits >> 2]:11} | "
            f"{'yes' if known else '-':5} {'yes' if scanned else '-':7} {ACCESS[session + root]:6} "
            f"{'yes' if file else '-':4} | {decoys}"
        )
    return "\n".join(line.rstrip() for line in lines)
