"""What an attacker can do."""

import pytest

from phalanx.cage2.rules.network import ACTIVE, NAME_KNOWN, RUNNING
from phalanx.cage2.rules.scenario import EXPLOIT_PORTS, EXPLOITS, HOSTS
from tests.cage2.game import Game, mask, names

EB, BK, HTTP, HTTPS, SSH, SQL, HARAKA, FTP = EXPLOITS


def test_red_begins_on_user0() -> None:
    game = Game()
    assert names(game.sessions) == names(game.root) == names(game.known) == {"User0"}
    assert names(game.named) == {"User0"}
    assert game.subnets == 0b100


# --- sweep and scan -----------------------------------------------------------------------------


def test_a_sweep_finds_all_addresses_of_the_subnet() -> None:
    game = Game().red_will("sweep", "Enterprise").turn()
    assert game.success
    assert names(game.known) == {"User0", "Defender", "Enterprise0", "Enterprise1", "Enterprise2"}
    assert game.seen == 0  # invisible


@pytest.mark.parametrize("foothold", ["Enterprise0", "Enterprise1", "Enterprise2"])
def test_operational_hosts_are_reached_from_any_enterprise_session(foothold: str) -> None:
    assert not Game().red_will("sweep", "Operational").turn().success
    assert Game().session(foothold, "stuck").red_will("sweep", "Operational").turn().success


@pytest.mark.parametrize("action", ["scan", "exploit"])
def test_a_user_session_is_enough_to_reach_the_server(action: str) -> None:
    game = Game().session("Enterprise1", "stuck").remembers("Op_Server0", 22)
    assert game.red_will(action, "Op_Server0").turn().activity("Op_Server0") != "None"


def test_defender_is_no_way_into_the_operational_subnet() -> None:
    game = Game().session("Defender", "root").red_will("sweep", "Operational").turn()
    assert not game.success
    assert "Op_Server0" not in names(game.known)


def test_blue_can_cut_the_way_in_the_same_turn() -> None:
    game = Game().session("Enterprise1", "root").red_will("sweep", "Operational")
    assert not game.turn("Restore Enterprise1").success


def test_a_scan_remembers_the_ports_that_listen_now() -> None:
    game = Game().decoy("Enterprise0", "Apache", "Vsftpd").red_will("scan", "Enterprise0").turn()
    assert game.success
    assert game.ports_of("Enterprise0") == {22, 80}
    assert names(game.scanned) == {"Enterprise0"}


IMAGE_PORTS = {
    "Defender": {22},
    "Enterprise0": {22},
    "Enterprise1": {22, 3389, 139, 80, 443},
    "Op_Server0": {22},
    "User1": {22, 21},
    "User2": {139, 3389},
    "User3": {80, 3389, 443, 25},
    "User4": {22, 80, 3390, 443, 25},
}


@pytest.mark.parametrize(("host", "ports"), IMAGE_PORTS.items())
def test_every_image_listens_on_its_ports(host: str, ports: set[int]) -> None:
    game = Game().session("Enterprise2", "root").red_will("scan", host).turn()
    assert game.ports_of(host) == ports


def test_q5_a_scan_out_of_reach_succeeds_and_finds_nothing() -> None:
    game = Game().red_will("scan", "Op_Server0").turn()
    assert game.success
    assert game.ports_of("Op_Server0") == set()
    assert names(game.scanned) == set()
    assert game.found_nothing
    assert game.seen == 0


def test_a_scan_replaces_what_was_remembered() -> None:
    game = Game().remembers("User2", 139, 3389, 21).red_will("scan", "User2").turn()
    assert game.ports_of("User2") == {139, 3389}


def test_q18_the_leaderboard_remembers_ports_for_ever() -> None:
    game = Game(rules="2.1-leaderboard").remembers("User2", 139, 3389, 21).red_will("scan", "User2")
    assert game.turn().ports_of("User2") == {139, 3389, 21}


# --- exploit ------------------------------------------------------------------------------------


def test_a_host_that_was_not_scanned_cannot_be_exploited() -> None:
    game = Game().red_will("exploit", "User3").turn()
    assert game.success is False
    assert game.exploit_used is None
    assert game.seen == 0


GENUINE = {  # host: what each exploit gives; all others meet nothing
    "Defender": {SSH: "fails"},
    "Enterprise0": {SSH: "user"},
    "Enterprise1": {BK: "root", HTTP: "user", HTTPS: "user", SSH: "user"},
    "Enterprise2": {BK: "root", HTTP: "user", HTTPS: "user", SSH: "user"},
    "Op_Host0": {SSH: "user"},
    "Op_Server0": {SSH: "user"},
    "User0": {SSH: "user", FTP: "root"},
    "User1": {SSH: "user", FTP: "root"},
    "User2": {EB: "root", BK: "user"},
    "User3": {HTTP: "user", HTTPS: "user", HARAKA: "root"},
    "User4": {HTTP: "user", HTTPS: "user", SSH: "user", SQL: "root", HARAKA: "root"},
}


@pytest.mark.parametrize("host", GENUINE)
@pytest.mark.parametrize("exploit", EXPLOITS)
@pytest.mark.parametrize("detected", [True, False])
def test_what_each_exploit_gives_on_each_image(host: str, exploit: str, detected: bool) -> None:
    gives = GENUINE[host].get(exploit)
    game = Game().session("Enterprise2", "root").remembers(host, *EXPLOIT_PORTS)
    before = game.access(host)
    game.red_will("exploit", host).turn(exploit=exploit, detected=detected)
    assert game.red_did == f"ExploitRemoteService {host}"
    assert game.exploit_used == exploit
    assert game.success == (gives in ("user", "root"))
    if before == "none":
        kind = "removable" if detected and exploit != SSH else "stuck"
        assert game.access(host) == {"user": kind, "root": "root"}.get(str(gives), "none")
    assert (host in names(game.files)) == (gives in ("user", "root") and exploit != SSH)
    seen = gives is not None and (exploit == SSH or detected)
    assert game.activity(host) == ("Exploit" if seen else "Scan" if gives else "None")
    assert (game.alert == HOSTS.index(host)) == (gives is not None and exploit != SSH and detected)


def test_q6_ports_of_another_service_fail_in_silence() -> None:
    for host, exploit in (("Enterprise1", EB), ("User3", BK)):
        game = Game().remembers(host, *EXPLOIT_PORTS).red_will("exploit", host)
        game.turn(exploit=exploit)
        assert game.success is False
        assert game.seen == 0


def test_q6_a_decoy_that_is_gone_fails_in_silence() -> None:
    game = Game().remembers("Enterprise0", 22, 25).red_will("exploit", "Enterprise0")
    game.turn(exploit=HARAKA)
    assert game.success is False
    assert game.seen == 0


LURED = {"Apache": HTTP, "Vsftpd": HTTP, "HarakaSMPT": HARAKA, "Tomcat": HTTPS}


@pytest.mark.parametrize(("decoy", "exploit"), LURED.items())
def test_a_decoy_defeats_its_exploit(decoy: str, exploit: str) -> None:
    game = Game().remembers("Enterprise0", *EXPLOIT_PORTS).decoy("Enterprise0", decoy)
    game.red_will("exploit", "Enterprise0").turn(exploit=exploit)
    assert game.success is False
    assert game.access("Enterprise0") == "none"
    assert game.activity("Enterprise0") == "Scan"


@pytest.mark.parametrize(
    ("host", "decoy", "exploit"),
    [("Enterprise1", "Femitter", FTP), ("User1", "Smss", EB), ("User1", "Svchost", BK)],
)
def test_windows_decoys_defeat_their_exploit(host: str, decoy: str, exploit: str) -> None:
    for standing, activity in ((decoy, "Scan"), ("Tomcat", "None")):
        game = Game().remembers(host, *EXPLOIT_PORTS).decoy(host, standing)
        game.red_will("exploit", host).turn(exploit=exploit)
        assert (game.success, game.activity(host)) == (False, activity)


def test_a_genuine_service_answers_before_a_decoy() -> None:
    game = Game().remembers("User4", 80, 25).decoy("User4", "Vsftpd").red_will("exploit", "User4")
    assert game.turn(exploit=HTTP).success


def test_q13_an_ssh_decoy_shows_as_compromise() -> None:
    game = Game().remembers("User2", 22, 139).decoy("User2", "SSHD").red_will("exploit", "User2")
    game.turn(exploit=SSH)
    assert game.access("User2") == "none"
    assert (game.activity("User2"), game.compromised("User2")) == ("Exploit", "User")


def test_q13_attacks_on_defender_show_as_compromise() -> None:
    game = Game().remembers("Defender", 22).red_will("exploit", "Defender").turn()
    assert game.success is False
    assert game.access("Defender") == "none"
    assert game.compromised("Defender") == "User"


def test_an_exploit_out_of_reach_fails_in_silence() -> None:
    game = Game().remembers("Op_Server0", 22).red_will("exploit", "Op_Server0").turn()
    assert game.success is False
    assert game.seen == 0


def test_a_successful_exploit_tells_the_host_name() -> None:
    game = Game().remembers("User4", 25).red_will("exploit", "User4").turn()
    assert "User4" in names(game.named)


def test_sql_injection_wants_a_web_port_too() -> None:
    alone = Game().remembers("User4", 3390).red_will("exploit", "User4").turn(exploit=SQL)
    assert alone.exploit_used is None
    game = Game().remembers("User4", 3390, 443).red_will("exploit", "User4").turn(exploit=SQL)
    assert game.exploit_used == SQL


def test_q19_restore_spoils_haraka_under_the_leaderboards_rules() -> None:
    for host in ("User3", "User4"):
        game = Game(rules="2.1-leaderboard").remembers(host, 25).red_will("exploit", host)
        game.turn(f"Restore {host}")
        assert game.success is False
        assert names(game.files) == set()
        assert game.activity(host) == "Scan"
        assert game.compromised(host) == "No"


def test_haraka_survives_restore_under_the_final_rules() -> None:
    game = Game().remembers("User3", 25).red_will("exploit", "User3").turn("Restore User3")
    assert game.success


def test_restore_spoils_haraka_only_where_it_is_genuine() -> None:
    game = Game(rules="2.1-leaderboard").having(restored=mask("User3"))
    assert game.remembers("User4", 25).red_will("exploit", "User4").turn().success


# --- escalate and impact ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["removable", "stuck"])
def test_escalation_makes_root_and_drops_a_file(kind: str) -> None:
    game = Game().session("User3", kind).red_will("escalate", "User3").turn()
    assert game.success
    assert game.access("User3") == "root"
    assert names(game.files) == {"User3"}
    assert game.seen == 0


def test_escalation_of_root_drops_no_file() -> None:
    game = Game().session("User3", "root").red_will("escalate", "User3").turn()
    assert game.success
    assert names(game.files) == set()


def test_escalation_needs_a_session() -> None:
    game = Game().red_will("escalate", "User3").turn()
    assert game.success is False


READ = {
    "Enterprise2": {"Op_Server0"},
    "User1": {"Enterprise1"},
    "User2": {"Enterprise1"},
    "User3": {"Enterprise0"},
    "User4": {"Enterprise0"},
    "Enterprise0": set(),
    "Op_Host0": set(),
}


@pytest.mark.parametrize(("host", "found"), READ.items())
def test_escalation_reads_the_next_address(host: str, found: set[str]) -> None:
    game = Game().session(host, "stuck").red_will("escalate", host).turn()
    assert names(game.known) == {"User0", host} | found


def test_escalation_tells_the_hosts_own_subnet_only() -> None:
    assert Game().session("User1", "stuck").red_will("escalate", "User1").turn().subnets == 0b100
    game = Game().session("Enterprise2", "stuck").red_will("escalate", "Enterprise2").turn()
    assert game.subnets == 0b101


def server_held(kind: str = "root") -> Game:
    game = Game().session("Op_Server0", kind).session("Enterprise2", "root").red_will("impact")
    return game.having(service=RUNNING | ACTIVE | NAME_KNOWN)


@pytest.mark.parametrize("kind", ["root", "removable", "stuck"])
def test_impact_stops_the_service_whatever_the_session(kind: str) -> None:
    game = server_held(kind).turn()
    assert game.success
    assert game.service & RUNNING == 0


def test_impact_needs_a_session_on_the_server() -> None:
    game = server_held().turn("Restore Op_Server0")
    assert game.success is False
    assert game.service & RUNNING


def test_impact_needs_the_name_of_the_service() -> None:
    assert server_held().having(service=RUNNING | ACTIVE).turn().success is False


def test_q3_after_a_restore_impact_succeeds_and_stops_nothing() -> None:
    game = server_held().having(restored=mask("Op_Server0")).turn()
    assert game.success
    assert game.service & RUNNING
    assert game.service & ACTIVE == 0


def test_q7_the_service_stays_down_until_the_server_is_restored() -> None:
    game = server_held().turn()
    assert game.cost == 120  # two hosts held as root, and the service
    game.red_will("scan", "User1").turn()
    assert game.cost == 120
    game.red_will("scan", "User2").turn("Restore Op_Server0")
    assert game.cost == 20  # Enterprise2 and the Restore
