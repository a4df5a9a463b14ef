"""What blue sees, and what blue can remember."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import Batch, History, action_index
from phalanx.cage2.rules.hidden import KNOWN, ROOT, SCANNED, USER
from phalanx.cage2.rules.observation import (
    HISTORY_SIZE,
    LAST_HOST,
    LAST_VERB,
    OPEN_SIZE,
    SHARE_PASSED,
    STANDING,
    STYLE,
)
from phalanx.cage2.rules.scenario import (
    DECOY_SPOTS,
    EXPLOIT_PORTS,
    HOSTS,
    NUM_ACTIONS,
    NUM_HOSTS,
    RED_AGENTS,
    VERBS,
    useful_actions,
)
from phalanx.cage2.saved_games import spots_of
from phalanx.errors import ConfigError
from tests import naive
from tests.cage2.game import Game, mask


def test_the_first_observation_is_all_zeros() -> None:
    assert Game().seen == 0


def test_activity_is_forgotten_in_the_next_turn() -> None:
    game = Game().red_will("scan", "User3").turn()
    assert game.activity("User3") == "Scan"
    assert game.red_will("scan", "User4").turn().activity("User3") == "None"


def test_compromise_is_remembered() -> None:
    game = Game(red="sleep").table("User3", "Exploit", "User").turn().turn()
    assert game.activity("User3") == "None"
    assert game.compromised("User3") == "User"


@pytest.mark.parametrize("before", ["No", "Unknown", "User", "Privileged"])
def test_q11_a_new_exploit_sets_the_host_to_user(before: str) -> None:
    game = Game().remembers("User3", 25).table("User3", compromised=before)
    assert game.red_will("exploit", "User3").turn().compromised("User3") == "User"


def test_a_scan_leaves_the_compromise_as_it_was() -> None:
    game = Game().table("User3", compromised="Privileged").red_will("scan", "User3").turn()
    assert (game.activity("User3"), game.compromised("User3")) == ("Scan", "Privileged")


def test_malware_found_in_the_turn_of_an_exploit_wins() -> None:
    game = Game().having(files=mask("User3")).remembers("User3", 25).red_will("exploit", "User3")
    game.turn("Analyse User3")
    assert (game.activity("User3"), game.compromised("User3")) == ("Exploit", "Privileged")


# Q12: the decoy that blue places in the very turn of red's move is counted with red's connections.


def test_q12_a_decoy_hides_the_scan_of_a_host_with_few_ports() -> None:
    game = Game().red_will("scan", "Enterprise0").turn("DecoyApache Enterprise0")
    assert game.activity("Enterprise0") == "None"
    assert game.ports_of("Enterprise0") == {22, 80}


def test_q12_but_not_where_three_ports_listen() -> None:
    for host, decoy in (("User1", "Apache"), ("User3", "SSHD"), ("Defender", "Apache")):
        game = Game().red_will("scan", host).turn(f"Decoy{decoy} {host}")
        assert game.activity(host) == "Scan"


def test_q12_an_earlier_decoy_on_the_host_makes_the_scan_visible() -> None:
    game = Game().decoy("Enterprise0", "Tomcat").red_will("scan", "Enterprise0")
    assert game.turn("DecoyApache Enterprise0").activity("Enterprise0") == "Scan"


def test_q12_a_decoy_that_failed_hides_nothing() -> None:
    game = Game().decoy("Enterprise0", "Apache").red_will("scan", "Enterprise0")
    assert game.turn("DecoyApache Enterprise0").activity("Enterprise0") == "Scan"


def test_q12_a_decoy_elsewhere_hides_nothing() -> None:
    game = Game().red_will("scan", "Enterprise0").turn("DecoyApache Op_Host0")
    assert game.activity("Enterprise0") == "Scan"


def test_q12_a_hit_on_a_fresh_decoy_shows_as_exploit() -> None:
    game = Game().remembers("Enterprise0", 22, 80).red_will("exploit", "Enterprise0")
    game.turn("DecoyApache Enterprise0", exploit="HTTPRFI")
    assert game.success is False
    assert game.activity("Enterprise0") == "Exploit"
    assert game.compromised("Enterprise0") == "User"


@pytest.mark.parametrize(("detected", "activity"), [(True, "Exploit"), (False, "None")])
def test_q12_a_decoy_hides_a_shell_that_was_not_detected(detected: bool, activity: str) -> None:
    game = Game().remembers("User3", *EXPLOIT_PORTS).red_will("exploit", "User3")
    game.turn("DecoySSHD User3", exploit="HarakaRCE", detected=detected)
    assert game.success
    assert game.activity("User3") == activity


def test_q12_ssh_shows_as_exploit_with_a_fresh_decoy_too() -> None:
    game = Game().remembers("Enterprise0", 22).red_will("exploit", "Enterprise0")
    assert game.turn("DecoyApache Enterprise0").activity("Enterprise0") == "Exploit"


def test_q12_a_decoy_hides_a_spoiled_haraka() -> None:
    game = Game(rules="2.1-leaderboard").having(restored=mask("User4")).remembers("User4", 25)
    game.red_will("exploit", "User4").turn("DecoyVsftpd User4")
    assert game.activity("User4") == "None"


# --- memory -------------------------------------------------------------------------------------


def play_both(red_agent: str, observation: str, turns: int, num_envs: int = 8) -> None:
    """Memory kept by the kernel, by `History` outside it, and by the definition: all equal."""
    settings = {"red_agent": red_agent, "horizon": 40, "seed": 3, "num_threads": 1}
    inside = Batch(num_envs, observation=observation, **settings)  # type: ignore[arg-type]
    bits = Batch(num_envs, observation="bits", **settings)  # type: ignore[arg-type]
    outside = History(num_envs, horizon=40, observation=observation)
    plain = [naive.History(40) for _ in range(num_envs)]
    obs = outside.begin()
    random = np.random.default_rng(5)
    for turn in range(turns):
        assert np.array_equal(inside.shown.obs, obs)
        expected = [one.observation() for one in plain]
        if observation == "belief":
            expected = [one.open_part() for one in plain]
        elif observation == "memory":
            expected = [
                np.append(obs, one.more()) for obs, one in zip(expected, plain, strict=True)
            ]
        assert np.array_equal(inside.shown.obs[:, : len(expected[0])], expected)
        actions = random.integers(NUM_ACTIONS, size=num_envs)
        decoys = random.random(num_envs) < 0.5  # decoys and restores, mostly
        actions = np.where(decoys, random.integers(28, NUM_ACTIONS, size=num_envs), actions)
        inside.play(actions)
        bits.play(actions)
        if (turn + 1) % 40 == 0:
            assert np.array_equal(
                inside.shown.final_obs, outside.observe(actions, bits.shown.final_obs)
            )
            obs = outside.begin()
            plain = [naive.History(40) for _ in range(num_envs)]
        else:
            obs = outside.observe(actions, bits.shown.obs)
            for one, action, row in zip(plain, actions, bits.shown.obs, strict=True):
                one.observe(int(action), row)


@pytest.mark.parametrize("red_agent", ["b_line", "meander"])
@pytest.mark.parametrize("observation", ["history", "memory", "belief"])
def test_history_follows_from_the_bits_and_own_actions_alone(
    red_agent: str, observation: str
) -> None:
    play_both(red_agent, observation, turns=100)


@pytest.mark.parametrize("red_agent", RED_AGENTS)
def test_memory_tells_the_attackers_apart_after_three_turns(red_agent: str) -> None:
    batch = Batch(500, red_agent=red_agent, observation="memory", seed=1)
    for _ in range(20):
        batch.play(np.zeros(500, int))
    style = batch.shown.obs[:, STYLE : STYLE + 2]
    expected = {"b_line": (1, 0), "meander": (0, 1), "sleep": (0, 0)}
    assert (style == expected[red_agent]).all()


def test_history_has_the_parts_that_it_names() -> None:
    history = History(horizon=10)
    bits = np.zeros(52)
    bits[4 * HOSTS.index("User2")] = 1  # a scan
    obs = history.observe([action_index("DecoyTomcat", "Op_Host2")], [bits])[0]
    assert obs.shape == (HISTORY_SIZE,)
    assert obs[SHARE_PASSED] == np.float32(0.1)
    assert obs[LAST_VERB + VERBS.index("DecoyTomcat")] == 1
    assert obs[LAST_HOST + HOSTS.index("Op_Host2")] == 1
    assert obs[STANDING + DECOY_SPOTS.index((HOSTS.index("Op_Host2"), 6))] == 1
    assert obs.min() >= 0
    assert obs.max() <= 1


@pytest.mark.parametrize(
    ("actions", "bits"),
    [([10**12], np.zeros((1, 52))), ([1, 1], np.zeros((1, 52))), ([1], np.zeros((1, 10)))],
)
def test_history_refuses_what_is_not_a_turn(actions: list[int], bits: Any) -> None:
    with pytest.raises(ValueError, match=r"shape|not one of 0\.\.144"):
        History().observe(actions, bits)


def test_the_decoys_that_blue_remembers_are_those_that_stand() -> None:
    batch = Batch(32, red_agent="meander", observation="history", seed=1)
    random, kept = np.random.default_rng(2), batch.minds.memories
    assert kept is not None
    for _ in range(60):
        batch.play(random.integers(NUM_ACTIONS, size=32))
        assert np.array_equal(kept["decoys"], batch.nets["decoys"])


@pytest.mark.parametrize("scenario", ["cage2", "random:users=8,enterprise=5,op=4,networks=3"])
def test_decoys_are_remembered_by_host_and_by_their_places_in_observations(scenario: str) -> None:
    batch = Batch(32, red_agent="meander", observation="memory", scenario=scenario, seed=1)
    random, kept = np.random.default_rng(2), batch.minds.memories
    assert kept is not None
    for _ in range(60):
        batch.play(random.integers(batch.num_actions, size=32))
    for by_host, by_place in (("decoys", "standing"), ("decoys_found", "found")):
        assert kept[by_host].any()
        for i, k in enumerate(batch.nets["world"]):
            places = spots_of(kept[by_host][i : i + 1], batch.worlds[k])
            assert np.array_equal(kept[by_place][i], places[0])


def test_masks_say_which_decoys_can_be_placed() -> None:
    batch = Batch(64, red_agent="sleep", seed=1, horizon=1000)
    random = np.random.default_rng(3)
    for _ in range(50):
        actions = random.integers(28, 132, size=64)  # decoys only
        allowed = batch.action_masks()[np.arange(64), actions]
        before = batch.nets["decoys"].copy()
        batch.play(actions)
        grew = (batch.nets["decoys"] != before).any(axis=1)
        assert not grew[~allowed].any()
        vsftpd_again = allowed & ~grew
        assert set((actions[vsftpd_again] - 2) // 13) <= {9}
    masks = batch.action_masks()
    assert masks[:, :28].all()
    assert masks[:, 132:].all()


def play_alike(observations: tuple[str, ...], turns: int) -> Iterator[list[Batch]]:
    """The same games seen in several ways, after each turn."""
    mixture = {"b_line": 0.5, "meander": 0.5}
    batches = [
        Batch(256, red_agent=mixture, prior=mixture, observation=kind, seed=2)
        for kind in observations
    ]
    rng, useful = np.random.default_rng(4), np.flatnonzero(useful_actions())
    for _ in range(turns):
        actions = rng.choice(useful, size=256)
        for batch in batches:
            batch.play(actions)
        yield batches


def test_truth_is_the_belief_of_who_knows() -> None:
    certain = 0
    for believed, true in play_alike(("belief", "truth"), 40):
        beliefs = believed.minds.beliefs
        assert beliefs is not None
        sure = beliefs.standing["count"] == 1
        certain += int(sure.sum())
        assert np.array_equal(believed.shown.obs[sure], true.shown.obs[sure])
        assert np.array_equal(believed.shown.obs[:, :OPEN_SIZE], true.shown.obs[:, :OPEN_SIZE])
    assert certain > 1000


def test_what_is_believed_is_true_on_average() -> None:
    errors = [
        believed.shown.obs - true.shown.obs
        for believed, true in play_alike(("belief", "truth"), 40)
    ]
    means = np.mean(errors, axis=0)  # of each game: games do not depend on each other
    spread = means.std(axis=0) / np.sqrt(len(means))
    assert (np.abs(means.mean(axis=0)) <= 5 * spread + 5e-4).all()
    assert np.abs(np.array(errors)).max() > 0.5  # not all is known


def test_truth_shows_where_red_is() -> None:
    for (true,) in play_alike(("truth",), 40):
        shown, hidden = true.shown, true.shown.obs[:, OPEN_SIZE:]
        assert np.array_equal(hidden[:, USER : USER + NUM_HOSTS], shown.access == 1)
        assert np.array_equal(hidden[:, ROOT : ROOT + NUM_HOSTS], shown.access == 2)
        assert np.array_equal(hidden[:, KNOWN : KNOWN + NUM_HOSTS], shown.known)
        assert np.array_equal(hidden[:, SCANNED : SCANNED + NUM_HOSTS], shown.scanned)


def test_truth_is_for_games_only() -> None:
    with pytest.raises(ConfigError, match="inside the game only"):
        History(observation="truth")
