"""Attackers of one's own: compiled, with a memory and dice of their own, and stopped when wrong."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import Batch, Cage2VectorEnv
from phalanx.cage2.attack import (
    attacker,
    escalate,
    exploit,
    first_host,
    helper,
    known_hosts,
    knows_system,
    one_of,
    only,
    reroll,
    scan,
    scanned_hosts,
    sleep,
    ssh_brute_force,
    subnet_of,
    succeeded,
    sweep,
    turn,
)
from phalanx.cage2.attack.attacker import Attacker
from phalanx.cage2.attack.find import find_attacker
from phalanx.cage2.rules.own_attackers import FIRST_OWN
from phalanx.cage2.rules.scenario import HOSTS, NUM_ACTIONS
from phalanx.errors import ActionError, ConfigError

LOOKED, TARGET = range(2)


@attacker
def wanderer(net: Any, memory: Any, die: int) -> int:
    """Looks at everything it knows, exploits anything, escalates half of what it gets."""
    if turn(net) == 0:
        return sweep(subnet_of(net, first_host(net)))
    unseen = known_hosts(net) & ~memory[LOOKED]
    if unseen:
        host = one_of(unseen, die)
        memory[LOOKED] |= only(host)
        return scan(host)
    if memory[TARGET] and succeeded(net) and die & 1:
        host = memory[TARGET] - 1
        memory[TARGET] = 0
        if knows_system(net, host):
            return escalate(host)
    host = one_of(scanned_hosts(net), reroll(die))
    memory[TARGET] = host + 1
    return exploit(host)


def actions(turns: int, networks: int) -> Any:
    return np.random.default_rng(5).integers(NUM_ACTIONS, size=(turns, networks))


def played(batch: Batch, turns: int = 150) -> Batch:
    for each in actions(turns, batch.num_envs):
        batch.play(each)
    return batch


def test_it_plays_and_comes_far() -> None:
    batch = played(Batch(64, red_agent=wanderer, seed=1), turns=99)
    assert batch.red_agents[-1] == "wanderer"
    assert (batch.nets["red"] == FIRST_OWN).all()
    assert batch.shown.access[:, HOSTS.index("User1")].any()
    assert (batch.nets["rooted"] + batch.nets["stuck"]).max() > 2  # sessions pile up on a host
    assert batch.nets["tenths"].min() < -100


def test_its_memory_is_empty_when_an_episode_begins() -> None:
    batch = played(Batch(8, red_agent=wanderer, horizon=20, seed=1), turns=19)
    assert batch.nets["memory"][:, LOOKED].all()
    batch.play(actions(1, 8)[0])
    assert not batch.nets["memory"].any()


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    one, three = (played(Batch(400, red_agent=wanderer, seed=3, num_threads=n)) for n in (1, 3))
    assert np.array_equal(one.nets, three.nets)


def test_a_saved_game_goes_on_exactly() -> None:
    batch = played(Batch(32, red_agent=wanderer, seed=2), turns=37)
    saved = batch.save()
    other = Batch(32, red_agent=wanderer, seed=99)
    other.restore(saved)
    assert other.nets["memory"].any()
    assert np.array_equal(played(batch).nets, played(other).nets)


def test_a_saved_game_holds_no_impossible_sets() -> None:
    saved = Batch(2, red_agent=wanderer).save()
    saved["nets"]["oldest_root"] = 0xFFFF
    with pytest.raises(ConfigError, match="oldest_root"):
        Batch(2, red_agent=wanderer).restore(saved)


def test_a_batch_that_is_sent_elsewhere_finds_its_attacker_again() -> None:
    batch = Batch(4, red_agent=f"{__name__}:wanderer", seed=2)
    batch.worlds["attackers"] = 0  # of another process, where code lies elsewhere
    again = pickle.loads(pickle.dumps(batch))
    assert again.worlds["attackers"][0, 0] == wanderer.address(batch.nets.dtype)
    fresh = Batch(4, red_agent=wanderer, seed=2)
    assert np.array_equal(played(again).nets, played(fresh).nets)


def test_dice_that_it_looks_at_change_no_other_die() -> None:
    @attacker
    def looks(net: Any, memory: Any, die: int) -> int:
        memory[0] = reroll(reroll(die))
        return sweep(2) if turn(net) == 0 else scan(8 + turn(net) % 5)

    @attacker
    def does_not(net: Any, memory: Any, die: int) -> int:
        return sweep(2) if turn(net) == 0 else scan(8 + turn(net) % 5)

    one, other = (played(Batch(16, red_agent=each, seed=4)) for each in (looks, does_not))
    assert np.array_equal(one.nets["seen"], other.nets["seen"])
    assert (one.nets["memory"][:, 0] != other.nets["memory"][:, 0]).all()
    assert len(set(one.nets["memory"][:, 0])) == 16


def test_it_plays_in_a_mixture_with_others() -> None:
    batch = Batch(600, red_agent={"meander": 0.5, wanderer: 0.5}, seed=1)
    share = (batch.nets["red"] == FIRST_OWN).mean()
    assert 0.4 < share < 0.6
    meander = Batch(600, red_agent="meander", seed=1)
    played(batch, 40), played(meander, 40)
    same = batch.nets["red"] != FIRST_OWN
    for name in ("seen", "tenths", "sessions", "root", "known", "exploited"):
        assert np.array_equal(batch.nets[name][same], meander.nets[name][same])


def test_each_network_can_have_its_own() -> None:
    batch = Batch(3, red_agent=["b_line", wanderer, "sleep"])
    assert batch.nets["red"].tolist() == [0, FIRST_OWN, 2]


def test_a_vector_env_and_gymnasium_take_it() -> None:
    import gymnasium

    name = f"{__name__}:wanderer"
    envs = Cage2VectorEnv(4, red_agent=name, seed=1, observation="belief")
    envs.reset()
    envs.step(np.zeros(4, np.int64))
    env = gymnasium.make("phalanx/Cage2-v0", red_agent=wanderer, render_mode="ansi")
    env.reset(seed=1)
    env.step(0)
    assert "red agent wanderer" in str(env.render())


# --- named in a file ------------------------------------------------------------------------------

HEAD = "from phalanx.cage2.attack import *\n"


def written(folder: Path, body: str) -> str:
    """The name of the attacker `red` in a file of its own."""
    file = folder / "my_red.py"
    file.write_text(HEAD + body)
    return f"{file}:red"


def test_a_file_is_named_with_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "my_moves.py").write_text(HEAD + "@helper\ndef nap():\n    return sleep()\n")
    body = "from my_moves import nap\n@attacker\ndef red(net, memory, die):\n    return nap()\n"
    name = written(tmp_path, body)
    assert played(Batch(4, red_agent=name)).nets["tenths"].max() <= 0
    assert find_attacker(name) is find_attacker(name)


DEF = "@attacker\ndef red(net, memory, die):\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (DEF + "    return scann(1)\n", r"my_red\.py, line 4: .*name 'scann' is not defined"),
        (DEF + "    x = 1\n    return scan(net.decoys[0])\n", r"my_red\.py, line 5: .*net\.decoys"),
        (DEF + "    if turn(net): return sleep()\n", r"my_red\.py, line 2: .*always return a move"),
        (DEF + "    return 'scan'\n", r"my_red\.py, line \d: "),
        ("def f(x): return x\n" + DEF + "    return scan(f(1))\n", "line 5: .*f, .*@helper"),
        ("@attacker\ndef red(net):\n    return sleep()\n", r"takes \(net\); it must take"),
        ("def red(net, memory, die):\n    return sleep()\n", "is no attacker; decorate"),
        ("@attacker(impossible='cry')\ndef red(a, b, c): pass\n", "impossible"),
    ],
)
def test_what_cannot_be_compiled_is_said_in_one_line(body: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said) as told:
        Batch(1, red_agent=written(tmp_path, body))
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("scan(7)", "red (my_red.py) played DiscoverNetworkServices on Op_Server0 in turn 1: red"),
        ("sweep(0)", "DiscoverRemoteSystems on Enterprise in turn 1: red does not know"),
        ("sweep(9)", "on subnet 9 in turn 1; subnets have the numbers 0 to 2"),
        ("exploit(13)", "on host 13 in turn 1; hosts have the numbers 0 to 12"),
        ("escalate(9)", "PrivilegeEscalate on User1 in turn 1: red has had no session there"),
        ("impact(7)", "Impact on Op_Server0 in turn 1: red has had no session there"),
        ("exploit_first(8, 99)", "which is no move"),
        ("77777", "which is no move"),
        ("memory[8]", "stopped in turn 1 with IndexError: index 8 is out of bounds"),
        ("1 // memory[0]", "stopped in turn 1 with FloatingPointError: divide by zero"),
    ],
)
def test_an_impossible_move_stops_the_game(body: str, said: str, tmp_path: Path) -> None:
    batch = Batch(3, red_agent=written(tmp_path, DEF + f"    return {body}\n"))
    with pytest.raises(ActionError) as told:
        batch.play(np.zeros(3, np.int64))
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_what_the_original_cannot_do_stops_the_game() -> None:
    @attacker
    def hasty(net: Any, memory: Any, die: int) -> int:
        if turn(net) == 0:
            return sweep(2)
        return ssh_brute_force(9) if turn(net) == 1 else escalate(9)

    batch = Batch(1, red_agent=hasty)
    with pytest.raises(ActionError, match=r"User1 in turn 3: .*operating system"):
        played(batch, 3)


def test_an_impossible_move_counts_as_sleep_if_asked() -> None:
    @attacker(impossible="sleep")
    def blind(net: Any, memory: Any, die: int) -> int:
        return scan(7)

    batch = played(Batch(3, red_agent=blind))
    sleeping = played(Batch(3, red_agent="sleep"))
    assert np.array_equal(batch.nets["seen"], sleeping.nets["seen"])
    assert (batch.nets["succeeded"] == 2).all()


@pytest.mark.parametrize("given", ["nowhere.py:red", "no_such_module:red", f"{__name__}:nobody"])
def test_what_is_not_there_is_said(given: str) -> None:
    with pytest.raises(ConfigError, match=r"nowhere|no_such_module|nobody"):
        Batch(1, red_agent=given)


def test_what_needs_to_foresee_it_refuses_it() -> None:
    from phalanx.bound.config import BoundConfig
    from phalanx.training.config import TrainConfig
    from phalanx.ui.live_game import GameSettings

    name = "my_file.py:my_red"
    with pytest.raises(ConfigError, match="belief foresees"):
        Batch(1, prior=f"b_line=0.5,{name}=0.5", observation="belief")
    with pytest.raises(ConfigError, match="belief foresees"):
        TrainConfig(prior=f"b_line=0.5,{name}=0.5")
    with pytest.raises(ConfigError, match="bound foresees"):
        BoundConfig(red_agent=(name,))
    with pytest.raises(ConfigError, match="a page names no code"):
        GameSettings(red_agent=name)
    with pytest.raises(ConfigError, match="cannot be foreseen"):
        Batch(1, red_agent=wanderer, observation="truth")


def test_an_attacker_can_be_tried_by_hand() -> None:
    @helper
    def twice(x: int) -> int:
        return 2 * x

    @attacker
    def red(net: Any, memory: Any, die: int) -> int:
        """Sleeps."""
        return sleep() if twice(die) else scan(0)

    assert isinstance(red, Attacker)
    assert red.__doc__ == "Sleeps."
    assert red(None, None, 1) == 0  # type: ignore[arg-type]


# --- the examples ---------------------------------------------------------------------------------

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples" / "attackers"


@pytest.mark.parametrize("name", ["again", "ssh", "quiet"])
def test_examples_play_in_other_networks_too(name: str) -> None:
    scenario = EXAMPLES.parent.parent / "tests" / "scenarios" / "more_users.yaml"
    batch = Batch(16, red_agent=f"{EXAMPLES / name}.py:{name}", scenario=scenario, horizon=60)
    dice = np.random.default_rng(0)
    for _ in range(61):
        batch.play(dice.integers(batch.num_actions, size=16))
    assert batch.shown.returns.mean() < -5


def test_it_plays_in_many_networks_at_once() -> None:
    many = "random:seed=1,users=3-7,networks=6"  # of up to 17 hosts, as more_users.yaml has
    batch = Batch(64, red_agent=wanderer, scenario=many, horizon=40, seed=1)
    dice = np.random.default_rng(0)
    for _ in range(120):
        batch.play(dice.integers(batch.num_actions, size=64))
    assert len(set(batch.nets["world"].tolist())) > 3
    assert batch.shown.returns.mean() < -5
