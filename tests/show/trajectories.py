"""Small episodes for tests of the viewer, on networks of any size: made up, but by the contract."""

import copy
import random
from typing import Any

from phalanx.show.drawing.page import page
from phalanx.show.replay.viewer import REPLAY_PAGE, VIEWER_SCRIPTS, VIEWER_STYLES

VERBS = ("Analyse", "Remove", "DecoyApache", "DecoyHarakaSMPT", "DecoyTomcat", "Restore")
DECOYS = ("Apache", "HarakaSMPT", "Tomcat")
KINDS = ("scan_host", "exploit", "exploit", "escalate")
Trajectory = dict[str, Any]


def trajectory(
    subnets: tuple[int, ...] = (5, 4, 4),
    turns: int = 100,
    seed: int = 0,
    plays: int = 1,
    name: str = "",
    without: tuple[str, ...] = (),
) -> Trajectory:
    """An episode on subnets of so many hosts, red beginning in the first.

    name: appended to the names of hosts, subnets, policy and attacker. without: what is left out,
    of belief, remembered, likely, value, what_if and regret.
    """
    names = ("User", "Enterprise", "Operational", "Lab", "Cloud")
    hosts: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for index, count in enumerate(subnets):
        first = len(hosts)
        called = names[index % len(names)]
        hosts += [
            {"name": f"{called}{k}{name}", "subnet": index, "value": "low", "image": "linux"}
            for k in range(count)
        ]
        groups.append({"name": called + name, "hosts": list(range(first, len(hosts)))})
    verbs = [f"{verb} {host['name']}" for verb in VERBS for host in hosts]
    starts: list[int] = [group["hosts"][0] for group in groups]
    scenario = {
        "rules": "2.1-leaderboard",
        "horizon": turns,
        "hosts": hosts,
        "subnets": groups,
        "links": [pair for k in range(1, len(subnets)) for pair in ([(k - 1) // 2, k],)],
        "points": [[starts[k] + 1, starts[k + 1]] for k in range(len(subnets) - 1)],
        "decoys": list(DECOYS),
        "actions": ["Sleep", "Monitor", *verbs],
    }
    if len(subnets) == 3:
        scenario["links"] = [[0, 1], [1, 0], [1, 2], [2, 1]]
    return {
        "format": "phalanx-trajectory",
        "version": 1,
        "scenario": scenario,
        "plays": [_play(scenario, turns, seed, k, name, without) for k in range(plays)],
    }


def _play(
    scenario: dict[str, Any],
    turns: int,
    seed: int,
    number: int,
    name: str,
    without: tuple[str, ...],
) -> dict[str, Any]:
    dice = random.Random(seed)
    count = len(scenario["hosts"])
    access, known, files, decoys = [0] * count, [0] * count, [0] * count, [0] * count
    access[0], known[0] = 2, 2
    scanned, exploited = [0] * count, [0] * count
    states: dict[str, Any] = {
        key: [] for key in ("access", "known", "files", "decoys", "activity", "compromised")
    }
    remembered: dict[str, list[list[int]]] = {"scan": [], "exploit": []}
    belief: dict[str, Any] = {
        key: [] for key in ("session", "root", "attackers", "states", "entropy")
    }
    told: dict[str, Any] = {
        key: []
        for key in (
            "blue",
            "blue_words",
            "blue_host",
            "red_words",
            "red_kind",
            "red_host",
            "reward",
            "costs",
            "likely",
            "value",
            "what_if",
            "regret",
        )
    }
    service, success = "", ""

    def note(activity: list[int]) -> None:
        nonlocal service
        states["access"].append("".join(map(str, access)))
        states["known"].append("".join(map(str, known)))
        states["files"].append("".join(map(str, files)))
        states["decoys"].append(list(decoys))
        states["activity"].append("".join(map(str, activity)))
        states["compromised"].append(
            "".join(str(a + 1 if a and e else 0) for a, e in zip(access, exploited, strict=True))
        )
        remembered["scan"].append(list(scanned))
        remembered["exploit"].append(list(exploited))
        sure = [
            dice.choice((0, 0, 3, 996, 120, 640)) if not a else 1000 - dice.choice((0, 4, 300))
            for a in access
        ]
        belief["session"].append(sure)
        belief["root"].append([s if a == 2 else s // 3 for s, a in zip(sure, access, strict=True)])
        belief["attackers"].append({"meander": 875, "b_line": 125})
        belief["states"].append(dice.randrange(1, 3000))
        belief["entropy"].append(round(dice.random() * 3, 3))
        service += "0" if access[-1] == 2 and dice.random() < 0.3 else "1"

    note([0] * count)
    for turn in range(1, turns + 1):
        changed = random.Random(seed * 1000 + turn + (number if turn > turns // 4 else 0))
        target = changed.randrange(count) if changed.random() < 0.85 else -1
        kind = changed.choice(KINDS) if target >= 0 else changed.choice(("scan_subnet", "sleep"))
        works = changed.random() < 0.6
        activity = [0] * count
        if target >= 0:
            known[target] = 2
            if kind == "exploit" and works and not access[target]:
                access[target] = 1
            if kind == "escalate":
                works = access[target] == 1
                if works:
                    access[target], files[target] = 2, 1
            if changed.random() < 0.8:
                activity[target] = 1 if kind == "scan_host" else 3
                (scanned if kind == "scan_host" else exploited)[target] = turn
        action = changed.randrange(len(scenario["actions"])) if changed.random() < 0.9 else turn % 2
        host = (action - 2) % count if action > 1 else -1
        verb = (action - 2) // count if action > 1 else -1
        costs: list[list[Any]] = []
        if verb == 5:
            access[host] = access[host] if host == 0 else 0
            files[host] = exploited[host] = decoys[host] = 0
            costs.append(["restore", host, -1.0])
        elif 2 <= verb < 5:
            decoys[host] |= 1 << (verb - 2)
        elif verb == 1 and access[host] == 1:
            access[host] = 0
        costs += [["root", h, -0.1 if h % 3 else -1.0] for h in range(1, count) if access[h] == 2]
        note(activity)
        if service[-1] == "0":
            costs.append(["service", -1, -10.0])
        named = scenario["actions"][action]
        told["blue"].append(action)
        told["blue_host"].append(host)
        told["blue_words"].append(
            "sleeps" if action == 0 else "watches" if action == 1 else f"does {named}"
        )
        told["red_kind"].append(kind)
        told["red_host"].append(target)
        where = scenario["hosts"][target]["name"] if target >= 0 else "a subnet"
        ending = "succeeds, detected" if works else "fails"
        told["red_words"].append(
            f"Meander: {kind} on {where} by HTTPSRFI: {ending}"
            if kind != "sleep"
            else "Meander sleeps"
        )
        success += "1" if works else "0"
        told["reward"].append(round(sum(cost[2] for cost in costs), 1))
        told["costs"].append(costs)
        others = changed.sample(range(len(scenario["actions"])), 4)
        chosen = list(dict.fromkeys([action, *others]))
        shares = sorted((changed.random() ** 2 for _ in chosen), reverse=True)
        changed.shuffle(chosen)
        told["likely"].append(
            [[a, round(1000 * s / sum(shares))] for a, s in zip(chosen, shares, strict=True)]
        )
        told["value"].append(round(-20 * (1 - turn / turns) - changed.random() * 4, 3))
        rows = []
        for a in chosen:
            gain = 0.0 if a == action else round(changed.gauss(-0.6, 1.0), 3)
            half = 0.0 if a == action else round(0.1 + changed.random() * 0.5, 3)
            mean = round(told["value"][-1] + gain, 3)
            rows.append(
                [
                    a,
                    mean,
                    round(mean - 0.4, 3),
                    round(mean + 0.4, 3),
                    gain,
                    round(gain - half, 3),
                    round(gain + half, 3),
                    50 if gain < -1 else 200,
                ]
            )
        skipped = turn % 10 == 9
        told["what_if"].append(None if skipped else {"games": 200, "actions": rows})
        best = max(rows, key=lambda row: row[4] if row[0] != action else -99)
        told["regret"].append(None if skipped else [max(0.0, best[4]), best[5], best[6]])
    for key in ("likely", "value", "what_if", "regret"):
        if key in without:
            told[key] = None
    return {
        "policy": ("champion", "cardiff-like")[number] + name,
        "attacker": "meander" + name,
        "seed": seed,
        "episode": 0,
        "source": "phalanx",
        "return": round(sum(told["reward"]), 1),
        "states": {
            **states,
            "remembered": None if "remembered" in without else remembered,
            "service": service,
            "belief": None if "belief" in without else {**belief, "surprises": 0},
        },
        "turns": {**told, "red_success": success},
    }


def replay_html(trajectory: Any) -> str:
    """A page that is a replay of it."""
    return page(
        "Replay",
        '<main id="replay"></main>',
        styles=VIEWER_STYLES,
        scripts=[*VIEWER_SCRIPTS, REPLAY_PAGE],
        data={"trajectory": trajectory},
    )


def shortened(trajectory: Trajectory, turns: int) -> Trajectory:
    """The first turns of it, as while a game is being played."""
    cut = copy.deepcopy(trajectory)
    for play in cut["plays"]:
        play["turns"] = {key: column and column[:turns] for key, column in play["turns"].items()}
        play["states"] = {key: _first(column, turns + 1) for key, column in play["states"].items()}
        play["return"] = round(sum(play["turns"]["reward"]), 1)
    return cut


def _first(column: Any, count: int) -> Any:
    if isinstance(column, dict):
        return {key: _first(inner, count) for key, inner in column.items()}
    return column[:count] if isinstance(column, list | str) else column
