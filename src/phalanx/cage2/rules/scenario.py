"""The world of CAGE Challenge 2 as tables: hosts, services, exploits, decoys, costs. Data, no
rules.

The upper half is written as the scenario is told; the lower half turns it into small arrays that
the rules index. Sets of hosts, ports, exploits and decoys are bit masks (bit h stands for host h).
"""

from typing import NamedTuple

import numpy as np

from phalanx.errors import ActionError, ConfigError, choices

# --- hosts, in the order of every table, action index and observation bit -------------------------

HOSTS = (
    "Defender", "Enterprise0", "Enterprise1", "Enterprise2", "Op_Host0", "Op_Host1", "Op_Host2",
    "Op_Server0", "User0", "User1", "User2", "User3", "User4",
)  # fmt: skip
NUM_HOSTS = len(HOSTS)
MAX_HOSTS = 64  # of any network that can be played
(
    DEFENDER, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_HOST0, OP_HOST1, OP_HOST2,
    OP_SERVER0, USER0, USER1, USER2, USER3, USER4,
) = range(NUM_HOSTS)  # fmt: skip
NO_HOST = -1

SUBNETS = ("Enterprise", "Operational", "User")
ENTERPRISE, OPERATIONAL, USER_SUBNET = range(3)
SUBNET_OF_HOST = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2], np.uint8)

# What a privileged red session on the host costs blue each turn, and what a stopped operational
# service and a
# Restore cost: in tenths, so that sums are exact.
ROOT_COST = np.array([1, 10, 10, 10, 1, 1, 1, 10, 0, 1, 1, 1, 1], np.int64)
SERVICE_DOWN_COST = 100
RESTORE_COST = 10
ACTION_COSTS = {"Restore": RESTORE_COST}  # others cost nothing

# The address that red reads off a host when it escalates there (besides the host's own).
POINTS_TO = {
    ENTERPRISE2: OP_SERVER0,
    USER1: ENTERPRISE1, USER2: ENTERPRISE1, USER3: ENTERPRISE0, USER4: ENTERPRISE0,
}  # fmt: skip

# --- exploits: number, the port it needs to have seen, and its rank in red's eyes -----------------

EXPLOITS = (
    "EternalBlue", "BlueKeep", "HTTPRFI", "HTTPSRFI", "SSHBruteForce", "SQLInjection", "HarakaRCE",
    "FTPDirectoryTraversal",
)  # fmt: skip
NUM_EXPLOITS = len(EXPLOITS)
ETERNAL_BLUE, BLUE_KEEP, HTTP_RFI, HTTPS_RFI, SSH, SQL, HARAKA, FTP = range(NUM_EXPLOITS)
NO_EXPLOIT = -1

# Bit k of a port mask stands for the port of exploit k.
EXPLOIT_PORTS = (139, 3389, 80, 443, 22, 3390, 25, 21)
EXPLOIT_RANKS = (2.0, 1.0, 3.0, 4.0, 0.1, 5.0, 6.0, 7.0)

# --- images: what listens on a host, and what each exploit meets there ----------------------------

NOTHING, FAILS, AS_USER, AS_ROOT, DECOY, SPOILED = range(6)  # what an exploit meets


class Image(NamedTuple):
    os: str
    ports: tuple[int, ...]
    yields: dict[
        int, int
    ]  # exploit -> FAILS, AS_USER or AS_ROOT; absent: no process of that type on that port
    runs_service: bool = False  # the operational service
    again: tuple[int, ...] = ()  # ports on which more than one listens


GATE = Image("Linux", (22,), {SSH: AS_USER})
OPS = Image("Linux", (22,), {SSH: AS_USER}, runs_service=True)
VEL = Image("Linux", (22, 53, 68), {SSH: FAILS})  # no account to guess
INT = Image(
    "Windows",
    (22, 135, 3389, 445, 139, 80, 443),
    {BLUE_KEEP: AS_ROOT, HTTP_RFI: AS_USER, HTTPS_RFI: AS_USER, SSH: AS_USER},
)
W1 = Image("Windows", (22, 21), {SSH: AS_USER, FTP: AS_ROOT})
W2 = Image("Windows", (445, 139, 135, 3389), {ETERNAL_BLUE: AS_ROOT, BLUE_KEEP: AS_USER})
L1 = Image("Linux", (80, 3389, 443, 25), {HTTP_RFI: AS_USER, HTTPS_RFI: AS_USER, HARAKA: AS_ROOT})
L2 = Image(
    "Linux",
    (22, 80, 3390, 443, 25),
    {HTTP_RFI: AS_USER, HTTPS_RFI: AS_USER, SSH: AS_USER, SQL: AS_ROOT, HARAKA: AS_ROOT},
)
IMAGE_OF_HOST = (VEL, GATE, INT, INT, GATE, GATE, GATE, OPS, W1, W1, W2, L1, L2)

# --- decoys ---------------------------------------------------------------------------------------


class Decoy(NamedTuple):
    name: str
    os: str  # "any", "Linux" or "Windows"
    needs_free: int
    opens: int
    lures: int  # the exploit that it attracts and defeats


DECOYS = (
    Decoy("DecoyApache", "any", 80, 80, HTTP_RFI),
    Decoy("DecoyFemitter", "Windows", 21, 21, FTP),
    Decoy("DecoyHarakaSMPT", "Linux", 25, 25, HARAKA),
    Decoy("DecoySmss", "Windows", 139, 139, ETERNAL_BLUE),
    Decoy("DecoySSHD", "any", 22, 22, SSH),
    Decoy("DecoySvchost", "Windows", 3389, 3389, BLUE_KEEP),
    Decoy("DecoyTomcat", "any", 443, 443, HTTPS_RFI),
    Decoy(
        "DecoyVsftpd", "Linux", 21, 80, HTTP_RFI
    ),  # asks for port 21 and takes 80: the original's slip
)
NUM_DECOYS = len(DECOYS)
NUM_DECOY_SETS = 1 << NUM_DECOYS

# --- blue's 145 actions: 0 Sleep, 1 Monitor, then 2 + 13 * verb + host ----------------------------

HOST_VERBS = ("Analyse", "Remove", *(decoy.name for decoy in DECOYS), "Restore")
VERBS = (*HOST_VERBS, "Sleep", "Monitor")
NUM_VERBS = len(VERBS)
ANALYSE, REMOVE, FIRST_DECOY = 0, 1, 2
RESTORE, SLEEP, MONITOR = range(FIRST_DECOY + NUM_DECOYS, NUM_VERBS)
NUM_ACTIONS = 2 + len(HOST_VERBS) * NUM_HOSTS
# Actions that the challenge does not have, for scenarios that ask for them: they come behind the
# others, and observations do not name them.
EXTRA_VERBS = ("Shuffle",)
(SHUFFLE,) = range(NUM_VERBS, NUM_VERBS + len(EXTRA_VERBS))
ALL_VERBS = (*VERBS, *EXTRA_VERBS)
ABOUT_HOSTS = (*HOST_VERBS, *EXTRA_VERBS)
ACTION_SLEEP, ACTION_MONITOR = 0, 1


def action_index(verb: str, host: str | None = None) -> int:
    """The number of an action by its name: `action_index("Restore", "User3")`."""
    if host is None:
        return _index("action without a host", verb, ("Sleep", "Monitor"))
    return 2 + NUM_HOSTS * _index("action", verb, HOST_VERBS) + _index("host", host, HOSTS)


def _index(what: str, name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise ConfigError(choices(what, name, names))
    return names.index(name)


def action_name(action: int) -> str:
    """The name of an action by its number: `"Restore User3"`."""
    if not 0 <= action < NUM_ACTIONS:
        raise ActionError(f"action {action} is not one of 0..{NUM_ACTIONS - 1}")
    if action < 2:
        return ("Sleep", "Monitor")[action]
    return f"{HOST_VERBS[(action - 2) // NUM_HOSTS]} {HOSTS[(action - 2) % NUM_HOSTS]}"


VERB_OF_ACTION = np.array(
    [SLEEP, MONITOR, *(v for v in range(len(HOST_VERBS)) for _ in HOSTS)], np.uint8
)
HOST_OF_ACTION = np.array([0, 0, *(h for _ in HOST_VERBS for h in range(NUM_HOSTS))], np.uint8)

# --- green ----------------------------------------------------------------------------------------

GREEN_HOSTS = (
    "User0", "User1", "User2", "User3", "User4", "Enterprise0", "Enterprise1", "Enterprise2",
)  # fmt: skip
"""that the original's GreenAgent scans, by name, wherever it plays"""

# --- red agents and rule sets ---------------------------------------------------------------------

RED_AGENTS = ("b_line", "meander", "sleep")  # the challenge's own
ALL_RED_AGENTS = (*RED_AGENTS, "b_line_detour", "meander_rescan", "coin")
B_LINE, MEANDER, SLEEP_AGENT, B_LINE_DETOUR, MEANDER_RESCAN, COIN = range(len(ALL_RED_AGENTS))
DRAWN = 255  # in place of an agent: drawn anew each episode
CHALLENGE_NAMES = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")

RULE_SETS = ("2.1-final", "2.1-leaderboard")
DEFAULT_RULES = "2.1-leaderboard"  # as the challenge was scored; of every face and command
FINAL, LEADERBOARD = range(2)

# --- tables for the rules -------------------------------------------------------------------------


def hosts(*members: int) -> int:
    """The bit mask of some hosts."""
    return sum(1 << host for host in members)


ENTERPRISE_HOSTS = hosts(
    ENTERPRISE0, ENTERPRISE1, ENTERPRISE2
)  # Defender is on their subnet, not one of them
OP_HOSTS = hosts(OP_HOST0, OP_HOST1, OP_HOST2, OP_SERVER0)
COSTS_ONE = hosts(*np.flatnonzero(ROOT_COST == 1).tolist())
COSTS_TEN = hosts(*np.flatnonzero(ROOT_COST == 10).tolist())
HARAKA_HOSTS = hosts(USER3, USER4)

HOSTS_OF_SUBNET = np.array(
    [hosts(*np.flatnonzero(s == SUBNET_OF_HOST).tolist()) for s in range(3)], np.uint16
)
READ_ON = np.array(
    [hosts(h, *([POINTS_TO[h]] if h in POINTS_TO else [])) for h in range(NUM_HOSTS)], np.uint16
)  # [host]: addresses that red learns by escalating there


def _ports(host: int, decoys: int) -> set[int]:
    """All ports that listen on a host with this set of decoys."""
    opened = {d.opens for i, d in enumerate(DECOYS) if decoys >> i & 1}
    return set(IMAGE_OF_HOST[host].ports) | opened


def _port_mask(ports: set[int]) -> int:
    return sum(1 << k for k, port in enumerate(EXPLOIT_PORTS) if port in ports)


def _placeable(host: int, decoys: int) -> int:
    os, taken = IMAGE_OF_HOST[host].os, _ports(host, decoys)
    fits = [d.os in ("any", os) and d.needs_free not in taken for d in DECOYS]
    return sum(1 << i for i, fit in enumerate(fits) if fit)


def _options(ports: int) -> int:
    """Exploits on offer for remembered ports; SQLInjection also wants a web port."""
    web = ports >> HTTP_RFI & 1 or ports >> HTTPS_RFI & 1
    return ports if web else ports & ~(1 << SQL)


def _best(options: int) -> int:
    ranked = sorted(range(NUM_EXPLOITS), key=EXPLOIT_RANKS.__getitem__, reverse=True)
    return next((e for e in ranked if options >> e & 1), 0)


_EVERY = [(h, d) for h in range(NUM_HOSTS) for d in range(NUM_DECOY_SETS)]
_BY_HOST_AND_DECOYS = (NUM_HOSTS, NUM_DECOY_SETS)
PLACEABLE = np.array([_placeable(h, d) for h, d in _EVERY], np.uint8).reshape(_BY_HOST_AND_DECOYS)
LISTENING = np.array([_port_mask(_ports(h, d)) for h, d in _EVERY], np.uint8).reshape(
    _BY_HOST_AND_DECOYS
)  # [host, decoys]: the ports that matter to an exploit
NUM_LISTENING = np.array([len(_ports(h, d)) for h, d in _EVERY], np.uint8).reshape(
    _BY_HOST_AND_DECOYS
)  # [host, decoys]: all ports, as a scan shows them to blue
MEETS = np.array(
    [
        [IMAGE_OF_HOST[h].yields.get(e, NOTHING) for e in range(NUM_EXPLOITS)]
        for h in range(NUM_HOSTS)
    ],
    np.uint8,
)  # [host, exploit]: what the genuine service gives
LURES = np.array(
    [sum(1 << i for i, d in enumerate(DECOYS) if d.lures == e) for e in range(NUM_EXPLOITS)],
    np.uint8,
)  # [exploit]: decoys that defeat it
OPTIONS = np.array([_options(p) for p in range(256)], np.uint8)  # [ports]
BEST = np.array([_best(o) for o in range(256)], np.uint8)  # [options]

OPENED = np.array(
    [_port_mask({d.opens for i, d in enumerate(DECOYS) if s >> i & 1}) for s in range(256)],
    np.uint8,
)  # [decoys]: the ports that they open
BLOCKED = np.array(
    [
        sum(
            1 << k
            for k, decoy in enumerate(DECOYS)
            if any(d.opens == decoy.needs_free for i, d in enumerate(DECOYS) if s >> i & 1)
        )
        for s in range(256)
    ],
    np.uint8,
)  # [decoys]: decoys that find no free port beside them

# Decoys that can ever stand, host by host: what a defender may remember of its own work.
DECOY_SPOTS = tuple(
    (h, d) for h in range(NUM_HOSTS) for d in range(NUM_DECOYS) if PLACEABLE[h, 0] >> d & 1
)

# --- the challenge's evaluation -------------------------------------------------------------------

HORIZONS = (30, 50, 100)
CELLS = tuple((red, horizon) for red in ("b_line", "meander", "sleep") for horizon in HORIZONS)
PUBLISHED = {
    name: dict(zip(CELLS, scores, strict=True))
    for name, scores in (
        ("CardiffUni (winner)", (-3.47, -6.41, -13.76, -5.64, -8.69, -16.60, 0, 0, 0)),
        ("Keeping it RL", (-3.48, -5.85, -11.39, -6.47, -10.33, -19.38, 0, 0, 0)),
        ("Mindrake", (-3.53, -6.20, -12.78, -6.76, -10.13, -17.65, 0, 0, 0)),
    )
}  # mean returns in each cell, as published


def useful_actions() -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Actions that can ever help: none on Defender and User0, no Monitor, no impossible decoy.

    Vsftpd is left out: it lures what Apache lures, and on User3 and User4 nothing.
    """
    useful = np.zeros(NUM_ACTIONS, np.bool_)
    useful[ACTION_SLEEP] = True
    for action in range(2, NUM_ACTIONS):
        verb, host = int(VERB_OF_ACTION[action]), int(HOST_OF_ACTION[action])
        stands = verb in (ANALYSE, REMOVE, RESTORE) or (host, verb - FIRST_DECOY) in DECOY_SPOTS
        vsftpd = verb == FIRST_DECOY + NUM_DECOYS - 1
        useful[action] = host not in (DEFENDER, USER0) and stands and not vsftpd
    return useful
