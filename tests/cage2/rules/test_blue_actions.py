"""Blue's actions by data: cut, priced, and one that the challenge does not have."""

from pathlib import Path

import numpy as np
import pytest

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.scenario import HOSTS
from phalanx.cage2.scenario.original_form import in_original_form
from phalanx.cage2.scenario.read import BUILT_IN, read_scenario
from phalanx.errors import ConfigError
from tests.cage2.game import Game, mask


def net_with(tmp_path: Path, lines: str) -> Path:
    """CAGE-2 with more keys."""
    (tmp_path / "net.yaml").write_text(BUILT_IN["cage2"].read_text() + lines)
    return tmp_path / "net.yaml"


def one_game(path: Path, state: Game | None = None) -> Batch:
    batch = Batch(1, red_agent="sleep", scenario=path, num_threads=1)
    if state is not None:
        state.having(red=2, red_plan=2).put_into(batch)
    return batch


def test_actions_are_those_of_the_file_in_its_order(tmp_path: Path) -> None:
    path = net_with(tmp_path, "blue_actions: [Restore, Sleep, Remove]\n")
    batch = one_game(path, Game().session("User1", "root"))
    assert batch.num_actions == 2 * len(HOSTS) + 1
    action = batch.scenario.action_index("Restore", "User1")
    assert action == HOSTS.index("User1")
    batch.play(np.array([action]))
    assert not batch.nets["root"][0] & mask("User1")
    assert batch.shown.rewards[0] == -1


def test_a_shuffle_makes_red_forget_ports(tmp_path: Path) -> None:
    path = net_with(tmp_path, "blue_actions: [Sleep, Shuffle, Restore]\n")
    state = Game().remembers("User1", 21, 22).remembers("User2", 139)
    batch = one_game(path, state)
    batch.play(np.array([batch.scenario.action_index("Shuffle", "User1")]))
    assert batch.nets["ports"][0, HOSTS.index("User1")] == 0
    assert not batch.nets["scanned"][0] & mask("User1")
    assert batch.nets["ports"][0, HOSTS.index("User2")] != 0
    assert batch.shown.rewards[0] == 0


def test_actions_cost_what_the_file_says(tmp_path: Path) -> None:
    path = net_with(tmp_path, "action_costs: {Restore: 0.3, Remove: 2, Sleep: 0.1}\n")
    batch = one_game(path)
    played = (("Restore", "User1"), ("Remove", "User1"), ("Sleep", None), ("Monitor", None))
    costs = []
    for verb, host in played:
        batch.play(np.array([batch.scenario.action_index(verb, host)]))
        costs.append(-float(batch.shown.rewards[0]))
    assert costs == pytest.approx([0.3, 2, 0.1, 0])


def test_memory_shows_the_host_of_an_extra_action_and_no_verb(tmp_path: Path) -> None:
    path = net_with(tmp_path, "blue_actions: [Sleep, Shuffle, Restore]\n")
    batch = Batch(1, red_agent="sleep", scenario=path, observation="history", num_threads=1)
    before = batch.shown.obs[0].copy()
    batch.play(np.array([batch.scenario.action_index("Shuffle", "User4")]))
    changed = np.flatnonzero(batch.shown.obs[0] != before)
    assert len(changed) == 2  # the host, and the time


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("blue_actions: [Restore]\n", "blue_actions: each once, Sleep"),
        ("blue_actions: [Sleep, Dance]\n", "unknown action 'Dance'"),
        ("action_costs: {Dance: 1}\n", "action_costs.Dance"),
        ("action_costs: {Restore: lots}\n", "action_costs.Restore"),
    ],
)
def test_what_is_no_action_is_refused(tmp_path: Path, lines: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_scenario(net_with(tmp_path, lines))


@pytest.mark.parametrize(
    "lines", ["blue_actions: [Sleep, Shuffle]\n", "action_costs: {Remove: 1}\n"]
)
def test_the_original_s_form_cannot_say_all(tmp_path: Path, lines: str) -> None:
    with pytest.raises(ConfigError, match="original"):
        in_original_form(read_scenario(net_with(tmp_path, lines)))
