"""All moves of a turn in words."""

import numpy as np

from phalanx.cage2.rules.network import NAME_KNOWN, RUNNING
from phalanx.cage2.rules.red_actions import ESCALATE, EXPLOIT, IMPACT, RED_SLEEP, SCAN, SWEEP
from phalanx.cage2.rules.scenario import (
    ALL_RED_AGENTS,
    ANALYSE,
    DECOYS,
    EXPLOITS,
    FAILS,
    FIRST_DECOY,
    LURES,
    NO_EXPLOIT,
    NO_HOST,
    NOTHING,
    REMOVE,
    RESTORE,
    SHUFFLE,
    SLEEP,
)
from phalanx.show.replay.place import as_set
from phalanx.show.replay.turn_log import Turn

RED_KINDS = {
    RED_SLEEP: "sleep",
    SWEEP: "scan_subnet",
    SCAN: "scan_host",
    EXPLOIT: "exploit",
    ESCALATE: "escalate",
    IMPACT: "impact",
}
ATTACKERS = dict(
    zip(
        ALL_RED_AGENTS,
        ("B-line", "Meander", "Sleep", "B-line with a detour", "Meander that rescans", "Coin"),
        strict=True,
    )
)


def blue_words(turn: Turn) -> str:
    """What blue did, and what came of it: `restores Enterprise1, where red was root`."""
    verb, host = turn.place.verb_of(turn.action), turn.place.host_of(turn.action)
    if host == NO_HOST:
        return "sleeps" if verb == SLEEP else "monitors"
    name = _name(turn, host)
    there = _standing(turn, host)
    if verb == RESTORE:
        return f"restores {name}, {_where(there)}"
    if verb == REMOVE:
        if there == "none":
            return f"removes red from {name}: it was not there"
        gone = _has(turn.before, "removable", host)
        return f"removes red from {name}: {'its shell is stopped' if gone else f'{there} stays'}"
    if verb == ANALYSE:
        found = _has(turn.before, "files", host)
        return f"analyses {name}: {'malware found' if found else 'nothing found'}"
    if verb == SHUFFLE:
        known = _has(turn.before, "scanned", host)
        return f"shuffles the ports of {name}, {'which red knew' if known else 'unknown to red'}"
    decoy = DECOYS[verb - FIRST_DECOY].name.removeprefix("Decoy")
    if turn.decoy == NO_HOST:
        return f"tries a decoy {decoy} on {name}: there is no room for it"
    return f"places a decoy {decoy} on {name}"


def red_words(turn: Turn) -> str:
    """What red did: `Meander exploits Enterprise1 by HTTPSRFI: succeeds, detected`."""
    number = int(turn.after["red"])
    is_own = number >= len(ALL_RED_AGENTS)
    who = "Your attacker" if is_own else ATTACKERS[ALL_RED_AGENTS[number]]
    if turn.move == RED_SLEEP:
        return f"{who} sleeps"
    if turn.move == SWEEP:
        found = as_set(turn.after, "known") & ~as_set(turn.before, "known")
        how = f"finds {found.bit_count()} hosts" if turn.succeeded else "fails, out of reach"
        return f"{who} scans the {turn.place.subnets[turn.target]} subnet: {how}"
    name = _name(turn, turn.target)
    if turn.move == SCAN:
        if turn.after["found_nothing"]:
            return f"{who} scans {name}: out of reach, unseen"
        return f"{who} scans {name}: {_seen(turn)}"
    if turn.move == ESCALATE:
        return f"{who} escalates on {name}: {_escalation(turn)}"
    if turn.move == IMPACT:
        return f"{who} {_impact(turn)}"
    if turn.exploit == NO_EXPLOIT:
        return f"{who} tries to exploit {name}: fails, it knows no open port"
    by = f"{who} exploits {name} by {EXPLOITS[turn.exploit]}"
    return f"{by}: {_outcome(turn)}"


def green_words(turn: Turn) -> str:
    """What green did, and how it looks to blue: `scans User3: seen as a scan`."""
    if turn.green == NO_HOST:
        return "does nothing"
    seen = {0: "unseen", 1: "seen as a scan", 3: "seen as an exploit"}[turn.shown_on(turn.green)]
    together = ", counted together with red's move" if turn.green == turn.target_host else ""
    return f"scans {_name(turn, turn.green)}: {seen}{together}"


def _outcome(turn: Turn) -> str:
    """Of an exploit that was tried."""
    host = turn.target
    if turn.succeeded:
        place = turn.place
        is_restore = place.verb_of(turn.action) == RESTORE
        restored = is_restore and place.host_of(turn.action) == host != place.start
        was_root = _has(turn.before, "root", host) and not restored
        as_root = _has(turn.after, "root", host) and not was_root
        return f"succeeds{' as root' if as_root else ''}, {_seen(turn)}"
    return f"fails, {_why_it_failed(turn)}, {_seen(turn)}"


def _why_it_failed(turn: Turn) -> str:
    host, chosen, world = turn.target, turn.exploit, turn.place.world
    # What answered stood there after blue's move; red's failure has changed none of it.
    if not turn.place.is_reached(turn.after, host):
        return "out of reach"
    if not int(world["let_through"][host]) >> chosen & 1:
        return "its port is closed on the way"
    genuine = world["meets"][host, chosen]
    if genuine == NOTHING:
        lured = int(turn.after["decoys"][host]) & int(LURES[chosen])
        if not lured:
            return "nothing answers"
        names = [d.name.removeprefix("Decoy") for k, d in enumerate(DECOYS) if lured >> k & 1]
        return f"met by the decoy {names[0]}"
    return "no account to guess" if genuine == FAILS else "spoiled by a Restore"


def _seen(turn: Turn) -> str:
    """What blue's table says of it."""
    if turn.move == SCAN:
        return {0: "unseen", 1: "detected", 3: "seen as an exploit"}[turn.shown]
    return {0: "unseen", 1: "seen as a scan", 3: "detected"}[turn.shown]


def _escalation(turn: Turn) -> str:
    if not turn.succeeded:
        return "fails, it has no session there"
    was_root = _has(turn.before, "root", turn.target)
    found = as_set(turn.after, "known") & ~as_set(turn.before, "known")
    reads = [name for h, name in enumerate(turn.place.hosts) if found >> h & 1]
    words = "it is root already" if was_root else "becomes root"
    return f"{words}, finds {', '.join(reads)}" if reads else words


def _impact(turn: Turn) -> str:
    service = "the operational service"
    if turn.succeeded:
        if int(turn.after["service"]) & RUNNING:
            return f"tries to stop {service}: a Restore keeps it running"
        stood = not int(turn.before["service"]) & RUNNING
        return f"stops {service}{', which stands still already' if stood else ''}"
    name = _name(turn, turn.target)
    if not _has(turn.after, "sessions", turn.target):
        return f"tries to stop {service}: fails, it has no session on {name}"
    if not int(turn.after["service"]) & NAME_KNOWN:
        return f"tries to stop {service}: fails, it does not know its name"
    return f"tries to stop {service}: fails, it does not run on {name}"


def _standing(turn: Turn, host: int) -> str:
    """Red on a host before blue's move."""
    if _has(turn.before, "root", host):
        return "root"
    return "user" if _has(turn.before, "sessions", host) else "none"


def _where(there: str) -> str:
    return "where red was not" if there == "none" else f"where red was {there}"


def _name(turn: Turn, host: int) -> str:
    return turn.place.hosts[host]


def _has(net: np.void, name: str, host: int) -> bool:
    """Whether a host is in one of a record's sets."""
    return bool(int(net[name]) >> host & 1)
