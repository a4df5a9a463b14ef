"""An episode in a sentence or two: what came of it, and where it went wrong."""

from phalanx.files import Facts

CAUSES = {
    "root": "red is root on {host}",
    "restore": "Restore of {host}",
    "service": "the operational service stands still",
}
ACTION = "{cause} of {host}"  # whatever else of blue's costs something


def headline(play: dict[str, object], scenario: dict[str, object] | None = None) -> str:
    """`champion against meander, seed 7, episode 0: return -10.7`.

    scenario: of the trajectory; a network that is not CAGE-2 is named.
    """
    where = f"seed {play['seed']}, episode {play['episode']}"
    if play["source"] == "trace":
        where = f"recorded episode {play['episode']}"
    network = f" on {scenario['name']}" if scenario and "name" in scenario else ""
    who = f"{play['policy']} against {play['attacker']}{network}"
    return f"{who}, {where}: return {play['return']:.1f}"


def what_went_wrong(trajectory: Facts, play: Facts) -> str:
    """The decision that cost most, if games were played to find it; else the turn that did."""
    regrets = play["turns"]["regret"]
    if regrets is None:
        return _costliest(trajectory, play)
    sure = [(regret[0], turn) for turn, regret in enumerate(regrets) if regret and regret[1] > 0]
    if not sure:
        return "no other action that was tried would surely have done better"
    gained, turn = max(sure, key=lambda one: (one[0], -one[1]))
    _played, *others = play["turns"]["what_if"][turn]["actions"]
    best = max(others, key=lambda row: (row[7], row[4]))  # the most games were played with it
    action = trajectory["scenario"]["actions"][best[0]]
    reach = regrets[turn][2] - gained
    others_sure = len(sure) - 1
    more = f", and {others_sure} more such turn{'s' * (others_sure > 1)}" if others_sure else ""
    return f"turn {turn + 1}: {action} would have gained {gained:.2f} ± {reach:.2f}{more}"


def _costliest(trajectory: Facts, play: Facts) -> str:
    rewards = play["turns"]["reward"]
    worst = min(rewards, default=0.0)
    if not worst:
        return "it lost nothing"
    turn = rewards.index(worst)
    cause, host, _points = min(play["turns"]["costs"][turn], key=lambda part: part[2])
    name = trajectory["scenario"]["hosts"][host]["name"] if host >= 0 else ""
    words = CAUSES.get(cause, ACTION if name else "{cause}").format(host=name, cause=cause)
    return f"turn {turn + 1} cost most: {worst:.1f}, {words}"
