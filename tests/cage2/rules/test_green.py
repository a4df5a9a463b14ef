"""Green: what its scans show to blue, how often it acts, and that it disturbs nobody."""

import numpy as np
import pytest

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.observation import SCAN_SEEN
from phalanx.cage2.rules.scenario import GREEN_HOSTS, HOSTS
from phalanx.errors import ConfigError
from tests.cage2.game import Game, names

SIZE, TURNS = 256, 30


def test_a_scan_of_greens_looks_like_one_of_reds() -> None:
    game = Game("sleep").turn(green="Enterprise1")
    assert (game.activity("Enterprise1"), game.compromised("Enterprise1")) == ("Scan", "No")
    assert game.turn().activity("Enterprise1") == "None"
    assert names(game.known) == {"User0"}  # red learns nothing of it


def test_green_gets_everywhere_and_only_to_the_hosts_of_its_list() -> None:
    assert Game("sleep").turn(green="Op_Server0").activity("Op_Server0") == "None"


def test_a_new_decoy_hides_a_scan_of_a_host_with_two_ports() -> None:
    """[Q12] as it hides red's."""
    game = Game("sleep").turn("DecoyApache Enterprise0", green="Enterprise0")
    assert game.activity("Enterprise0") == "None"
    assert game.turn(green="Enterprise0").activity("Enterprise0") == "Scan"


def test_green_and_red_on_two_hosts_are_both_seen() -> None:
    game = Game().remembers("User1", 21).red_will("exploit", "User1")
    game.turn(exploit="FTPDirectoryTraversal", green="User2")
    assert (game.activity("User1"), game.activity("User2")) == ("Exploit", "Scan")


def test_q20_greens_scan_of_the_same_host_hides_an_exploit() -> None:
    """Three ports and more are a scan, and the shell's own is the third."""
    game = Game().remembers("User1", 21).red_will("exploit", "User1")
    game.turn(exploit="FTPDirectoryTraversal", green="User1")
    assert (game.activity("User1"), game.compromised("User1")) == ("Scan", "No")
    assert game.access("User1") == "root"


def test_a_guessed_password_is_seen_where_only_its_port_is_open() -> None:
    game = Game().remembers("Enterprise0", 22).red_will("exploit", "Enterprise0")
    game.turn(exploit="SSHBruteForce", green="Enterprise0")
    assert (game.activity("Enterprise0"), game.compromised("Enterprise0")) == ("Exploit", "User")


def test_red_and_green_scan_the_same_host() -> None:
    game = Game().red_will("scan", "User1").turn(green="User1")
    assert game.activity("User1") == "Scan"
    assert game.ports_of("User1") == {22, 21}


# --- how often ------------------------------------------------------------------------------------


def shown_with(green: float | None, red_agent: str = "sleep") -> tuple[np.ndarray, Batch]:
    """Activity [turns, networks, hosts] that blue is shown, and the batch at the end."""
    batch = Batch(SIZE, red_agent=red_agent, seed=3, num_threads=1, green=green)
    rows = []
    for turn in range(TURNS):
        actions = np.full(SIZE, (turn * 11) % 145)
        rows.append(batch.play(actions).obs.reshape(SIZE, -1, 4)[:, :, :2].copy())
    return np.array(rows), batch


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_it_scans_its_hosts_as_often_as_the_originals_does(share: float) -> None:
    shown, _batch = shown_with(share)
    rates = shown[..., 0].mean(axis=(0, 1))
    for host, rate in zip(HOSTS, rates, strict=True):
        chance = share / 16 if host in GREEN_HOSTS else 0.0
        assert abs(rate - chance) < 4 * (chance / (SIZE * TURNS)) ** 0.5 + 1 / 300  # hidden ones


def test_with_green_everything_but_what_blue_sees_stays_the_same() -> None:
    without, plain = shown_with(None, "meander")
    with_green, batch = shown_with(1.0, "meander")
    for name in set(plain.nets.dtype.names or ()) - {"seen"}:
        assert np.array_equal(plain.nets[name], batch.nets[name]), name
    assert not np.array_equal(without, with_green)
    assert np.array_equal(without, shown_with(0.0, "meander")[0])


def test_a_little_green_is_part_of_much() -> None:
    """Its dice are the same, so that a larger share only adds."""
    little, much = shown_with(0.2)[0], shown_with(0.7)[0]
    assert (little <= much).all()
    assert (little < much).any()


@pytest.mark.parametrize("green", [-0.1, 1.1, "much", True, np.nan])
def test_a_share_is_from_0_to_1(green: object) -> None:
    with pytest.raises(ConfigError, match="green must be a number from 0"):
        Batch(2, green=green)  # type: ignore[arg-type]


def test_only_activity_scan_comes_of_green_alone() -> None:
    shown, _batch = shown_with(1.0)
    assert (shown[..., 0] + 2 * shown[..., 1]).max() == SCAN_SEEN
