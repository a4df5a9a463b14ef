"""The rules' tables say what the scenario says."""

import numpy as np
import pytest

from phalanx.cage2.rules.scenario import (
    BEST,
    DECOYS,
    EXPLOIT_PORTS,
    EXPLOIT_RANKS,
    FTP,
    HOSTS,
    HTTP_RFI,
    HTTPS_RFI,
    LISTENING,
    NUM_ACTIONS,
    NUM_LISTENING,
    OPTIONS,
    PLACEABLE,
    SQL,
    action_index,
    action_name,
)
from phalanx.errors import ActionError, ConfigError
from tests import naive


@pytest.mark.parametrize("host", range(len(HOSTS)))
def test_tables_of_ports_and_decoys_agree_with_the_scenario(host: int) -> None:
    for bits in range(256):
        decoys = {d.name for k, d in enumerate(DECOYS) if bits >> k & 1}
        ports = naive.listening_ports(host, decoys)
        assert NUM_LISTENING[host, bits] == len(ports)
        for k, port in enumerate(EXPLOIT_PORTS):
            assert (LISTENING[host, bits] >> k & 1) == (port in ports)
        for k, decoy in enumerate(DECOYS):
            assert (PLACEABLE[host, bits] >> k & 1) == naive.can_place(host, decoy.name, decoys)


def test_the_best_exploit_has_the_highest_rank() -> None:
    for ports in range(1, 256):
        options = [k for k in range(8) if int(OPTIONS[ports]) >> k & 1]
        if options:
            assert EXPLOIT_RANKS[BEST[OPTIONS[ports]]] == max(EXPLOIT_RANKS[k] for k in options)


def test_the_numbers_of_the_rule_book() -> None:
    assert EXPLOIT_RANKS == (2.0, 1.0, 3.0, 4.0, 0.1, 5.0, 6.0, 7.0)
    assert NUM_LISTENING[:, 0].tolist() == [3, 1, 7, 7, 1, 1, 1, 1, 2, 2, 4, 4, 5]
    web = [int(OPTIONS[1 << SQL | 1 << other]) >> SQL & 1 for other in (HTTP_RFI, HTTPS_RFI, FTP)]
    assert web == [1, 1, 0]


def test_actions_are_numbered_as_in_the_challenge() -> None:
    assert NUM_ACTIONS == 145
    assert action_name(0) == "Sleep"
    assert action_name(1) == "Monitor"
    assert action_index("Analyse", "Defender") == 2
    assert action_index("Remove", "Defender") == 15
    assert action_index("DecoyApache", "Defender") == 28
    assert action_index("Restore", "Defender") == 132
    assert action_index("Restore", "User4") == 144
    names = [action_name(action) for action in range(NUM_ACTIONS)]
    assert len(set(names)) == NUM_ACTIONS
    assert [action_index(*name.split()) for name in names] == list(range(NUM_ACTIONS))


def test_unknown_actions_are_named() -> None:
    with pytest.raises(ConfigError, match="did you mean Restore"):
        action_index("restore", "User3")
    with pytest.raises(ConfigError, match="did you mean User3"):
        action_index("Restore", "user3")
    for wrong in (-1, 145):
        with pytest.raises(ActionError, match=r"not one of 0\.\.144"):
            action_name(wrong)


def test_tables_are_small() -> None:
    assert sum(t.nbytes for t in (PLACEABLE, LISTENING, NUM_LISTENING)) < 16 * 1024
    assert np.asarray(BEST).dtype == np.uint8
