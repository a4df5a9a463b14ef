"""The exact belief: beside plain enumeration of all dice, and against how often things are true."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from phalanx.cage2 import Batch, Belief
from phalanx.cage2.belief import BeliefBatch, prior_of
from phalanx.cage2.rules.batch_turn import LOG, replay_turn
from phalanx.cage2.rules.hidden import SURPRISED
from phalanx.cage2.rules.network import NETWORK
from phalanx.cage2.rules.observation import OPEN_SIZE
from phalanx.cage2.rules.scenario import (
    ALL_RED_AGENTS,
    NUM_ACTIONS,
    NUM_HOSTS,
    USER0,
    USER1,
    USER2,
    USER3,
    useful_actions,
)
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.rule import records
from phalanx.errors import ConfigError
from phalanx.verify.replay import begin_recorded, loaded_dice
from phalanx.verify.traces import read_folder

MIXED = {"b_line": 0.3, "meander": 0.5, "sleep": 0.2}
NEW = {"b_line_detour": 0.3, "meander_rescan": 0.7}


def intervals(edges: set[float]) -> list[tuple[int, float]]:
    """A die for each interval between the edges, and how likely a die falls into it."""
    ordered = sorted(edges | {0.0, 1.0})
    return [(int((a + b) / 2 * 2**32), b - a) for a, b in pairwise(ordered)]


TARGET_DICE = intervals({j / n for n in range(1, 14) for j in range(n)})
EXPLOIT_DICE = intervals({0.75} | {0.75 + 0.25 * j / n for n in range(1, 8) for j in range(n)})
DETECTION_DICE = intervals({0.95})
ALL_DICE = [
    ((target, exploit, detection), p * q * r)
    for target, p in TARGET_DICE
    for exploit, q in EXPLOIT_DICE
    for detection, r in DETECTION_DICE
]
DICE = np.array([dice for dice, _ in ALL_DICE])
CHANCES = np.array([chance for _, chance in ALL_DICE])

Posterior = tuple[npt.NDArray[np.void], npt.NDArray[np.float64]]


def hidden(states: npt.NDArray[np.void], known: bool = True) -> list[bytes]:
    """What a state is, without its dice, what blue has lost, and what its sensors said now.

    known: with the horizon.
    """
    if len(states) == 0:
        return []
    left_out: tuple[str, ...] = ("stream", "episode", "tenths", "red_plan", "alert")
    left_out += () if known else ("horizon",)
    names = [name for name in NETWORK.names or () if name not in left_out]
    columns = [states[name].reshape(len(states), -1).astype(np.int64) for name in names]
    return [row.tobytes() for row in np.hstack(columns)]


def enumerated(posterior: Posterior, action: int, seen: int) -> Posterior:
    """The next posterior by playing every state with every throw of all three dice."""
    states: dict[bytes, npt.NDArray[np.void]] = {}
    weights: dict[bytes, float] = defaultdict(float)
    for state, weight in zip(*posterior, strict=True):
        nets = records(len(DICE), NETWORK)
        nets[:] = state
        everywhere, log = np.ones(len(DICE), np.bool_), records(len(DICE), LOG)
        replay_turn(CAGE2_WORLDS, nets, everywhere, np.full(len(DICE), action), DICE, log)
        fits = np.flatnonzero(nets["seen"][:, 0] == seen)
        for row, name in zip(fits, hidden(nets[fits]), strict=True):
            states[name] = nets[row : row + 1]
            weights[name] += weight * CHANCES[row]
    total = sum(weights.values())
    return np.concatenate(list(states.values())), np.array(list(weights.values())) / total


def random_action(rng: np.random.Generator) -> int:
    """Mostly one that changes what red meets; sometimes any."""
    if rng.random() < 0.2:
        return int(rng.integers(NUM_ACTIONS))
    return int(rng.choice(np.flatnonzero(useful_actions())))


@pytest.mark.parametrize("rules", ["2.1-leaderboard", "2.1-final"])
@pytest.mark.parametrize("prior", [MIXED, NEW])
def test_it_is_what_plain_enumeration_of_all_dice_gives(
    rules: str, prior: dict[str, float]
) -> None:
    rng = np.random.default_rng(3)
    games = Batch(3, red_agent=prior, rules=rules, horizon=25, seed=11, num_threads=1)
    beliefs = BeliefBatch(3, rules=rules, red_agents=prior, horizon=25)
    nets, odds = prior_of(prior, rules, 25)
    expected = [(nets, odds)] * 3
    for _turn in range(24):
        actions = np.array([random_action(rng) for _ in range(3)])
        games.play(actions)
        beliefs.observe(actions, games.shown.obs)
        for i in range(3):
            expected[i] = enumerated(expected[i], actions[i], int(games.nets["seen"][i, 0]))
            found = dict(zip(hidden(beliefs[i].states), beliefs[i].weights, strict=True))
            wanted = dict(zip(hidden(expected[i][0]), expected[i][1], strict=True))
            assert found == pytest.approx(wanted, abs=1e-6)
            assert beliefs[i].surprises == 0


@pytest.mark.parametrize(
    ("prior", "green"),
    [(MIXED, 0.0), (NEW, 0.0), ({"coin": 0.6, "meander": 0.4}, 0.0), (MIXED, 1.0)],
)
def test_the_truth_is_among_the_states_as_often_as_its_weight_says(
    prior: dict[str, float], green: float
) -> None:
    games = Batch(60, red_agent=prior, horizon=60, seed=5, num_threads=1, green=green)
    beliefs = BeliefBatch(60, red_agents=prior, horizon=60, green=green)
    rng = np.random.default_rng(1)
    chances: list[float] = []
    true: list[bool] = []
    for _turn in range(59):
        actions = np.array([random_action(rng) for _ in range(60)])
        games.play(actions)
        beliefs.observe(actions, games.shown.obs)
        for belief, truth in zip(beliefs, hidden(games.nets), strict=True):
            states, weights = hidden(belief.states), belief.weights
            assert truth in states or belief.dropped
            if not belief.dropped:
                k = int(rng.integers(len(weights)))
                chances.append(weights[k])
                true.append(states[k] == truth)
    assert not beliefs.beliefs.standing["surprises"].any()
    assert "coin" in prior or green or not beliefs.beliefs.standing["dropped"].any()
    # 1 in 1000 is beyond 29.6, and turns of one game are not independent
    assert chi_square(np.array(chances), np.array(true)) < 3 * 29.6


@pytest.mark.parametrize("rules", ["final", "leaderboard"])
def test_in_recorded_games_of_the_original_the_truth_is_never_ruled_out(rules: str) -> None:
    for traces in read_folder(Path(__file__).parents[1] / "golden" / rules):
        lengths = np.diff(traces.start)
        nets, log = begin_recorded(traces), records(len(lengths), LOG)
        beliefs = BeliefBatch(len(lengths), rules=traces.rules, red_agents=MIXED)
        for turn in range(int(lengths.max())):
            playing = lengths > turn
            rows = np.where(playing, traces.start[:-1] + turn, 0)
            recorded = {name: values[rows] for name, values in traces.steps.items()}
            replay_turn(CAGE2_WORLDS, nets, playing, recorded["blue"], loaded_dice(recorded), log)
            bits = nets["seen"] >> np.arange(52) & 1
            beliefs.observe(recorded["blue"].astype(np.int64), bits)
            for i in np.flatnonzero(playing)[turn % 5 :: 5]:
                (truth,) = hidden(nets[i : i + 1], known=False)
                assert truth in hidden(beliefs[i].states, known=False)
        assert not beliefs.beliefs.standing["dropped"].any()


def chi_square(chances: npt.NDArray[np.float64], true: npt.NDArray[np.bool_]) -> float:
    """Of what has the chance p, a share of p is true: over ten bins, so at most 10 degrees."""
    bins = np.minimum((10 * chances).astype(int), 9)
    statistic = 0.0
    for b in np.unique(bins):
        mine = bins == b
        expected, variance = chances[mine].sum(), (chances[mine] * (1 - chances[mine])).sum()
        if variance > 5:
            statistic += (true[mine].sum() - expected) ** 2 / variance
    return statistic


def test_who_attacks_is_known_after_a_few_turns() -> None:
    games = Batch(50, red_agent="meander", seed=2, num_threads=1)
    beliefs = BeliefBatch(50)
    for _turn in range(4):
        games.play(np.zeros(50, np.int64))
        beliefs.observe(np.zeros(50, np.int64), games.shown.obs)
    known = [belief.marginals()["attacker"]["meander"] for belief in beliefs]
    assert np.mean(known) > 0.9
    assert known[0] == beliefs[0].weights @ (
        beliefs[0].states["red"] == ALL_RED_AGENTS.index("meander")
    )


def test_an_attacker_that_is_not_expected_counts_as_a_surprise_and_does_not_end_it() -> None:
    games = Batch(20, red_agent="meander", seed=2, num_threads=1)
    beliefs = BeliefBatch(20, red_agents="b_line")
    for _turn in range(99):
        games.play(np.zeros(20, np.int64))
        beliefs.observe(np.zeros(20, np.int64), games.shown.obs)
        for i in range(20):
            assert abs(beliefs[i].weights.sum() - 1) < 1e-9
            assert (beliefs[i].states["seen"] == games.nets["seen"][i]).all()
    assert (beliefs.beliefs.standing["surprises"] > 0).all()


def test_observations_tell_how_far_a_belief_can_be_relied_on() -> None:
    for prior, is_surprised in (("meander", False), ("b_line", True)):
        games = Batch(20, red_agent="meander", observation="belief", prior=prior, seed=2)
        for _turn in range(50):
            games.play(np.zeros(20, np.int64))
        assert (games.shown.obs[:, OPEN_SIZE + SURPRISED] == float(is_surprised)).all()


def test_what_nothing_explains_is_taken_at_its_word() -> None:
    belief = Belief(red_agents="sleep")
    bits = np.zeros(52)
    bits[4 * USER1 : 4 * USER1 + 4] = [1, 1, 0, 1]  # an exploit was seen, the table says User
    bits[4 * USER2 + 2 : 4 * USER2 + 4] = [1, 1]  # Privileged
    bits[4 * USER3] = 1  # a scan was seen
    belief.observe(0, bits)
    marginals = belief.marginals()
    assert belief.surprises == 1
    assert np.flatnonzero(marginals["user"]).tolist() == [USER1]
    assert np.flatnonzero(marginals["removable"]).tolist() == [USER1]
    assert np.flatnonzero(marginals["root"]).tolist() == [USER0, USER2]
    assert np.flatnonzero(marginals["file"]).tolist() == [USER1, USER2]
    assert np.flatnonzero(marginals["scanned"]).tolist() == [USER1, USER3]
    assert marginals["ports"][USER3].sum() == 4  # L1's: 80, 3389, 443, 25
    assert np.flatnonzero(marginals["ports"].sum(axis=1)).tolist() == [USER1, USER3]


def test_beliefs_begin_again_where_they_are_told_to() -> None:
    beliefs = BeliefBatch(2)
    beliefs.observe([0, 0], np.zeros((2, 52)))
    wrongs: list[Any] = [np.ones(1, np.bool_), np.ones(2), [True, False]]
    for wrong in wrongs:
        with pytest.raises(ConfigError, match=r"must be a bool array of shape \(2,\)"):
            beliefs.begin(wrong)
    beliefs.begin(np.array([False, True]))
    assert [belief.states["turn"][0] for belief in beliefs] == [1, 0]


def test_one_belief_by_itself() -> None:
    belief = Belief(red_agents={"b_line": 0.25, "meander": 0.75})
    assert belief.weights.tolist() == [0.25, 0.75]
    assert belief.entropy == pytest.approx(0.8113, abs=1e-4)
    belief.observe(0, np.zeros(52))
    assert belief.marginals()["session"].tolist() == [0] * 8 + [1] + [0] * (NUM_HOSTS - 9)
    drawn = belief.sample(1000, seed=1)
    assert abs((drawn["red"] == ALL_RED_AGENTS.index("meander")).mean() - 0.75) < 0.06
    belief.begin()
    assert belief.states["turn"].tolist() == [0, 0]


@pytest.mark.parametrize(
    "name", ["more_users", "green"]
)  # the first has 17 hosts, whose bits fill two words
def test_a_belief_follows_games_of_another_network(name: str) -> None:
    scenario = Path(__file__).parent.parent / "scenarios" / f"{name}.yaml"
    batch = Batch(8, red_agent=MIXED, observation="belief", prior=MIXED, scenario=scenario, seed=3)
    batch.begin()
    beliefs = BeliefBatch(8, red_agents=MIXED, scenario=scenario)
    hosts, dice = len(batch.scenario.hosts), np.random.default_rng(3)
    inside, standing = batch.minds.beliefs, range(8)
    assert inside is not None
    for _ in range(25):
        actions = dice.integers(batch.num_actions, size=8)
        batch.play(actions)
        beliefs.observe(actions, batch.shown.obs[:, : 4 * hosts])
        for i in standing:
            side, count = inside.standing[i]["side"], inside.standing[i]["count"]
            assert beliefs[i].weights.tolist() == inside.weights[i, side, :count].tolist()
    for i in standing:
        truth = batch.nets[i]["sessions"]
        assert beliefs[i].weights[beliefs[i].states["sessions"] == truth].sum() > 0
        marginals = beliefs[i].marginals()
        assert marginals["root"].shape == marginals["line_target"].shape == (hosts,)


def test_a_belief_is_about_one_network() -> None:
    with pytest.raises(ConfigError, match="which of them is played: give one file"):
        Belief(scenario="random:seed=1,networks=3")
    with pytest.raises(ConfigError, match=r"b_line cannot play on scenario other_start"):
        folder = Path(__file__).parent.parent / "scenarios"
        Belief(scenario=folder / "other_start.yaml", red_agents="b_line")
    with pytest.raises(ConfigError, match=r"bits must have the shape \(1, 40\), got \(1, 52\)"):
        Belief(scenario="random:seed=1,users=3,enterprise=3,op=3,network=0").observe(
            0, np.zeros(52)
        )
