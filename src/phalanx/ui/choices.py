"""What can be chosen on the pages: attackers, rules, horizons, and the defenders to watch."""

from phalanx.agents import AGENTS
from phalanx.cage2.defenders import DEFENDERS
from phalanx.cage2.rules.scenario import (
    ALL_RED_AGENTS,
    DEFAULT_RULES,
    HORIZONS,
    PUBLISHED,
    RED_AGENTS,
    RULE_SETS,
)
from phalanx.ui.live_game import MOST_TURNS

ABOUT = {
    "b_line": "goes straight for the operational server, as if it knew the network",
    "meander": "takes every host of a subnet before it goes on",
    "sleep": "does nothing",
    "b_line_detour": "B-line, by way of a second user host",
    "meander_rescan": "Meander that scans a host again after a failed exploit",
    "coin": "a fair coin each turn: B-line's next step or Meander's",
}


def choices() -> dict[str, object]:
    return {
        "attackers": [
            {"name": name, "about": ABOUT[name], "is_original": name in RED_AGENTS}
            for name in ALL_RED_AGENTS
        ],
        "rules": sorted(RULE_SETS, key=lambda name: name != DEFAULT_RULES),
        "horizons": list(HORIZONS),
        "most_turns": MOST_TURNS,
        "defenders": [*AGENTS, *DEFENDERS],
        "published": [
            {"name": name, "red_agent": red, "horizon": horizon, "return": score}
            for name, scores in PUBLISHED.items()
            for (red, horizon), score in scores.items()
        ],
    }
