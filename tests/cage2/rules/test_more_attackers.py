"""What the attackers do that the original does not have."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import ALL_RED_AGENTS, RED_AGENTS, Batch, Cage2Env
from phalanx.cage2.cyborg import CyborgEnv
from phalanx.cage2.rules.attackers import FALL_BACK, STEP_IS_DUE
from phalanx.cage2.rules.batch_turn import LOG, replay_turn
from phalanx.cage2.rules.network import FALSE, TRUE
from phalanx.cage2.rules.red_actions import ESCALATE, EXPLOIT, IMPACT, SCAN, SWEEP
from phalanx.cage2.rules.scenario import HOSTS, NUM_ACTIONS
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.rule import records
from phalanx.errors import ConfigError
from phalanx.play.cells import play_cells
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from tests.cage2.game import ALL, Game, mask, names
from tests.cage2.rules.test_attackers import BEST, LINE

NEW = ("b_line_detour", "meander_rescan", "coin")
MIXTURE = "b_line=0.2,meander=0.2,b_line_detour=0.2,meander_rescan=0.2,coin=0.2"


def games(red: str, *, rules: str = "2.1-final", turns: int = 100) -> Iterator[tuple[Any, Any]]:
    """300 networks, turn by turn: their records before a turn, and what was done in it.

    Blue repairs and places decoys at random in two of three, and leaves the others alone.
    """
    size, rng = 300, np.random.default_rng(3)
    batch = Batch(size, red_agent=red, rules=rules, seed=2, horizon=turns + 1)
    log, everyone = records(size, LOG), np.ones(size, np.bool_)
    repairs = [*range(15, 28), *range(132, 145)]
    for _ in range(turns):
        anything = rng.integers(NUM_ACTIONS, size=size)
        blue = np.where(rng.random(size) < 0.3, rng.choice(repairs, size), anything)
        blue[::3] = 0
        before = batch.nets.copy()
        replay_turn(
            CAGE2_WORLDS, batch.nets, everyone, blue, rng.integers(2**32, size=(size, 3)), log
        )
        yield before, log.copy()


def is_in(sets: Any, hosts: Any) -> Any:
    return sets.astype(np.int64) >> hosts & 1 == 1


# --- all of them ----------------------------------------------------------------------------------


def test_they_come_after_the_challenge_s_own() -> None:
    assert RED_AGENTS == ("b_line", "meander", "sleep")
    assert (*RED_AGENTS, *NEW) == ALL_RED_AGENTS


@pytest.mark.parametrize("rules", ["2.1-final", "2.1-leaderboard"])
@pytest.mark.parametrize("red", NEW)
def test_they_make_only_moves_that_they_can_make(red: str, rules: str) -> None:
    """Known addresses, named hosts; and no exploit where red is a mere user already: then two bits
    would not be enough for a host's sessions.
    """
    impacts = 0
    for before, log in games(red, rules=rules):
        did, target = log["red"], log["target"].astype(np.int64)
        assert set(did) <= {SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT}
        assert (target >= 0).all()
        assert (target < np.where(did == SWEEP, 3, 13)).all()
        assert is_in(before["subnets"], target)[did == SWEEP].all()
        assert is_in(before["known"], target)[(did == SCAN) | (did == EXPLOIT)].all()
        assert is_in(before["named"], target)[did >= ESCALATE].all()
        mere_user = before["sessions"] & ~before["root"]
        assert not is_in(mere_user, target)[did == EXPLOIT].any()
        impacts += int((did == IMPACT).sum())
    assert impacts > 1000


def test_a_mixture_plays_all() -> None:
    batch = Batch(2000, red_agent=MIXTURE, seed=5)
    counts = np.bincount(batch.nets["red"], minlength=6)
    assert counts[2] == 0  # sleep
    assert (abs(np.delete(counts, 2) - 400) < 4 * 18).all()


@pytest.mark.parametrize("red", NEW)
def test_their_games_can_be_saved_and_restored(red: str) -> None:
    rng = np.random.default_rng(1)
    batch = Batch(40, red_agent=red, seed=3, horizon=60)
    for _ in range(30):
        batch.play(rng.integers(NUM_ACTIONS, size=40))
    saved, actions = batch.save(), rng.integers(NUM_ACTIONS, size=(30, 40))
    other = Batch(40, red_agent=red, seed=9, horizon=60)
    other.restore(saved)
    for chosen in actions:
        assert np.array_equal(batch.play(chosen).truth, other.play(chosen).truth)
    assert np.array_equal(batch.nets, other.nets)


def test_a_picture_names_them() -> None:
    env = Cage2Env(red_agent="Meander_Rescan", render_mode="ansi")
    env.reset()
    assert "red agent meander_rescan" in str(env.render())


def test_the_original_refuses_them_in_one_line() -> None:
    message = "the original simulator has no red agent coin; choose from b_line, meander, sleep"
    for ask in (
        lambda: CyborgEnv(red_agent="b_line=0.5,coin=0.5"),
        lambda: EvaluateConfig(red_agent=("meander", "coin"), simulator="cyborg"),
        lambda: TrainConfig(red_agent="coin", env="cyborg"),
    ):
        with pytest.raises(ConfigError, match=message) as refusal:
            ask()
        assert "\n" not in str(refusal.value)


def test_evaluation_plays_them_only_if_asked() -> None:
    assert EvaluateConfig().red_agent == RED_AGENTS
    assert EvaluateConfig(leaderboard=True, red_agent=("coin",)).red_agent == RED_AGENTS
    asked = EvaluateConfig(
        target=("sleep",), red_agent=("coin", MIXTURE), horizon=(30,), episodes=50
    )
    assert [cell.red_agent for cell in play_cells(asked)] == ["coin", MIXTURE]


def test_training_reports_them_apart_where_they_take_part(tmp_path: Path) -> None:
    columns = {}
    for name, red in (("own", "b_line"), ("more", "b_line=0.5,coin=0.5")):
        train(
            TrainConfig(
                num_envs=32, total_episodes=64, horizon=10, update_steps=10, red_agent=red,
                minibatch_size=64, hidden=(8,), output_dir=tmp_path, name=name,
            )
        )  # fmt: skip
        with (tmp_path / name / "updates.csv").open() as file:
            columns[name] = [c for c in next(csv.reader(file)) if c.startswith("return_")]
    assert columns["own"] == [f"return_{red}" for red in RED_AGENTS]
    assert columns["more"] == [f"return_{red}" for red in ALL_RED_AGENTS]
    with (tmp_path / "more" / "episodes.csv").open() as file:
        assert {row["kind"] for row in csv.DictReader(file)} == {"b_line", "coin"}


# --- b_line_detour: two user hosts, and the gateway that the second one points to -----------------


@pytest.mark.parametrize(
    ("first", "second", "gateway"),
    [
        ("User1", "User3", "Enterprise0"),
        ("User2", "User4", "Enterprise0"),
        ("User3", "User1", "Enterprise1"),
        ("User4", "User2", "Enterprise1"),
    ],
)
def test_b_line_detour_takes_a_host_of_the_other_side_first(
    first: str, second: str, gateway: str
) -> None:
    game = Game(red="b_line_detour")
    detour = [step.format(target=first) for step in LINE[:4]]
    rest = [step.format(target=second, gateway=gateway) for step in LINE[1:]]
    for expected in detour + rest:
        host = expected.split()[1]
        exploit = "HTTPSRFI" if "Enterprise" in host else BEST.get(host, "HarakaRCE")
        game.turn(target=first, exploit=exploit)
        assert game.red_did == expected
        assert game.success


def detoured(**fields: int) -> Game:
    """On its second host: User3."""
    done = (1 << 4) - 1 | 1 << 15
    game = Game(red="b_line_detour").having(line_target=HOSTS.index("User3"), line_done=done)
    return game.having(**fields)


def test_b_line_detour_goes_on_only_after_it_holds_the_first_host() -> None:
    game = Game(red="b_line_detour").having(line_target=HOSTS.index("User1"), line_step=3)
    assert game.having(succeeded=FALSE).turn().red_did == "ExploitRemoteService User1"
    game.having(line_step=3, succeeded=TRUE)
    assert game.turn().red_did == "DiscoverNetworkServices User3"


def test_b_line_detour_makes_its_detour_once() -> None:
    game = detoured(line_step=3, succeeded=TRUE)
    assert game.turn().red_did == "DiscoverNetworkServices Enterprise0"
    game = detoured(line_step=4, succeeded=FALSE)
    assert game.turn().red_did == "ExploitRemoteService User3"


@pytest.mark.parametrize("step", range(15))
def test_b_line_detour_falls_back_as_b_line_does(step: int) -> None:
    assert detoured(line_step=step, succeeded=FALSE).turn().line_step == FALL_BACK[step]


def test_b_line_detour_begins_as_b_line_does() -> None:
    """The same dice, the same four moves; then they part."""
    line, detour = games("b_line", turns=5), games("b_line_detour", turns=5)
    for (_, left), (_, right) in list(zip(line, detour, strict=True))[:4]:
        assert np.array_equal(left, right)


# --- meander_rescan: another scan after a failed exploit ------------------------------------------


def after_an_exploit(red: str, succeeded: int) -> Game:
    """It has just tried User3, which it saw without decoys; everything known was scanned."""
    user3 = HOSTS.index("User3")
    game = Game(red=red).remembers("User3", 80, 443, 25).decoy("User3", "SSHD")
    game.having(swept=7, scan_tried=ALL, escalated=mask("User0"), exploited=mask("User0", "User3"))
    return game.having(last_exploited=user3, succeeded=succeeded)


def test_meander_rescan_scans_again_after_a_failed_exploit() -> None:
    game = after_an_exploit("meander_rescan", FALSE)
    assert game.turn(target="User3").red_did == "DiscoverNetworkServices User3"
    assert game.ports_of("User3") == {80, 443, 3389, 25, 22}  # the decoy's port too
    assert game.turn(target="User3").red_did == "ExploitRemoteService User3"
    assert after_an_exploit("meander", FALSE).turn(target="User3").red_did == (
        "ExploitRemoteService User3"
    )


def test_meander_rescan_does_not_scan_again_after_a_success() -> None:
    game = after_an_exploit("meander_rescan", TRUE).session("User3", "removable")
    assert game.turn(target="User3").red_did == "PrivilegeEscalate User3"
    assert game.scan_tried == ALL


def test_meander_rescan_reaches_a_host_that_meander_never_would() -> None:
    """Q9: scanned while out of reach, an operational host stays closed to Meander."""
    for red, ports in (("meander_rescan", {22}), ("meander", set())):
        game = Game(red=red).session("Enterprise0", "root").having(last_exploited=4)
        game.having(known=mask("Op_Host0"), swept=7, scan_tried=ALL, named=0, succeeded=FALSE)
        assert game.turn(target="Op_Host0").ports_of("Op_Host0") == ports


def test_meander_rescan_plays_as_meander_until_an_exploit_fails() -> None:
    failed = np.zeros(300, np.bool_)
    parted = 0
    both = zip(games("meander", turns=40), games("meander_rescan", turns=40), strict=True)
    for (before, left), (_, right) in both:
        failed |= (before["last_exploited"] >= 0) & (before["succeeded"] == FALSE)
        assert np.array_equal(left[~failed], right[~failed])
        parted = int((left[failed] != right[failed]).sum())
    assert (~failed).sum() < 290
    assert parted > 100


# --- coin: now a move of B-line's, now one of Meander's -------------------------------------------


def coin(**fields: Any) -> Game:
    return Game(red="coin").having(**fields)


def falls(game: Game, side: str, **turn: Any) -> str:
    """Let the coin of this turn fall on "line" or "meander"; what red does then."""
    start, stood = game.nets.copy(), bool(game.line_done >> STEP_IS_DUE & 1)
    for stream in range(1, 200):
        game.nets[:] = start
        game.having(stream=stream).turn(**turn)
        due = bool(game.line_done >> STEP_IS_DUE & 1)
        if due == (side == "meander"):
            return game.red_did
    raise AssertionError(f"the coin never falls on {side}; due before: {stood}")


def test_the_coin_is_fair_and_a_new_one_each_turn() -> None:
    thrown = []
    for before, _ in games("coin", turns=41):
        if int(before["turn"][0]) > 0:
            free = (before["last_exploited"] < 0) | (before["succeeded"] != TRUE)
            lines = before["line_done"] >> STEP_IS_DUE & 1 == 0
            thrown.append((lines, free))
    sides = np.array([lines for lines, _ in thrown])
    assert abs(sides[0].mean() - 0.5) < 4 * 0.5 / np.sqrt(300)
    same = (sides[1:] == sides[:-1])[np.array([free for _, free in thrown])[:-1]]
    assert abs(same.mean() - 0.5) < 4 * 0.5 / np.sqrt(same.size)


def test_the_coin_disturbs_no_other_die() -> None:
    """What it throws is none of the bits that targets, exploits, detection and policies use."""
    batch = Batch(4000, red_agent="coin", seed=1)
    line = Batch(4000, red_agent="b_line", seed=1)
    for _ in range(2):
        batch.play(np.zeros(4000, int))
        line.play(np.zeros(4000, int))
    chosen = batch.nets["line_target"] >= 0  # B-line's second step came in the second turn
    assert 900 < chosen.sum() < 1100
    assert np.array_equal(batch.nets["line_target"][chosen], line.nets["line_target"][chosen])


def test_the_coin_begins_with_a_sweep_of_either() -> None:
    for side in ("line", "meander"):
        assert falls(coin(), side) == "DiscoverRemoteSystems User"


def test_b_line_waits_where_it_was_while_meander_moves() -> None:
    game = coin()
    falls(game, "line")
    assert falls(game, "meander", target="User2") == "DiscoverNetworkServices User2"
    assert falls(game, "meander", target="User4") == "DiscoverNetworkServices User4"
    assert falls(game, "line", target="User1") == "DiscoverNetworkServices User1"


def test_b_line_judges_its_own_last_step_and_not_meander_s() -> None:
    for succeeded, then in ((TRUE, "PrivilegeEscalate"), (FALSE, "ExploitRemoteService")):
        due = 3 if succeeded else FALL_BACK[2]
        game = coin(line_target=HOSTS.index("User1"), line_done=1 << STEP_IS_DUE, line_step=due)
        game.having(succeeded=1 - succeeded)  # Meander's last move went the other way
        assert falls(game, "line") == f"{then} User1"


def test_q8_counts_for_the_scan_of_b_line_only() -> None:
    at_server = {"line_step": 11, "line_target": HOSTS.index("User1"), "succeeded": TRUE}
    game = coin(found_nothing=1, **at_server)
    assert falls(game, "line") == "DiscoverNetworkServices User1"
    game = coin(found_nothing=0, **at_server)
    falls(game, "meander")
    assert falls(game.having(found_nothing=1), "line") == "ExploitRemoteService Op_Server0"


def test_meander_notes_what_b_line_does_as_its_own() -> None:
    game = coin(line_target=HOSTS.index("User1"), known=mask("User0", "User1"))
    assert falls(game, "line") == "DiscoverRemoteSystems User"
    assert game.swept == 1 << 2
    falls(game, "line")
    assert names(game.scan_tried) == {"User1"}
    falls(game, "line", exploit="SSHBruteForce")
    assert game.success
    assert names(game.exploited) == {"User1"}
    assert game.last_exploited == HOSTS.index("User1")
    falls(game, "line")
    assert names(game.escalated) == names(game.mapped) == {"User1"}
    assert game.last_escalated == HOSTS.index("User1")


def test_a_failed_exploit_of_b_line_is_one_of_meander_s_too() -> None:
    game = coin(line_target=HOSTS.index("User1"), line_step=1, succeeded=TRUE, swept=7)
    game.having(escalated=mask("Enterprise1", "User1"), exploited=mask("Enterprise1", "User1"))
    assert falls(game, "line") == "ExploitRemoteService User1"  # it remembers no port
    assert names(game.escalated) == {"Enterprise1"}  # must be escalated anew
    falls(game, "meander", target="User0")
    assert names(game.escalated | game.exploited) == set()  # Q10


def test_a_failed_impact_of_b_line_makes_meander_doubt_that_it_holds_the_server() -> None:
    server = mask("Op_Server0")
    game = coin(line_step=13, succeeded=TRUE, line_target=9, swept=7, scan_tried=ALL)
    game.having(escalated=server, exploited=server, mapped=server)
    assert falls(game, "line") == "Impact Op_Server0"
    assert game.success is False
    assert not falls(game, "meander", target="User0").startswith("Impact")
    assert names(game.escalated) == {"User0"}
    assert names(game.exploited) == set()


def test_who_has_just_taken_a_host_escalates_there() -> None:
    """There the coin is not thrown: whatever it is, the move is the same."""
    for stream in range(20):
        game = coin(stream=stream, line_target=9, line_step=2, succeeded=TRUE, last_exploited=9)
        game.having(exploited=mask("User1")).session("User1", "removable")
        assert game.turn(target="User1").red_did == "PrivilegeEscalate User1"
        assert game.line_step == 3
        assert not game.line_done >> STEP_IS_DUE & 1
        game = coin(stream=stream, line_target=9, line_step=2, succeeded=TRUE, last_exploited=12)
        game.having(exploited=mask("User4"), escalated=mask("User0"), swept=7, scan_tried=ALL)
        game.having(line_done=1 << STEP_IS_DUE).session("User4", "removable")
        assert game.turn(target="User4").red_did == "PrivilegeEscalate User4"
        assert game.line_done >> STEP_IS_DUE & 1
