"""What B-line, Meander and Sleep do next."""

import pytest

from phalanx.cage2.rules.attackers import EXPLOIT_SERVER, FALL_BACK, LAST_STEP
from phalanx.cage2.rules.network import FALSE, TRUE, UNKNOWN
from phalanx.cage2.rules.scenario import HOSTS
from tests.cage2.game import ALL, Game, mask, names


def test_sleep_sleeps() -> None:
    game = Game(red="sleep").turn()
    assert game.red_did == "Sleep"
    assert game.success is None


# --- B-line -------------------------------------------------------------------------------------

LINE = [
    "DiscoverRemoteSystems User",
    "DiscoverNetworkServices {target}",
    "ExploitRemoteService {target}",
    "PrivilegeEscalate {target}",
    "DiscoverNetworkServices {gateway}",
    "ExploitRemoteService {gateway}",
    "PrivilegeEscalate {gateway}",
    "DiscoverRemoteSystems Enterprise",
    "DiscoverNetworkServices Enterprise2",
    "ExploitRemoteService Enterprise2",
    "PrivilegeEscalate Enterprise2",
    "DiscoverNetworkServices Op_Server0",
    "ExploitRemoteService Op_Server0",
    "PrivilegeEscalate Op_Server0",
    "Impact Op_Server0",
    "Impact Op_Server0",
]
BEST = {"User1": "FTPDirectoryTraversal", "User2": "EternalBlue", "User3": "HarakaRCE"}


@pytest.mark.parametrize(
    ("target", "gateway"),
    [
        ("User1", "Enterprise1"),
        ("User2", "Enterprise1"),
        ("User3", "Enterprise0"),
        ("User4", "Enterprise0"),
    ],
)
def test_b_line_walks_its_line(target: str, gateway: str) -> None:
    game = Game(red="b_line")
    for step in LINE:
        expected = step.format(target=target, gateway=gateway)
        exploit = "HTTPSRFI" if "Enterprise" in expected else BEST.get(target, "HarakaRCE")
        game.turn(target=target, exploit=exploit)
        assert game.red_did == expected
        assert game.success
    assert game.line_done == (1 << 15) - 1


@pytest.mark.parametrize("step", range(15))
def test_b_line_falls_back_after_a_failure(step: int) -> None:
    game = Game(red="b_line").having(line_step=step, line_target=HOSTS.index("User1"))
    game.having(succeeded=FALSE, line_done=(1 << 15) - 1).turn()
    assert game.line_step == FALL_BACK[step]
    assert FALL_BACK == (0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13)


def test_b_line_repeats_its_first_step_when_nothing_is_known_yet() -> None:
    game = Game(red="b_line")
    assert game.succeeded == UNKNOWN
    assert game.turn().line_step == 0


def test_b_line_keeps_its_target_for_the_episode() -> None:
    game = Game(red="b_line").turn().turn(target="User4")
    assert game.line_target == HOSTS.index("User4")
    game.having(line_step=0, succeeded=TRUE).turn(target="User1")
    assert game.red_did == "DiscoverNetworkServices User4"


def at_the_server(**fields: int) -> Game:
    """B-line has just scanned Op_Server0."""
    game = Game(red="b_line").having(line_step=11, line_target=HOSTS.index("User1"))
    return game.having(succeeded=TRUE, line_done=(1 << 12) - 1, **fields)


def test_q8_an_empty_scan_of_the_server_sends_b_line_back_to_its_target() -> None:
    game = at_the_server(found_nothing=1).turn()
    assert game.red_did == "DiscoverNetworkServices User1"
    assert game.line_step == 1


def test_q8_a_good_scan_does_not() -> None:
    game = at_the_server(found_nothing=0).turn()
    assert game.red_did == "ExploitRemoteService Op_Server0"


def test_q8_happens_only_until_the_server_was_first_attacked() -> None:
    game = at_the_server(found_nothing=1).having(line_done=(1 << 13) - 1).turn()
    assert game.line_step == EXPLOIT_SERVER


def test_b_line_stays_at_the_end_of_its_line() -> None:
    game = Game(red="b_line").having(line_step=LAST_STEP, succeeded=TRUE, line_target=9).turn()
    assert game.line_step == LAST_STEP


# --- Meander ------------------------------------------------------------------------------------


def test_meander_sweeps_then_scans_then_escalates_then_exploits() -> None:
    game = Game().turn()
    assert game.red_did == "DiscoverRemoteSystems User"
    users = {"User0", "User1", "User2", "User3", "User4"}
    for host in sorted(users, reverse=True):
        assert game.turn(target=host).red_did == f"DiscoverNetworkServices {host}"
    assert game.turn(target="User0").red_did == "PrivilegeEscalate User0"
    game.turn(target="User3", exploit="HarakaRCE")
    assert game.red_did == "ExploitRemoteService User3"
    assert game.turn(target="User3").red_did == "PrivilegeEscalate User3"
    assert game.turn(target="Enterprise0").red_did == "DiscoverNetworkServices Enterprise0"


def test_meander_sweeps_enterprise_before_operational_before_user() -> None:
    order = [Game().having(subnets=7, swept=swept).turn().red_did for swept in (0, 1, 3)]
    assert order == [f"DiscoverRemoteSystems {s}" for s in ("Enterprise", "Operational", "User")]


def test_q9_a_failed_sweep_is_never_tried_again() -> None:
    game = Game().having(subnets=6, swept=4).turn()
    assert game.red_did == "DiscoverRemoteSystems Operational"
    assert game.success is False
    assert game.turn(target="User0").red_did == "DiscoverNetworkServices User0"


def test_q9_an_empty_scan_is_never_tried_again() -> None:
    game = Game().red_will("scan", "Op_Host0").turn(target="Op_Host0")
    assert game.found_nothing
    assert game.red_did == "DiscoverNetworkServices Op_Host0"
    game.having(exploited=ALL & ~mask("Op_Host0"), named=0).session("Enterprise0", "root")
    game.having(escalated=ALL & ~mask("Op_Server0"), named=0).turn(target="Op_Host0")
    assert game.red_did == "ExploitRemoteService Op_Host0"
    assert game.success is False


def test_q10_meander_attacks_user0_and_defender() -> None:
    for host in ("User0", "Defender"):
        game = Game().remembers(host, 22).red_will("exploit", host).turn()
        assert game.red_did == f"ExploitRemoteService {host}"


def after_a_failed_exploit(*escalated: str) -> Game:
    game = Game().red_will("exploit", "Defender").having(escalated=mask(*escalated))
    game.having(exploited=mask("Defender", *escalated), last_exploited=HOSTS.index("Defender"))
    return game.having(succeeded=FALSE, subnets=0, named=0, known=mask("Defender"))


def test_q10_a_failed_exploit_makes_it_forget_the_operational_hosts() -> None:
    game = after_a_failed_exploit("Op_Host1", "Enterprise1", "User1").turn(target="Defender")
    assert names(game.escalated) == {"Enterprise1", "User1"}
    assert names(game.exploited) == {"Defender", "Enterprise1", "User1"}  # Defender: tried anew


def test_q10_or_else_the_enterprise_hosts() -> None:
    game = after_a_failed_exploit("Enterprise1", "User1").turn(target="Defender")
    assert names(game.escalated) == {"User1"}
    assert names(game.exploited) == {"Defender", "User1"}


def test_a_failed_escalation_is_forgotten_where_name_and_address_are_known() -> None:
    for mapped, exploited in ((0, {"User1", "User2"}), (mask("User1"), {"User2"})):
        game = Game().having(known=mask("User3"), scan_tried=ALL, swept=7, named=0, mapped=mapped)
        game.having(escalated=mask("User1", "User2"), exploited=mask("User1", "User2"))
        game.having(last_escalated=HOSTS.index("User1"), succeeded=FALSE).turn(target="User3")
        assert names(game.escalated) == {"User2"}
        assert names(game.exploited) == exploited | {"User3"}


def test_a_successful_exploit_is_noted_on_the_map() -> None:
    game = Game().having(last_exploited=HOSTS.index("User1"), succeeded=TRUE).turn()
    assert names(game.mapped) == {"User1"}
    assert game.last_exploited == -1


def test_meander_impacts_as_soon_as_it_thinks_it_holds_the_server() -> None:
    game = Game().having(escalated=mask("Op_Server0"), subnets=7).turn()
    assert game.red_did == "Impact Op_Server0"
    assert game.success is False  # it never was there
    assert game.turn().red_did == "DiscoverRemoteSystems Enterprise"
    assert names(game.escalated) == set()


def test_meander_does_not_escalate_a_mapped_host_that_it_must_exploit_again() -> None:
    game = Game().having(scan_tried=ALL, swept=7, named=mask("User1"), mapped=mask("User1"))
    game.having(known=mask("User1")).turn(target="User1")
    assert game.red_did == "ExploitRemoteService User1"


def test_meander_may_escalate_any_host_that_it_holds() -> None:
    game = Game().having(swept=7, scan_tried=ALL, named=mask("User1", "User2"), mapped=0)
    assert game.turn(target="User2").red_did == "PrivilegeEscalate User2"
