"""Red's actions, by number. Data, no rules."""

from phalanx.cage2.rules.scenario import EXPLOITS, NUM_EXPLOITS

RED_ACTIONS = (
    "Sleep", "DiscoverRemoteSystems", "DiscoverNetworkServices", "ExploitRemoteService",
    "PrivilegeEscalate", "Impact",
)  # fmt: skip
RED_SLEEP, SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT = range(len(RED_ACTIONS))

# Only attackers of the user's own have these: exploit k alone, whatever red remembers of the host;
# and ExploitRemoteService that prefers exploit k, as its `priority`.
INVALID = len(RED_ACTIONS)  # an action that the original did not let red play
FIRST_SINGLE = INVALID + 1
FIRST_PREFERRED = FIRST_SINGLE + NUM_EXPLOITS
NUM_RED_ACTIONS = FIRST_PREFERRED + NUM_EXPLOITS

BITS_OF_ACTION = 8  # of a move, which is an action and its target in one number
RAISED = -1  # in place of a move: the attacker stopped with an error


def red_action_name(action: int) -> str:
    """What red does, in the original's words."""
    if 0 <= action < INVALID:
        return RED_ACTIONS[action]
    if FIRST_SINGLE <= action < FIRST_PREFERRED:
        return EXPLOITS[action - FIRST_SINGLE]
    if FIRST_PREFERRED <= action < NUM_RED_ACTIONS:
        return f"ExploitRemoteService, {EXPLOITS[action - FIRST_PREFERRED]} first,"
    return f"action {action}"
