"""Defenders of one's own: every interface that users bring, scored as the built-in ones are."""

import json
import re
import warnings
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

import phalanx
from phalanx.cage2 import Cage2VectorEnv, make_defender
from phalanx.cage2.cyborg import CyborgAgent
from phalanx.cage2.rules.scenario import NUM_ACTIONS, action_index
from phalanx.cage2.settings import DEFAULT_RED_AGENTS
from phalanx.cli.commands import main
from phalanx.errors import ActionError, CheckpointError, ConfigError
from phalanx.play.trained import load_defender
from phalanx.training.checkpoint import load_checkpoint, save_checkpoint
from phalanx.training.config import TrainConfig

FEW: dict[str, Any] = {"red_agent": "meander", "horizon": (10, 30), "episodes": 40, "seed": 3}
RESTORE = action_index("Restore", "User1")


def means(defender: Any, **settings: Any) -> list[float]:
    return [cell.mean for cell in phalanx.evaluate(defender, **{**FEW, **settings}).cells]


def by_turn(turn: int) -> int:
    """What the defenders below play: it depends on the turn alone, so that mixing would show."""
    return RESTORE if turn % 7 == 2 else action_index("Analyse", "User2")


class Blue:
    """No reset: made anew for each episode."""

    def __init__(self) -> None:
        self.turn = 0

    def act(self, obs: Any) -> int:
        assert obs.shape == (52,)
        self.turn += 1
        return by_turn(self.turn)


class WithReset(Blue):
    made: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        self.made.append(self)

    def reset(self) -> None:
        self.turn = 0


class Batched:
    batched = True

    def reset(self) -> None:
        self.turn = 0

    def act(self, obs: Any, action_masks: Any) -> Any:
        assert obs.shape[1:] == (52,)
        assert action_masks.shape == (len(obs), NUM_ACTIONS)
        self.turn += 1
        return np.full(len(obs), by_turn(self.turn))


class OfTheOriginal:
    """As the challenge's evaluation script knows agents."""

    def __init__(self) -> None:
        self.turn = 0

    def get_action(self, observation: Any, action_space: Any) -> int:
        assert observation.shape == (52,)
        assert observation.dtype == np.int64
        assert action_space == NUM_ACTIONS
        self.turn += 1
        return by_turn(self.turn)

    def end_episode(self) -> None:
        self.turn = 0

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        raise AssertionError("the challenge's script does not call it")

    train = set_initial_values


class Recurrent:
    """As Stable-Baselines3 and its contributions have models: many at once, with a state."""

    observation_space = gymnasium.spaces.Box(0, 1, (52,))

    def predict(
        self, obs: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> Any:
        assert deterministic
        assert episode_start.all() == (state is None)
        state = np.zeros(len(obs), np.int64) if state is None else state
        return np.array([by_turn(turn + 1) for turn in state]), state + 1


def make_blue() -> WithReset:
    return WithReset()


KINDS = [
    Blue,
    WithReset,
    WithReset(),
    make_blue,
    Batched,
    Batched(),
    OfTheOriginal,
    OfTheOriginal(),
    Recurrent,
    Recurrent(),
]


@pytest.mark.parametrize("own", KINDS, ids=[f"kind{k}" for k in range(len(KINDS))])
def test_every_interface_plays_the_same_episodes(own: Any) -> None:
    assert means(own) == means(Blue, episodes=40)
    assert means(own)[1] < means("react-restore")[1]


def test_one_that_can_be_reset_is_made_once() -> None:
    WithReset.made.clear()
    means(WithReset)
    assert len(WithReset.made) == 1


def test_a_function_of_an_observation_is_a_defender() -> None:
    assert means(lambda obs: 0) == means("sleep")

    def of_many(obs: Any) -> Any:
        return np.zeros(len(obs), np.int64)

    of_many.batched = True  # type: ignore[attr-defined]
    assert means(of_many) == means("sleep")


def test_our_own_defenders_can_be_given_as_objects() -> None:
    for name in ("react-restore", "sleep"):
        own = make_defender(name)
        assert means(own) == means(name)
        assert means(own) == means(name)  # it begins anew
    assert means(load_defender("champion")) == means("champion")
    agent = CyborgAgent(load_defender("champion"))
    assert means(agent, episodes=5) == pytest.approx(means("champion", episodes=5))


@pytest.mark.parametrize("kind", ["bits", "history", "memory", "belief"])
def test_a_defender_is_shown_what_it_declares(kind: str) -> None:
    shown = []

    class Declares(Blue):
        observation, horizon = kind, 100

        def act(self, obs: Any, action_mask: Any = None) -> int:
            shown.append((obs.copy(), action_mask.copy()))
            return by_turn(len(shown))

    means(Declares, episodes=2, horizon=5)
    envs = Cage2VectorEnv(1, red_agent="meander", observation=kind, seed=FEW["seed"])
    obs, _ = envs.reset()
    for turn in range(5):
        assert np.array_equal(shown[turn][0], obs[0])
        assert np.array_equal(shown[turn][1], envs.action_masks()[0])
        obs = envs.step(np.array([by_turn(turn + 1)]))[0]


# --- the page about defenders ---------------------------------------------------------------------


def test_the_snippets_of_the_docs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but that of Stable-Baselines3, which trains for minutes."""
    page = Path(__file__).parents[2] / "docs" / "defenders.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (mine,) = [block for block in blocks if block.startswith("# mine.py")]
    (tmp_path / "mine.py").write_text(mine)
    monkeypatch.syspath_prepend(tmp_path)
    assert means("mine:Blue")[1] > means("sleep")[1]
    others = [block for block in blocks if block != mine and "stable_baselines3" not in block]
    assert len(others) == 3
    for block in others:
        exec(block, {})


# --- Stable-Baselines3 ----------------------------------------------------------------------------


def test_an_sb3_model_is_scored_in_the_nine_cells() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    import torch

    from phalanx.cage2.sb3 import Cage2VecEnv

    torch.set_num_threads(1)  # several would wait for each other on a busy machine
    envs = Cage2VecEnv(4, observation="history")
    model = sb3.PPO("MlpPolicy", envs, n_steps=16, device="cpu", seed=1)
    scores = phalanx.evaluate(model, leaderboard=True, episodes=4)
    assert len(scores.cells) == 9
    assert scores.total == sum(cell.mean for cell in scores.cells) < 0
    assert "CardiffUni" in repr(scores)
    assert "PPO" in repr(scores)
    drawn = phalanx.evaluate(model, sample=True, episodes=4, red_agent="meander", horizon=100)
    assert drawn.cells[0].mean != scores.cells[5].mean


# --- the call -------------------------------------------------------------------------------------


def test_the_call_tells_as_much_as_the_command(tmp_path: Path) -> None:
    scores = phalanx.evaluate(["champion", WithReset, WithReset(), "sleep"], **FEW)
    assert scores.names == ("champion", "WithReset", "WithReset 2", "sleep")
    assert scores.totals["sleep"] == sum(cell.mean for cell in scores.cells[-2:])
    with pytest.raises(ConfigError, match="see totals"):
        print(scores.total)
    assert json.loads(scores.to_json()) == scores.as_dict()
    report = tmp_path / "cells.json"
    flags = f"--red-agent meander --horizon 10 30 --episodes 40 --seed 3 --json {report}"
    assert main(["evaluate", "champion", f"{__name__}:WithReset", "sleep", *flags.split()]) == 0
    written = json.loads(report.read_text())
    assert list(written["totals"]) == ["champion", f"{__name__}:WithReset", "sleep"]
    assert list(written["totals"].values()) == [
        scores.totals[name] for name in ("champion", "WithReset 2", "sleep")
    ]
    assert written["total"] is None


def test_a_run_in_memory_is_its_folder(tmp_path: Path) -> None:
    run = phalanx.train(
        TrainConfig(
            num_envs=20,
            total_episodes=40,
            hidden=(8,),
            rules="2.1-final",
            output_dir=tmp_path,
            name="run",
        )
    )
    assert callable(phalanx.evaluate)
    scores = phalanx.evaluate(run, **FEW)
    assert scores.config.rules == "2.1-final"
    assert [c.mean for c in scores.cells] == means(tmp_path / "run") == means(str(tmp_path / "run"))


def test_no_defender_is_refused() -> None:
    with pytest.raises(ConfigError, match="one or more"):
        phalanx.evaluate([])


# --- what a policy was trained for ----------------------------------------------------------------


def test_other_rules_than_those_of_the_training_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = "champion was trained under 2.1-leaderboard and is played under 2.1-final"
    flags = "--rules 2.1-final --episodes 2 --horizon 3"
    for command in ("evaluate", "explain"):
        assert main([command, "champion", *flags.split()]) == 0
        assert capsys.readouterr().err == f"phalanx: {line}\n"
    with pytest.warns(UserWarning, match=line):
        phalanx.evaluate("champion", rules="2.1-final", episodes=2, horizon=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        phalanx.evaluate("champion-final", episodes=2, horizon=3)

        class Declares(Blue):
            rules = "2.1-final"

        with pytest.raises(UserWarning, match=r"Declares was trained under 2.1-final"):
            phalanx.evaluate([Declares, "sleep"], episodes=2, horizon=3)


def test_a_policy_says_which_environment_it_knows() -> None:
    defender = load_defender("champion-final")
    assert defender.env_settings == {
        "observation": "belief",
        "horizon": 100,
        "rules": "2.1-final",
        "prior": DEFAULT_RED_AGENTS,
    }
    envs = Cage2VectorEnv(3, **defender.env_settings)
    obs, _ = envs.reset()
    assert defender.act(obs, masks=envs.action_masks()).shape == (3,)
    bits, _ = Cage2VectorEnv(3).reset()
    wanted = r"sees belief \(456 numbers\), got 52 = bits; make .* observation='belief'"
    with pytest.raises(ConfigError, match=wanted):
        defender.act(bits, masks=envs.action_masks())
    with pytest.raises(ConfigError, match=r"got 60;"):
        defender.act(np.zeros((3, 60), np.float32))
    with pytest.raises(ConfigError, match=r"must be \[networks, 456\]"):
        defender.act(obs[0])
    with pytest.raises(ConfigError, match="got 172 = history"):
        CyborgAgent(defender, observation="history").get_action(np.zeros(52))


# --- what cannot work -----------------------------------------------------------------------------


class NeedsMore:
    def __init__(self, path: str) -> None:
        self.path = path

    def act(self, obs: Any) -> int:
        return 0


class Fails:
    def __init__(self) -> None:
        raise FileNotFoundError("weights.pt")


class SeesOther:
    observation_space = gymnasium.spaces.Box(0, 1, (60,))

    def predict(self, obs: Any) -> Any:
        return obs


class OfAnotherKind(Blue):
    observation = "histroy"


class Curious:
    def reset(self, obs: Any) -> None: ...

    def act(self, obs: Any) -> int:
        return 0


nothing = object()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_such_module:Blue", "cannot find the defender no_such_module:Blue"),
        (f"{__name__}:Bleu", "cannot find the defender"),
        (f"{__name__}:", "cannot find the defender"),
        (":Blue", "cannot find the defender"),
        (f"{__name__}:NeedsMore", "cannot be made without arguments; give a function"),
        (f"{__name__}:Fails", "cannot be made (FileNotFoundError: weights.pt)"),
        (f"{__name__}:Curious", "its reset needs obs; a defender's reset() is told nothing"),
        (f"{__name__}:nothing", "cannot be asked for actions; a defender has act(obs)"),
        (f"{__name__}:SeesOther", "CAGE-2 has bits (52 numbers), history"),
        (f"{__name__}:OfAnotherKind", "did you mean history?"),
        ("blue", "or module:factory of your own"),
    ],
)
def test_what_is_no_defender_gets_one_line(
    name: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("evaluate", "explain"):
        assert main([command, name, "--episodes", "2"]) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1


@pytest.mark.parametrize("answer", [145, -1, 3.0, "Sleep", None, [1, 2], np.zeros(0, int)])
def test_an_answer_that_is_no_action_is_named(answer: Any) -> None:
    class Odd:
        def act(self, obs: Any) -> Any:
            return answer

    with pytest.raises(ActionError, match="Odd answered an observation with"):
        means(Odd)


def test_only_policies_with_probabilities_are_sampled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "champion", "sleep", "--sample", "--episodes", "2"]) == 2
    assert "sleep has no probabilities to draw from" in capsys.readouterr().err


def test_a_defender_of_the_current_folder_is_found_because_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_own_blue.py").write_text("def Blue():\n    return lambda obs: 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    flags = "--episodes 2 --horizon 3 --red-agent sleep"
    assert main(["evaluate", "my_own_blue:Blue", *flags.split()]) == 0
    assert "my_own_blue:Blue" in capsys.readouterr().out
    assert main(["explain", "my_own_blue:Blue", *flags.split()]) == 0
    assert "my_own_blue:Blue against sleep: mean return 0.00" in capsys.readouterr().out


# --- runs of CAGE-2 as an environment -------------------------------------------------------------


@pytest.mark.parametrize("learner", ["compiled", "torch"])
def test_a_run_on_the_registered_environment_is_one_of_cage2(
    tmp_path: Path, learner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = phalanx.train(
        TrainConfig(
            env="phalanx/Cage2-v0",
            num_envs=4,
            num_workers=0,
            total_steps=256,
            update_steps=16,
            minibatch_size=64,
            hidden=(8,),
            learner=learner,
            output_dir=tmp_path,
            name="run",
        )
    )
    folder = str(tmp_path / "run")
    assert main(["evaluate", folder, "sleep", "--leaderboard", "--episodes", "4"]) == 0
    out = capsys.readouterr().out
    assert out.count("all nine") == 2
    assert "CardiffUni" in out
    defender = load_defender(folder)
    assert defender.env_settings == {
        "observation": "bits",
        "horizon": 100,
        "rules": "2.1-leaderboard",
    }
    assert means(run) == means(folder)
    assert main(["explain", folder, "--episodes", "2", "--horizon", "3"]) == 0


# --- a file never decides what code runs ----------------------------------------------------------


@pytest.fixture
def tampered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file of the champion's with other settings, beside code that must not run."""
    code = "open('ran', 'w')\ndef make(*_):\n    open('ran', 'w')\n"
    (tmp_path / "helper.py").write_text(code)
    monkeypatch.chdir(tmp_path)

    def write(**changes: Any) -> str:
        arrays, facts = load_checkpoint(Path(phalanx.__file__).parent / "agents" / "champion.npz")
        facts["config"] = {**facts["config"], **changes}
        save_checkpoint(tmp_path / "sent.npz", arrays, facts)
        return "sent.npz"

    yield write
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("env", ["helper:make", "http.server:test", "helper:Env-v0", "NoSuch-v0"])
def test_a_file_cannot_name_an_environment(
    tampered: Any, env: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tampered(env=env)
    assert main(["evaluate", file, "--episodes", "2"]) == 2
    error = capsys.readouterr().err
    assert env in error
    assert f"--env {env}" in error
    assert error.count("\n") == 1
    assert main(["explain", file, "--episodes", "2"]) == 2
    assert f"trained on {env}; explain tells of defenders of cage2" in capsys.readouterr().err
    assert main(["export", file, "again.npz"]) == 0
    with pytest.raises(CheckpointError, match=env):
        load_defender(file)
    with pytest.raises(ConfigError, match=env):
        phalanx.evaluate(file, episodes=2)


def test_a_file_cannot_name_a_network(tampered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tampered(network="helper:make")
    for command in ("evaluate", "explain"):
        assert main([command, file, "--episodes", "2"]) == 2
        error = capsys.readouterr().err
        assert "names the network 'helper:make'" in error
        assert "--network helper:make" in error
        assert error.count("\n") == 1
    with pytest.raises(ConfigError, match="helper:make"):
        load_defender(file)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden": [10**9]},
        {"hidden": [10**15, 10**15]},
        {"observation": "history"},
        {"critic_truth": True},
        {"env": "CartPole-v1", "hidden": [10**9]},
        {"env": "phalanx/Cage2-v0", "hidden": [10**9]},
        {"env": "phalanx/Cage2-v0", "learner": "torch", "hidden": [10**9]},
        {"env": "CartPole-v1", "learner": "torch", "hidden": [10**9]},
    ],
)
def test_sizes_are_compared_before_a_network_is_built(
    tampered: Any, changes: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tampered(**changes)
    assert main(["evaluate", file, "--episodes", "2"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "hidden" in error or "the weights do not fit" in error


def test_an_environment_of_ones_own_is_evaluated_when_it_is_named_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{__name__}:make_pole"
    run = phalanx.train(
        TrainConfig(
            env=name,
            num_envs=4,
            num_workers=0,
            total_steps=256,
            update_steps=16,
            minibatch_size=64,
            hidden=(8,),
            output_dir=tmp_path,
            name="run",
        )
    )
    folder = str(tmp_path / "run")
    assert main(["evaluate", folder, "--episodes", "4"]) == 2
    assert f"--env {name}" in capsys.readouterr().err
    assert main(["evaluate", folder, "--episodes", "4", "--env", name]) == 0
    line = capsys.readouterr().out.strip()
    assert line.startswith(f"{name}: return")
    assert repr(phalanx.evaluate(run, episodes=4)) == line
    assert main(["evaluate", folder, "sleep", "--episodes", "4", "--env", name]) == 2
    assert "evaluate them one by one" in capsys.readouterr().err
    assert main(["evaluate", "sleep", "--env", name]) == 2
    assert "--env is for policies of other environments" in capsys.readouterr().err


def make_pole() -> Any:
    return gymnasium.make("CartPole-v1")
