"""The original beside ours. Where it is not installed, only what needs none of it is run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import Batch, cyborg
from phalanx.cage2.cyborg import CyborgAgent, CyborgEnv
from phalanx.cage2.rules.observation import HISTORY_SIZE
from phalanx.cage2.rules.scenario import CHALLENGE_NAMES, HOSTS, NUM_ACTIONS, RULE_SETS
from phalanx.errors import ConfigError, MissingError

GOLDEN = Path(__file__).parent.parent / "golden"
SCENARIOS = Path(__file__).parent.parent / "scenarios"
RECORDED = SCENARIOS / "recorded"
original = pytest.mark.skipif(not cyborg.is_installed(), reason="the original is not installed")


@pytest.mark.skipif(cyborg.is_installed(), reason="the original is installed")
def test_without_the_original_one_line_says_how_to_get_it() -> None:
    with pytest.raises(MissingError, match="git clone"):
        CyborgEnv()
    assert "\n" not in cyborg.HOW_TO_GET_IT


# --- our policies as its agents -------------------------------------------------------------------


class Recorder:
    """A policy that keeps what it was shown."""

    observation = "bits"

    def __init__(self, actions: Any) -> None:
        self.actions = iter(actions)
        self.seen: list[Any] = []
        self.masks: list[Any] = []

    def act(self, obs: Any, alerts: Any, masks: Any) -> Any:
        self.seen.append(obs[0].copy())
        self.masks.append(masks[0].copy())
        return np.array([next(self.actions)])


@pytest.mark.parametrize("observation", ["bits", "history", "memory", "belief"])
def test_an_agent_is_shown_what_the_policy_was_trained_on(observation: str) -> None:
    """Two episodes: the agent gets 52 bits a turn, the policy its own kind of observation."""
    actions = np.random.default_rng(0).integers(NUM_ACTIONS, size=60)
    bits = Batch(1, red_agent="meander", horizon=30, seed=2)
    batch = Batch(1, red_agent="meander", horizon=30, seed=2, observation=observation)
    policy = Recorder(actions)
    agent = CyborgAgent(policy, observation=observation, horizon=30)
    expected: list[Any] = []
    masks: list[Any] = []
    for turn, action in enumerate(actions):
        expected.append(batch.shown.obs[0].copy())
        masks.append(batch.action_masks()[0])
        assert agent.get_action(bits.shown.obs[0], None) == action
        bits.play(np.array([action]))
        batch.play(np.array([action]))
        if turn == 29:
            agent.end_episode()
    assert np.array_equal(policy.seen, expected)
    assert np.array_equal(policy.masks, masks)


@pytest.mark.parametrize("observation", ["bits", "memory", "belief"])
@pytest.mark.parametrize("name", ["more_users", "green"])
def test_on_another_network_it_is_shown_what_that_has(name: str, observation: str) -> None:
    place: dict[str, Any] = {"scenario": SCENARIOS / f"{name}.yaml"}
    game: dict[str, Any] = {"red_agent": "meander", "horizon": 20, "seed": 3, **place}
    bits, batch = Batch(1, **game), Batch(1, **game, observation=observation)
    policy = Recorder(np.random.default_rng(0).integers(bits.num_actions, size=20))
    agent = CyborgAgent(policy, observation=observation, horizon=20, **place)
    for _ in range(20):
        expected, mask = batch.shown.obs[0].copy(), batch.action_masks()[0]
        action = agent.get_action(bits.shown.obs[0], None)
        assert np.array_equal(policy.seen[-1], expected)
        assert np.array_equal(policy.masks[-1], mask)
        bits.play(np.array([action]))
        batch.play(np.array([action]))
    with pytest.raises(ConfigError, match="bits must have the shape"):
        agent.get_action(np.zeros(7))


def test_a_policy_brings_the_network_of_its_training() -> None:
    policy = Recorder([0])
    policy.scenario = str(SCENARIOS / "more_users.yaml")  # type: ignore[attr-defined]
    CyborgAgent(policy).get_action(np.zeros(68))
    assert policy.seen[0].shape == (68,)
    with pytest.raises(ConfigError, match="networks"):
        CyborgAgent(policy, scenario=SCENARIOS)


def test_an_agent_can_be_a_name_or_a_function() -> None:
    bits = np.zeros(52, np.int64)
    assert CyborgAgent("sleep").get_action(bits) == 0
    assert CyborgAgent("random").get_action(bits) in range(NUM_ACTIONS)
    assert CyborgAgent(lambda obs: 7).get_action(bits) == 7
    agent = CyborgAgent("sleep")
    agent.set_initial_values({}, bits)
    agent.train(None)


def test_policies_that_need_raw_reports_are_refused() -> None:
    with pytest.raises(ConfigError, match="BlueReactRemoveAgent"):
        CyborgAgent("react-remove")
    with pytest.raises(ConfigError, match="did you mean history"):
        CyborgAgent("sleep", observation="histry")


def test_a_reported_shell_is_read_off_the_raw_observation() -> None:
    shell = {"PID": 77, "Connections": [{"remote_port": 4444}]}
    host = {"Processes": [{"Connections": [{}]}, shell], "System info": {"Hostname": "User3"}}
    assert cyborg.alert({"success": True, "User3": host}, HOSTS) == HOSTS.index("User3")
    decoy = {"Processes": [{"PID": 5, "Service Name": "apache2"}], "System info": {}}
    assert cyborg.alert({"success": True, "User3": decoy, "User4": {}}, HOSTS) == -1


# --- the original as an Env -----------------------------------------------------------------------


@original
@pytest.mark.parametrize("red_agent", CHALLENGE_NAMES)
def test_the_original_replays_its_recordings_through_our_env(red_agent: str) -> None:
    rules = cyborg.installed_rules()
    with np.load(GOLDEN / rules.removeprefix("2.1-") / f"{red_agent}.npz") as archive:
        steps = dict(archive)
    env = CyborgEnv(red_agent=red_agent, horizon=10_000, rules=rules)
    for episode in range(0, len(steps["ep_red"]), 40):
        obs, _ = env.reset(seed=int(steps["ep_seed"][episode]))
        assert not obs.any()
        for row in range(*steps["ep_start"][episode : episode + 2]):
            obs, reward, _, _, info = env.step(steps["st_blue"][row])
            assert np.array_equal(obs, steps["st_obs"][row])
            assert round(reward * 10) == steps["st_reward10"][row]
            detected = steps["st_detect"][row] == 1
            assert info["alert"] == (steps["st_red_tgt"][row] if detected else -1)
            if row % 10 == 0:
                known, scanned, access = env.true_state()
                assert np.array_equal(known, steps["st_known"][row])
                assert np.array_equal(scanned, steps["st_scanned"][row])
                assert np.array_equal(access, steps["st_access"][row])


@original
@pytest.mark.parametrize("folder", sorted(path.name for path in RECORDED.iterdir()))
def test_the_original_replays_recordings_of_other_networks(folder: str) -> None:
    path, rules = RECORDED / folder, cyborg.installed_rules()
    if json.loads((path / "codebook.json").read_text())["rules"] != rules:
        pytest.skip(f"recorded by other rules than {rules}")
    (file,) = path.glob("*.npz")
    with np.load(file) as archive:
        steps = dict(archive)
    place: dict[str, Any] = {"scenario": path / "scenario.yaml", "horizon": 10_000}
    env = CyborgEnv(red_agent=file.stem, **place, green=1.0 if folder.startswith("green") else None)
    obs, _ = env.reset(seed=int(steps["ep_seed"][0]))
    for row in range(*steps["ep_start"][:2]):
        obs, reward, _, _, _ = env.step(steps["st_blue"][row])
        assert np.array_equal(obs, steps["st_obs"][row])
        assert round(reward * 10) == steps["st_reward10"][row]
        if row % 10 == 0:
            assert np.array_equal(env.true_state()[2], steps["st_access"][row])


@original
def test_two_originals_in_one_process_do_not_disturb_each_other() -> None:
    def rewards(env: CyborgEnv, actions: Any) -> list[float]:
        return [env.step(action)[1] for action in actions]

    actions = np.random.default_rng(1).integers(NUM_ACTIONS, size=60)
    first, second = CyborgEnv(red_agent="meander"), CyborgEnv(red_agent="meander")
    first.reset(seed=5)
    alone = rewards(first, actions)
    first.reset(seed=5)
    second.reset(seed=6)
    together = []
    for action in actions:
        together.append(first.step(action)[1])
        second.step(action)
    assert together == alone


@original
def test_history_and_other_rules() -> None:
    env = CyborgEnv(observation="history", red_agent="b_line=0.5,meander=0.5", horizon=5)
    obs, _ = env.reset(seed=3)
    assert obs.shape == (HISTORY_SIZE,)
    other = next(rules for rules in RULE_SETS if rules != cyborg.installed_rules())
    with pytest.raises(ConfigError, match="check out"):
        CyborgEnv(rules=other)
