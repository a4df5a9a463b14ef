"""What the defender can do."""

import pytest

from phalanx.cage2.rules.network import ACTIVE, RUNNING
from phalanx.cage2.rules.scenario import DECOYS, HOSTS, IMAGE_OF_HOST
from tests.cage2.game import Game, mask, names


def quiet() -> Game:
    """A game in which red sleeps."""
    return Game(red="sleep")


def test_monitor_and_sleep_change_nothing() -> None:
    for action in ("Sleep", "Monitor"):
        game = quiet().session("User1", "removable").table("User1", compromised="User").turn(action)
        assert game.access("User1") == "removable"
        assert game.compromised("User1") == "User"
        assert game.cost == 0


def test_analyse_finds_malware() -> None:
    game = quiet().having(files=mask("User3")).turn("Analyse User3")
    assert game.compromised("User3") == "Privileged"


def test_analyse_of_a_clean_host_shows_nothing() -> None:
    game = quiet().table("User3", compromised="User").turn("Analyse User3")
    assert game.compromised("User3") == "User"


def test_q1_analyse_reports_privileged_for_a_user_level_shell() -> None:
    game = Game().remembers("User3", 80).red_will("exploit", "User3").turn(detected=False)
    assert game.access("User3") == "stuck"
    game.red_will("scan", "User4").turn("Analyse User3")
    assert game.compromised("User3") == "Privileged"


def test_q1_analyse_reports_privileged_after_remove() -> None:
    game = quiet().session("User3", "removable").having(files=mask("User3"))
    game.turn("Remove User3").turn("Analyse User3")
    assert game.access("User3") == "none"
    assert game.compromised("User3") == "Privileged"


def test_q1_analyse_is_blind_to_ssh() -> None:
    game = Game().remembers("User4", 22).red_will("exploit", "User4").turn()
    assert game.access("User4") == "stuck"
    game.red_will("scan", "User3").turn("Analyse User4")
    assert game.compromised("User4") == "User"  # from the exploit that was seen, not from a file


def test_analyse_sees_the_disk_before_red_moves() -> None:
    game = Game().remembers("User3", 80).red_will("exploit", "User3").turn("Analyse User3")
    assert game.compromised("User3") == "User"
    assert names(game.files) == {"User3"}


def test_remove_stops_a_shell_that_was_seen() -> None:
    game = quiet().session("User3", "removable").turn("Remove User3")
    assert game.access("User3") == "none"


@pytest.mark.parametrize("kind", ["root", "stuck"])
def test_q2_remove_cannot_stop_root_ssh_or_unseen_shells(kind: str) -> None:
    game = quiet().session("User3", kind).table("User3", compromised="User").turn("Remove User3")
    assert game.access("User3") == kind
    assert game.compromised("User3") == "Unknown"


def test_remove_leaves_the_table_at_no() -> None:
    assert quiet().session("User3", "removable").turn("Remove User3").compromised("User3") == "No"


def test_remove_turns_privileged_into_unknown() -> None:
    game = quiet().table("User3", compromised="Privileged").turn("Remove User3")
    assert game.compromised("User3") == "Unknown"


def test_remove_leaves_files_and_decoys() -> None:
    game = quiet().session("User3", "removable").having(files=mask("User3")).decoy("User3", "SSHD")
    game.turn("Remove User3")
    assert names(game.files) == {"User3"}
    assert game.decoys_on("User3") == {"SSHD"}


@pytest.mark.parametrize("kind", ["root", "removable", "stuck"])
def test_restore_evicts_every_session(kind: str) -> None:
    game = quiet().session("Enterprise1", kind).having(files=mask("Enterprise1", "User1"))
    game.decoy("Enterprise1", "Femitter").table("Enterprise1", compromised="Privileged")
    game.turn("Restore Enterprise1")
    assert game.access("Enterprise1") == "none"
    assert names(game.removable) == set()
    assert names(game.files) == {"User1"}
    assert game.decoys_on("Enterprise1") == set()
    assert game.compromised("Enterprise1") == "No"
    assert game.cost == 10


def test_restore_costs_even_on_a_healthy_host() -> None:
    assert quiet().turn("Restore Defender").cost == 10


def test_restore_leaves_what_red_knows() -> None:
    game = quiet().session("User3", "root").remembers("User3", 80, 25).turn("Restore User3")
    assert game.ports_of("User3") == {80, 25}
    assert {"User3"} <= names(game.known) & names(game.named) & names(game.scanned)


def test_red_can_never_be_evicted_from_user0() -> None:
    game = quiet().having(files=mask("User0")).decoy("User0", "Apache").turn("Restore User0")
    assert game.access("User0") == "root"
    assert names(game.files) == set()
    assert game.decoys_on("User0") == set()
    assert quiet().turn("Remove User0").access("User0") == "root"


def test_q3_restore_of_the_server_brings_the_service_back() -> None:
    game = quiet().having(service=0).turn("Restore Op_Server0")
    assert game.service == RUNNING | ACTIVE
    assert game.cost == 10  # and no longer 110


def test_only_the_servers_restore_brings_the_service_back() -> None:
    assert quiet().having(service=0).turn("Restore Enterprise0").cost == 110


POSSIBLE = {
    "Defender": "Apache HarakaSMPT Tomcat Vsftpd",
    "Enterprise0": "Apache HarakaSMPT Tomcat Vsftpd",
    "Enterprise1": "Femitter",
    "Enterprise2": "Femitter",
    "Op_Host0": "Apache HarakaSMPT Tomcat Vsftpd",
    "Op_Host1": "Apache HarakaSMPT Tomcat Vsftpd",
    "Op_Host2": "Apache HarakaSMPT Tomcat Vsftpd",
    "Op_Server0": "Apache HarakaSMPT Tomcat Vsftpd",
    "User0": "Apache Smss Svchost Tomcat",
    "User1": "Apache Smss Svchost Tomcat",
    "User2": "Apache Femitter SSHD Tomcat",
    "User3": "SSHD Vsftpd",
    "User4": "Vsftpd",
}


@pytest.mark.parametrize("host", HOSTS)
def test_decoys_go_where_system_and_ports_allow(host: str) -> None:
    for decoy in DECOYS:
        kind = decoy.name.removeprefix("Decoy")
        game = quiet().turn(f"{decoy.name} {host}")
        assert game.decoy_placed == (kind in POSSIBLE[host].split())
        assert game.decoys_on(host) == ({kind} if game.decoy_placed else set())
        assert game.cost == 0


def test_a_second_identical_decoy_fails() -> None:
    game = quiet().turn("DecoyApache Op_Host1").turn("DecoyApache Op_Host1")
    assert not game.decoy_placed
    assert game.decoys_on("Op_Host1") == {"Apache"}


def test_q4_vsftpd_can_be_placed_again_and_again() -> None:
    linux = [h for h, image in zip(HOSTS, IMAGE_OF_HOST, strict=True) if image.os == "Linux"]
    for host in linux:
        game = quiet().turn(f"DecoyVsftpd {host}").turn(f"DecoyVsftpd {host}")
        assert game.decoy_placed
        assert game.decoys_on(host) == {"Vsftpd"}


def test_q4_vsftpd_blocks_apache_but_not_the_other_way_round() -> None:
    game = quiet().turn("DecoyVsftpd Op_Host1").turn("DecoyApache Op_Host1")
    assert game.decoys_on("Op_Host1") == {"Vsftpd"}
    game = quiet().turn("DecoyApache Op_Host1").turn("DecoyVsftpd Op_Host1")
    assert game.decoys_on("Op_Host1") == {"Apache", "Vsftpd"}


def test_a_decoy_is_not_seen_as_activity() -> None:
    assert quiet().turn("DecoyApache Op_Host1").seen == 0
