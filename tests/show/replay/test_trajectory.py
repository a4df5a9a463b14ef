"""A trajectory is the game: every number equals what the same actions give elsewhere."""

import json
from itertools import product
from typing import Any

import gymnasium
import numpy as np
import pytest

import phalanx
from phalanx.cage2 import ALL_RED_AGENTS, DEFENDERS, HOSTS, RULE_SETS
from phalanx.cage2.batch import Batch
from phalanx.cage2.belief import Belief
from phalanx.cage2.history import History
from phalanx.cage2.rules.scenario import DECOYS, NUM_ACTIONS, action_name
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.players import open_players
from phalanx.show.replay.episode import Chosen, Episode, record_episode
from phalanx.show.replay.trajectory import Recorder

RULES = RULE_SETS[1]


def random_actions(turns: int, seed: int) -> list[int]:
    actions: list[int] = np.random.default_rng(seed).integers(NUM_ACTIONS, size=turns).tolist()
    return actions


def recorded(red_agent: str, rules: str, turns: int = 60, seed: int = 3) -> Recorder:
    """Whoever plays anything, so that much happens."""
    batch = Batch(1, red_agent=red_agent, rules=rules, seed=seed, horizon=turns)
    recorder = Recorder(batch.nets, policy="anything", seed=seed)
    for action in random_actions(turns, seed):
        recorder.play(action)
    return recorder


def digits(text: str) -> list[int]:
    return [int(digit) for digit in text]


@pytest.mark.parametrize(("red_agent", "rules"), list(product(ALL_RED_AGENTS, RULE_SETS)))
def test_every_number_equals_that_of_gymnasium(red_agent: str, rules: str) -> None:
    told = recorded(red_agent, rules).trajectory()
    (play,) = told["plays"]
    states, turns = play["states"], play["turns"]
    env: Any = gymnasium.make(
        "phalanx/Cage2-v0", red_agent=red_agent, rules=rules, horizon=60, disable_env_checker=True
    )
    obs, _ = env.reset(seed=3)
    env = env.unwrapped
    history = History(1)
    total = 0.0
    for t in range(61):
        net, bits = env.batch.nets[0], obs.reshape(len(HOSTS), 4).astype(int)
        assert digits(states["access"][t]) == env.access.tolist()
        assert digits(states["known"][t]) == np.maximum(env.known, 2 * env.scanned).tolist()
        assert digits(states["activity"][t]) == (bits[:, 0] + 2 * bits[:, 1]).tolist()
        assert digits(states["compromised"][t]) == (bits[:, 2] + 2 * bits[:, 3]).tolist()
        assert states["decoys"][t] == net["decoys"].tolist()
        assert digits(states["files"][t]) == [int(net["files"]) >> h & 1 for h in range(len(HOSTS))]
        assert int(states["service"][t]) == int(net["service"]) & 1
        assert history.minds.memories is not None
        memory = history.minds.memories[0]
        assert states["remembered"]["scan"][t] == memory["scan_turn"].tolist()
        assert states["remembered"]["exploit"][t] == memory["exploit_turn"].tolist()
        if t < 60:
            obs, reward, _, _, _ = env.step(turns["blue"][t])
            history.observe([turns["blue"][t]], obs[None])
            total += reward
            assert turns["reward"][t] == reward
    assert play["return"] == pytest.approx(total, abs=1e-9)
    assert play["attacker"] == red_agent
    assert len(states["access"]) == len(turns["blue"]) + 1 == 61


@pytest.mark.parametrize("red_agent", ["b_line", "meander"])
def test_costs_by_cause_sum_to_the_reward(red_agent: str) -> None:
    sleeping = Recorder(Batch(1, red_agent=red_agent, seed=1).nets, policy="sleep", seed=1)
    for _ in range(100):
        sleeping.play(0)
    causes = set()
    for recorder in (sleeping, recorded(red_agent, RULES, turns=100)):
        (play,) = recorder.trajectory()["plays"]
        for reward, costs in zip(play["turns"]["reward"], play["turns"]["costs"], strict=True):
            assert sum(round(10 * points) for _, _, points in costs) == round(10 * reward)
            causes |= {cause for cause, _, _ in costs}
    assert causes == {"root", "restore", "service"} if red_agent == "b_line" else {"root"} <= causes


def test_each_cause_is_told_where_it_lies() -> None:
    batch = Batch(1, red_agent="sleep", seed=1)
    user1, op_server = HOSTS.index("User1"), HOSTS.index("Op_Server0")
    batch.nets["root"] = batch.nets["sessions"] = 1 << user1 | 1 << op_server
    batch.nets["service"] = 0
    recorder = Recorder(batch.nets, policy="mine", seed=1)
    recorder.play(phalanx.cage2.action_index("Restore", "User2"))
    (costs,) = recorder.trajectory()["plays"][0]["turns"]["costs"]
    user2 = HOSTS.index("User2")
    assert costs == [
        ["root", op_server, -1.0],
        ["root", user1, -0.1],
        ["restore", user2, -1.0],
        ["service", -1, -10.0],
    ]


def test_a_belief_is_the_one_that_the_bits_allow() -> None:
    recorder = recorded("meander", RULES, turns=25)
    play = recorder.trajectory()["plays"][0]
    told, actions = play["states"]["belief"], play["turns"]["blue"]
    env: Any = gymnasium.make("phalanx/Cage2-v0", red_agent="meander", disable_env_checker=True)
    env.reset(seed=3)
    belief = Belief()
    for t in range(26):
        if t:
            belief.observe(actions[t - 1], env.step(actions[t - 1])[0])
        chances = belief.marginals()
        for name in ("session", "root"):
            assert told[name][t] == np.rint(1000 * chances[name]).astype(int).tolist()
        assert told["states"][t] == len(belief.weights)
        assert told["entropy"][t] == pytest.approx(belief.entropy, abs=0.01)
        assert told["attackers"][t]["meander"] == round(1000 * chances["attacker"]["meander"])
    assert told["surprises"] == belief.surprises == 0
    assert told["exact"] == "1" * 26


def test_a_belief_that_is_surprised_says_so() -> None:
    batch = Batch(1, red_agent="meander", seed=3)
    recorder = Recorder(batch.nets, policy="mine", seed=3, prior="b_line")
    for _ in range(20):
        recorder.play(0)
    told = recorder.trajectory()["plays"][0]["states"]["belief"]
    assert told["surprises"] > 0
    assert told["exact"].startswith("1")
    assert told["exact"].endswith("0")


def test_without_a_prior_there_is_no_belief() -> None:
    recorder = Recorder(Batch(1, seed=3).nets, policy="mine", seed=3, prior=None)
    recorder.play(0)
    assert recorder.trajectory()["plays"][0]["states"]["belief"] is None


def test_it_can_be_asked_for_at_any_time() -> None:
    recorder = Recorder(Batch(1, red_agent="b_line", seed=5).nets, policy="mine", seed=5)
    for turn in range(4):
        (play,) = json.loads(json.dumps(recorder.trajectory()))["plays"]
        assert len(play["turns"]["blue"]) == turn
        assert len(play["states"]["access"]) == len(play["states"]["service"]) == turn + 1
        recorder.play(0)


def test_the_scenario_is_that_of_the_rules() -> None:
    scenario = recorded("sleep", RULES, turns=1).trajectory()["scenario"]
    assert [host["name"] for host in scenario["hosts"]] == list(HOSTS)
    assert [subnet["name"] for subnet in scenario["subnets"]] == [
        "User",
        "Enterprise",
        "Operational",
    ]
    for s, subnet in enumerate(scenario["subnets"]):
        assert all(scenario["hosts"][h]["subnet"] == s for h in subnet["hosts"])
    assert sorted(h for subnet in scenario["subnets"] for h in subnet["hosts"]) == list(range(13))
    assert scenario["links"] == [[1, 2], [0, 1]] or scenario["links"] == [[0, 1], [1, 2]]
    names = {tuple(HOSTS[h] for h in pair) for pair in scenario["points"]}
    assert ("User1", "Enterprise1") in names
    assert ("Enterprise2", "Op_Server0") in names
    assert scenario["actions"][53] == action_name(53)
    assert len(scenario["actions"]) == NUM_ACTIONS
    assert len(scenario["decoys"]) == len(DECOYS)
    values = {host["name"]: host["value"] for host in scenario["hosts"]}
    assert values["User0"] == "none"
    assert values["Op_Server0"] == "high"
    assert values["Enterprise1"] == "medium"
    assert values["Op_Host1"] == "low"


# --- whoever plays, the episode is that of an evaluation ------------------------------------------


def played(name: str, number: int, **settings: Any) -> Episode:
    config = EvaluateConfig(target=(name,), episodes=max(2, number + 1), **settings)
    (player,) = open_players(config)
    return record_episode(config.games, player, Chosen("meander", 30, number))


@pytest.mark.parametrize("name", [*DEFENDERS, "champion"])
def test_an_episode_is_the_one_that_evaluate_plays(name: str) -> None:
    returns = (
        phalanx.evaluate(name, red_agent="meander", horizon=30, episodes=150, seed=7)
        .cells[0]
        .returns
    )
    for number in (0, 1, 131):
        play = played(name, number, seed=7).recorder.as_play()
        assert play["return"] == pytest.approx(returns[number], abs=1e-9)
        assert (play["policy"], play["seed"], play["episode"]) == (name, 7, number)


def test_live_play_is_recorded_as_it_happens() -> None:
    champion: Any = phalanx.load_defender("champion")
    settings = {**champion.env_settings, "horizon": 12}
    env: Any = gymnasium.make(
        "phalanx/Cage2-v0", red_agent="b_line", disable_env_checker=True, **settings
    )
    env.reset(seed=11)
    episode = Episode(env.unwrapped.batch, name="you", seed=11, policy=champion)
    total = 0.0
    for action in random_actions(12, 4):
        episode.look()
        total += env.step(action)[1]
        episode.note(action)
    (play,) = episode.recorder.trajectory()["plays"]
    assert play["return"] == pytest.approx(total)
    assert play["policy"] == "you"
    for action, likely in zip(play["turns"]["blue"], play["turns"]["likely"], strict=True):
        assert action in [a for a, _ in likely]
        assert len(likely) <= 5
    assert all(value < 0 for value in play["turns"]["value"])
