"""Record games of the original with any scenario, in the form that `phalanx verify` replays."""

import json
import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.cyborg import begin, challenge, installed_rules
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
from phalanx.verify.compared import PID_REUSED
from phalanx.verify.original_state import OriginalState

SCENARIO_FILE = "scenario.yaml"  # in a folder of recordings
TRINARY = {"FALSE": 0, "TRUE": 1, "UNKNOWN": 2}
POLICIES = ("sleep", "random", "follow", "decoys", "react")
STATE_TYPES = {"sess": np.uint64, "misc": np.uint8, "subnets_known": np.uint8}


def record(
    file: Path,
    red_agent: str,
    episodes: int,
    horizon: int,
    out: Path,
    seed: int = 0,
    on_episode: Callable[[int], None] = lambda done: None,
) -> None:
    """Play the original with this very file, and write what happened into a new folder.

    Nothing is written before all games are played.
    """
    scenario = read_scenario(file)
    check_attackers(scenario, [red_agent])
    rules = installed_rules()
    game = challenge(red_agent, file)
    played = []
    for episode in range(episodes):
        policy = BluePolicy(POLICIES[episode % len(POLICIES)], scenario, seed + episode)
        played.append(_play(game, scenario, policy, horizon, seed + episode))
        on_episode(episode + 1)
    out.mkdir(parents=True)
    shutil.copyfile(file, out / SCENARIO_FILE)
    if (file.parent / "images" / "images.yaml").is_file():
        shutil.copytree(file.parent / "images", out / "images")
    name = CHALLENGE_NAMES[RED_AGENTS.index(red_agent)]
    arrays = _arrays(played, horizon) | {"ep_red": np.full(episodes, RED_AGENTS.index(red_agent))}
    np.savez_compressed(out / f"{name}.npz", **arrays)
    (out / "codebook.json").write_text(json.dumps(_codebook(scenario, rules), indent=1) + "\n")


def _codebook(scenario: Scenario, rules: str) -> dict[str, Any]:
    return {
        "rules": rules,
        "scenario": SCENARIO_FILE,
        "hosts": list(scenario.host_names),
        "subnets": list(scenario.subnet_names),
        "exploits": list(EXPLOITS),
        "decoy_bits": [decoy.name for decoy in DECOYS],
        "red_agents": list(CHALLENGE_NAMES),
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

    def act(self, bits: npt.NDArray[Any], target: int) -> int:
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
    game: Any, scenario: Scenario, policy: BluePolicy, horizon: int, seed: int
) -> dict[str, Any]:
    """One episode: `st_*` by step, `init_*` as it began."""
    bits = np.asarray(begin(game, seed))
    true = OriginalState(game, scenario)
    begun = {f"init_{name}": value for name, value in true.facts().items()}
    steps: dict[str, list[Any]] = {}
    target = -1
    for _turn in range(horizon):
        action = policy.act(bits, target)
        sessions, suspicious = true.session_ids(), true.suspicious_ids()
        bits, reward, _done, _info = game.step(action)
        bits = np.asarray(bits)
        move, seen = true.move(), true.controller.observation
        target = -1 if move["red"] == 1 else move["red_tgt"]
        row = {
            "blue": action,
            "blue_ok": TRINARY[seen["Blue"].data["success"].name],
            "green": 0,
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


def _arrays(played: list[dict[str, Any]], horizon: int) -> dict[str, Any]:
    """All episodes of a file, one after the other."""
    episodes = len(played)
    arrays: dict[str, Any] = {
        "ep_horizon": np.full(episodes, horizon, np.uint16),
        "ep_start": np.arange(episodes + 1, dtype=np.int64) * horizon,
    }
    for name in played[0]:
        parts = [one[name] for one in played]
        kind = STATE_TYPES.get(name.split("_", 1)[1], np.int64)
        by_step = name.startswith("st_")
        stacked = np.array(list(chain.from_iterable(parts)) if by_step else parts)
        arrays[name] = _small(stacked.astype(kind))
    return arrays


def _small(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same whole numbers in as few bytes as hold them."""
    ends = [np.min_scalar_type(end) for end in (array.min(), array.max())]
    return array.astype(np.result_type(*ends))
