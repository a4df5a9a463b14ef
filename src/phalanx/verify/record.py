"""Record games of the original with any scenario, in the form that `phalanx verify` replays."""

import json
import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array, Arrays
from phalanx.cage2.cyborg import Original, begin, challenge, installed_rules, scenario_reader
from phalanx.cage2.original_images import own_images
from phalanx.cage2.rules.red_actions import INVALID
from phalanx.cage2.rules.scenario import (
    CHALLENGE_NAMES,
    DECOYS,
    EXPLOITS,
    FIRST_DECOY,
    RED_AGENTS,
    VERBS,
)
from phalanx.cage2.scenario.attackers import check_attackers
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.read import read_scenario
from phalanx.errors import ConfigError
from phalanx.files import Facts
from phalanx.verify.compared import PID_REUSED
from phalanx.verify.original_state import OriginalState

SCENARIO_FILE = "scenario.yaml"  # in a folder of recordings
TRINARY = {"FALSE": 0, "TRUE": 1, "UNKNOWN": 2}
POLICIES = ("sleep", "random", "follow", "decoys", "react")
STATE_TYPES = {"sess": np.uint64, "misc": np.uint8, "subnets_known": np.uint8}


def record(
    file: Path,
    red_agent: str | type,
    episodes: int,
    horizon: int,
    out: Path,
    seed: int = 0,
    green: float | None = None,
    on_episode: Callable[[int], None] = lambda done: None,
) -> None:
    """Play the original with this very file, and write what happened into a new folder.

    red_agent: the name of one of its own, or a class with their interface.
    green: the chance that green acts in a turn, if not what the file says.
    Nothing is written before all games are played.
    """
    scenario = read_scenario(file)
    is_own = not isinstance(red_agent, str)
    if isinstance(red_agent, str):
        check_attackers(scenario, [red_agent])
        name = CHALLENGE_NAMES[RED_AGENTS.index(red_agent)]
    else:
        name = red_agent.__name__
    rules = installed_rules()
    with own_images(file, scenario_reader()):
        game = challenge(red_agent, file, green)
    played = []
    for episode in range(episodes):
        policy = BluePolicy(POLICIES[episode % len(POLICIES)], scenario, seed + episode)
        one = _play(game, scenario, policy, horizon, seed + episode, is_own)
        played += [one] if "st_blue" in one else []
        on_episode(episode + 1)
    if not played:
        raise ConfigError(f"{red_agent} has nothing to do on scenario {scenario.name}")
    out.mkdir(parents=True)
    shutil.copyfile(file, out / SCENARIO_FILE)
    if (file.parent / "images" / "images.yaml").is_file():
        shutil.copytree(file.parent / "images", out / "images")
    agents = [name] if is_own else list(CHALLENGE_NAMES)
    arrays = _arrays(played) | {"ep_red": np.full(len(played), agents.index(name))}
    np.savez_compressed(out / f"{name}.npz", **arrays)  # type: ignore[arg-type]
    codebook = _codebook(scenario, rules, agents) | ({"own_red_agent": name} if is_own else {})
    (out / "codebook.json").write_text(json.dumps(codebook, indent=1) + "\n")


def _codebook(scenario: Scenario, rules: str, agents: list[str]) -> dict[str, object]:
    return {
        "rules": rules,
        "scenario": SCENARIO_FILE,
        "hosts": list(scenario.host_names),
        "subnets": list(scenario.subnet_names),
        "exploits": list(EXPLOITS),
        "decoy_bits": [decoy.name for decoy in DECOYS],
        "red_agents": agents,
        "policies": list(POLICIES),
    }


class BluePolicy:
    """Scripts that bring out the rules: they need not defend well, and may look at the truth."""

    def __init__(self, name: str, scenario: Scenario, seed: int) -> None:
        self.name, self.number = name, POLICIES.index(name)
        self.random = np.random.default_rng([77, seed])
        pairs = scenario.actions
        self.verb = np.array([VERBS.index(verb) for verb, _host in pairs])
        self.host = np.array(
            [-1 if h is None else scenario.host_names.index(h) for _verb, h in pairs]
        )
        self.sleep = scenario.action_index("Sleep")

    def act(self, bits: npt.NDArray[np.generic], target: int) -> int:
        """target: the host that red's last move was about, or none."""
        if self.name == "sleep":
            return self.sleep
        if self.name == "random":
            return int(self.random.integers(len(self.verb)))
        if self.name == "follow" and target >= 0 and self.random.random() < 0.7:
            return self._one_of(self.host == target)
        if self.name == "react":
            exploited = np.flatnonzero(bits.reshape(-1, 4)[:, 1])
            if len(exploited):
                verbs = [VERBS.index(name) for name in ("Remove", "Restore", "Analyse")]
                return self._one_of((self.host == exploited[0]) & np.isin(self.verb, verbs))
        decoys = (self.verb >= FIRST_DECOY) & (self.verb < FIRST_DECOY + len(DECOYS))
        return self._one_of(decoys if self.random.random() < 0.8 else self.host >= 0)

    def _one_of(self, wanted: npt.NDArray[np.bool_]) -> int:
        found = np.flatnonzero(wanted)
        return int(self.random.choice(found)) if len(found) else self.sleep


def _play(
    game: Original, scenario: Scenario, policy: BluePolicy, horizon: int, seed: int, is_own: bool
) -> Facts:
    """One episode: `st_*` by step, `init_*` as it began."""
    bits = np.asarray(begin(game, seed))
    true = OriginalState(game, scenario, is_own)
    begun = {f"init_{name}": value for name, value in true.facts().items()}
    steps: dict[str, list[object]] = {}
    target = -1
    for turn in range(1, horizon + 1):
        action = policy.act(bits, target)
        sessions, suspicious = true.session_ids(), true.suspicious_ids()
        kinds = true.session_kinds() if is_own else {}
        try:
            bits, reward, _done, _info = _step(game, action, turn, is_own)
        except NotImplementedError:  # Meander has run out of options: the episode ends there
            break
        bits = np.asarray(bits)
        move, seen = true.move(), true.controller.observation
        if is_own:
            if move["red"] == INVALID:
                raise ConfigError(
                    f"the attacker played {true.controller.action['Red']} in turn {turn}, which "
                    "the original does not let red do: it does not know that host or subnet"
                )
            move["esc"] = true.escalated(kinds)
        target = -1 if move["red"] == 1 else move["red_tgt"]
        row = {
            "blue": action,
            "blue_ok": TRINARY[seen["Blue"].data["success"].name],
            **move,
            "red_ok": TRINARY[seen["Red"].data["success"].name],
            "red_nobs": len(seen["Red"].data) - 1,
            "detect": true.detection(sessions),
            "reward10": round(10 * float(reward)),
            "obs": bits,
            "mem": true.notes(),
            **true.facts(),
        }
        if true.reuses_id(sessions, suspicious):
            row["misc"] |= PID_REUSED
        for name, value in row.items():
            steps.setdefault(f"st_{name}", []).append(value)
    return {**steps, **begun, "ep_seed": seed, "ep_policy": policy.number}


def _step(game: Original, action: int, turn: int, is_own: bool) -> Original:
    """A turn of the original; what an attacker of the user's own breaks is said in one line."""
    try:
        return game.step(action)
    except Exception as error:
        if not is_own:
            raise
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ConfigError(f"the original stopped in turn {turn} with {why}") from error


def _arrays(played: list[Facts]) -> Arrays:
    """All episodes of a file, one after the other."""
    lengths = [len(one["st_blue"]) for one in played]
    arrays: Arrays = {
        "ep_horizon": np.array(lengths, np.uint16),
        "ep_start": np.cumsum([0, *lengths], dtype=np.int64),
    }
    for name in played[0]:
        parts = [one[name] for one in played]
        kind = STATE_TYPES.get(name.split("_", 1)[1], np.int64)
        by_step = name.startswith("st_")
        stacked = np.array(list(chain.from_iterable(parts)) if by_step else parts)
        arrays[name] = _small(stacked.astype(kind))
    return arrays


def _small(array: Array) -> Array:
    """The same whole numbers in as few bytes as hold them."""
    ends = [np.min_scalar_type(end) for end in (array.min(), array.max())]
    return array.astype(np.result_type(*ends))
