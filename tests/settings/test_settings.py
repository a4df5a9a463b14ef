"""Settings: from flags, files and Python alike, each of its kind and in its range, or one line."""

import dataclasses
import math
import os
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from phalanx.bench.config import BenchConfig
from phalanx.cli.commands import COMMANDS, main
from phalanx.errors import ConfigError
from phalanx.search.config import SearchConfig
from phalanx.settings.fields import Above, Within, effective, hints_of, without_effect
from phalanx.settings.flags import from_file, from_flags
from phalanx.training.config import TrainConfig
from phalanx.trust import asked_again

CONFIGS = [command.config for command in COMMANDS.values()]


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return file


# --- ranges ---------------------------------------------------------------------------------------


def numbers(config: type) -> list[tuple[str, Any]]:
    """The fields that hold numbers, with what is noted beside them."""
    found = []
    for name, (hint, notes) in hints_of(config).items():
        kinds = {hint, *typing.get_args(hint)}
        if kinds & {int, float}:
            found.append((name, notes))
    return found


@pytest.mark.parametrize("config", CONFIGS)
def test_every_number_has_a_range(config: type) -> None:
    for name, notes in numbers(config):
        assert any(isinstance(note, Within) for note in notes), f"{config.__name__}.{name}"


@pytest.mark.parametrize(("name", "notes"), numbers(TrainConfig))
def test_a_number_out_of_its_range_is_refused_whoever_gives_it(
    name: str, notes: Any, tmp_path: Path
) -> None:
    made: Any = TrainConfig
    many = typing.get_origin(hints_of(TrainConfig)[name][0]) is tuple
    (span,) = (note for note in notes if isinstance(note, Within))
    below = span.low if isinstance(span, Above) else span.low - 1
    for value in (below, span.high * 2 + 1, math.nan, math.inf, -math.inf):
        with pytest.raises(ConfigError, match=f"^{name} must be"):
            made(**{name: (value,) if many else value})
        text = str(int(value) if value == value and abs(value) < math.inf else value)
        with pytest.raises(ConfigError, match=f"{name}|{name.replace('_', '-')}"):
            made(**from_file(TrainConfig, write(tmp_path, f"{name}: '{text}'")))
    wrongs: list[Any] = ["x", True, [1, "a"], {}, 10**400, b"1", None]
    for wrong in wrongs:
        if wrong is None and TrainConfig.__dataclass_fields__[name].default is None:
            continue
        with pytest.raises(ConfigError, match=name):
            made(**{name: wrong})


def test_defaults_are_within_their_ranges() -> None:
    for config in (TrainConfig(), TrainConfig(env="CartPole-v1"), SearchConfig(), BenchConfig()):
        given = {item.name: getattr(config, item.name) for item in dataclasses.fields(config)}
        assert type(config)(**given) == config


@pytest.mark.parametrize(("algo", "steps"), [("ppo", 128), ("impala", 32), ("a3c", 8)])
def test_each_algorithm_has_the_length_of_rollouts_that_was_measured(algo: str, steps: int) -> None:
    assert TrainConfig(env="CartPole-v1", algo=algo).update_steps == steps
    assert algo == "a3c" or TrainConfig(algo=algo).update_steps == 100


@pytest.mark.parametrize("config", CONFIGS)
def test_settings_stay_as_they_were_checked(config: type) -> None:
    for name in hints_of(config):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(object.__new__(config), name, None)


def test_whole_numbers_stay_whole() -> None:
    config = TrainConfig(total_episodes=1e5, seed=np.int64(7), hidden=[8, np.int32(9)])  # type: ignore[arg-type]
    assert (config.total_episodes, config.seed, config.hidden) == (100_000, 7, (8, 9))
    assert {type(value) for value in (config.total_episodes, config.seed, *config.hidden)} == {int}
    assert type(TrainConfig(gamma=1).gamma) is float
    wrongs: list[Any] = [{"seed": 1.5}, {"hidden": (1.5,)}, {"total_episodes": True}]
    for wrong in wrongs:
        with pytest.raises(ConfigError, match="must be a whole number"):
            TrainConfig(**wrong)


def test_names_hold_no_nul_and_are_short() -> None:
    for value in ("a\0b", "x" * 20_000):
        with pytest.raises(ConfigError, match="env is too long, or has a character"):
            TrainConfig(env=value)
        with pytest.raises(ConfigError, match="output_dir is too long"):
            TrainConfig(output_dir=Path(value))


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc"])
def test_a_run_is_named_not_placed(name: str) -> None:
    with pytest.raises(ConfigError, match="is no folder's name"):
        TrainConfig(name=name)


@pytest.mark.parametrize("env", [":a", "a:", ":", ""])
def test_an_environment_has_a_name(env: str) -> None:
    with pytest.raises(ConfigError, match="give cage2, cyborg, a Gymnasium id"):
        TrainConfig(env=env)


# --- slips that are understood --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ("--total-episodes 1e5", {"total_episodes": 100_000}),
        ("--episodes 100_000", {"total_episodes": 100_000}),
        ("--steps 2e6", {"total_steps": 2_000_000}),
        ("--lr 3e-4", {"learning_rate": 3e-4}),
        ("--n-envs 64", {"num_envs": 64}),
        ("--num-envs 6.4e1", {"num_envs": 64}),
        ("--hidden 64x32", {"hidden": (64, 32)}),
        ("--overlap", {"overlap": True}),
        ("--critic-truth no", {"critic_truth": False}),
        ("--critic-truth 0", {"critic_truth": False}),
        ("--overlap yes", {"overlap": True}),
        ("--overlap 1", {"overlap": True}),
    ],
)
def test_what_people_write_is_understood(flags: str, settings: dict[str, Any]) -> None:
    config = parsed("train", flags)
    assert {name: getattr(config, name) for name in settings} == settings


def parsed(command: str, flags: str) -> Any:
    """The settings that a command line gives; nothing is run."""
    found: list[Any] = []

    def keep(config: Any) -> int:
        found.append(config)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"phalanx.cli.{command}.main", keep)
        assert main([command, *flags.split()]) == 0
    return found[0]


def test_other_names_are_understood_in_python_and_in_files(tmp_path: Path) -> None:
    config = TrainConfig(n_envs=64, lr=1e-4)  # type: ignore[call-arg]
    assert (config.num_envs, config.learning_rate) == (64, 1e-4)
    file = write(tmp_path, "n-envs: 64\nlr: 1e-4\nepisodes: 1e5\n")
    assert from_file(TrainConfig, file) == {
        "num_envs": 64,
        "learning_rate": 1e-4,
        "total_episodes": 100_000,
    }
    with pytest.raises(ConfigError, match="num_envs is given twice, once as num_envs"):
        TrainConfig(n_envs=64, num_envs=64)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="num_envs is given twice, once as n_envs"):
        from_file(TrainConfig, write(tmp_path, "num_envs: 64\nn_envs: 64\n"))
    with pytest.raises(ConfigError, match="there is no setting 'gama'; did you mean gamma"):
        TrainConfig(gama=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        ("train --learnig-rate 1", "did you mean --learning-rate?"),
        ("train --profile", "see phalanx train --help"),
        ("train --sparse-true-states 1", "see phalanx train --help"),
        ("train --gp-beta 1", "it is one of phalanx search"),
        ("train --max-episodes 1", "did you mean --episodes?"),
    ],
)
def test_hints_point_to_what_may_have_been_meant(
    flags: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags.split()) == 2
    said = capsys.readouterr().err
    assert said.endswith(hint + "\n")
    assert said.count("\n") == 1


# --- files ----------------------------------------------------------------------------------------


def test_a_config_file_gives_back_what_a_run_has_written(tmp_path: Path) -> None:
    config = TrainConfig(
        env="CartPole-v1", hidden=(8,), condition=(0.5, -1e-7), target_kl=1e-5, name="x"
    )
    file = write(tmp_path, yaml.safe_dump(config.as_dict(), sort_keys=False))
    assert TrainConfig(**from_file(TrainConfig, file)).as_dict() == config.as_dict()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seed: 1\ngamma: 0.9\nseed: 2\n", "'seed' is given twice, in lines 1 and 3"),
        ("num-envs: 1\nnum_envs: 2\n", "'num_envs' is given twice, in lines 1 and 2"),
        ("a: &a [x, x]\nhidden: [*a, *a]\n", "line 1: settings have no & and no !"),
        ("hidden: *a\n", "undefined alias|line 1: settings are"),
        ("seed: !!python/object/apply:os.getcwd []\n", "line 1: settings have no & and no !"),
        ("seed: !!int 5\n", "line 1: settings have no & and no !"),
        ("hidden: [[64], 64]\n", "line 1: settings are `name: value` lines"),
        ("gamma: {a: 1}\n", "line 1: settings are `name: value` lines"),
        ("- seed\n", "line 1: settings are"),
        ("seed\n", "line 1: settings are"),
        ("", "line 1: settings are"),
        ("seed: 1\n---\nseed: 2\n", "line 2: settings are"),
        ("hidden: " + "[" * 50_000, "line 1: settings are"),
        ("hidden: [" + "1," * 2000 + "]", "a list has 256 values at most"),
        ("x: " + "y" * 70_000, "more than the 65536 bytes"),
        ("seed: 'a\0b'\n", "is not YAML"),
        ("seed: \xff\n".encode("latin1"), "is not YAML"),
        ("seed: [1\n", "is not YAML"),
        ("seed: 190:20:30\n", "'190:20:30' is not a whole number"),
        ("seed: 1.5\n", "'1.5' is not a whole number"),
        ("seed: " + "9" * 5000 + "\n", "is not a whole number"),
        ("seed: .inf\n", "'.inf' is not a whole number"),
        ("gamma: .nan\n", "'.nan' is not a number"),
        ("gamma: nan\n", "'nan' is not a number"),
        ("total_episodes: true\n", "'true' is not a whole number"),
        ("hidden: [1.5]\n", "'1.5' is not a whole number"),
        ("gamma: [0.9, 0.8]\n", "takes one value, got a list of 2"),
        ("seed: [1]\n", "takes one value, got a list of 1"),
        ("resume: x\n", "resume is a flag, not a setting of a file"),
        ("config: x.yaml\n", "config is a flag, not a setting of a file"),
        ("no_such_thing: 1\n", "there is no setting 'no_such_thing'; see --help"),
    ],
)
def test_a_file_of_settings_holds_settings(text: str | bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=says) as error:
        from_file(TrainConfig, file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_nothing_given_is_the_default(tmp_path: Path) -> None:
    assert from_file(TrainConfig, write(tmp_path, "seed: null\ngamma: ~\nclip:\n")) == {}
    assert from_file(TrainConfig, write(tmp_path, "condition: []\n")) == {"condition": ()}


# --- settings without effect ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ("--replay 4", "--algo impala"),
        ("--rho-bar 2", "--algo impala"),
        ("--num-workers 2", "environments other than the compiled cage2"),
        ("--wait-for 2", "environments other than the compiled cage2"),
        ("--step-timeout 2", "environments other than the compiled cage2"),
        ("--num-samplers 3", "--algo impala on cage2, or --runner ray"),
        ("--env CartPole-v1 --red-agent meander", "cage2 and cyborg"),
        ("--env CartPole-v1 --restore-curriculum 0", "the compiled cage2"),
        ("--env CartPole-v1 --algo a3c --k-epochs 2", "--algo ppo and impala"),
        ("--gate-start 0.5", "--workflow with --alignment gate"),
        ("--min-fixes 2", "--workflow"),
        ("--total-steps 1000 --total-episodes 7", "runs without --total-steps"),
        ("--algo impala --overlap true", "--algo ppo without --wait-for"),
        ("--cpus-per-sampler 1", "--runner ray"),
    ],
)
def test_a_flag_without_effect_is_refused(
    flags: str, what: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["train", "--output-dir", str(tmp_path / "runs"), *flags.split()]) == 2
    said = capsys.readouterr().err
    assert f"has no effect here, it is for {what}; leave it out" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_settings_without_effect_are_known_and_can_be_taken_out() -> None:
    config = TrainConfig(replay=4, red_agent="meander")
    assert without_effect(config) == {"replay": "--algo impala"}
    assert effective(config) == TrainConfig(red_agent="meander")
    for plain in (TrainConfig(), TrainConfig(env="CartPole-v1"), TrainConfig(algo="impala")):
        assert without_effect(plain) == {}


# --- what only a file names -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("env: http.server:test\n", "--env http.server:test"),
        ("env: helper:make\n", "--env helper:make"),
        ("env: NoSuchThing-v3\n", "--env NoSuchThing-v3"),
        ("network: helper:make\n", "--network helper:make"),
        ("runner: ray\nray_address: 10.0.0.1:6379\n", "--ray-address 10.0.0.1:6379"),
    ],
)
@pytest.mark.parametrize("way", ["config", "resume", "sweep"])
def test_code_that_only_a_file_names_is_asked_for_again(
    text: str,
    flag: str,
    way: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("helper.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    Path("run").mkdir()
    Path("run/config.yaml").write_text(text)
    before = sorted(tmp_path.rglob("*"))
    flags = {
        "config": "train --config run/config.yaml",
        "resume": "train --resume run",
        "sweep": "sweep run/config.yaml --over gamma=0.9,0.8",
    }
    assert main(flags[way].split()) == 2
    said = capsys.readouterr().err
    if way == "sweep" and "ray" not in flag:
        flag = flag.replace("--", "--over ").replace(" ", "=").replace("=", " ", 1)
    assert said.endswith(f"If you trust it, name it too: {flag}\n")
    assert said.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_built_in_or_imported_already_needs_no_asking(tmp_path: Path) -> None:
    for env in ("cage2", "cyborg", "CartPole-v1", "phalanx/Cage2-v0"):
        file = write(tmp_path, f"env: {env}\n")
        assert from_flags(TrainConfig, {"config": str(file)}).env == env
    file = write(tmp_path, "env: mine:make\nnetwork: mine:net\n")
    flags = {"config": str(file), "env": "mine:make", "network": "mine:net"}
    assert from_flags(TrainConfig, flags).env == "mine:make"


def test_the_original_is_played_against_the_attackers_that_it_has() -> None:
    assert TrainConfig(red_agent="coin").red_agent == "coin"
    with pytest.raises(ConfigError, match="the original simulator has no red agent coin"):
        TrainConfig(env="cyborg", red_agent="coin")


def test_red_agents_are_named_once() -> None:
    with pytest.raises(ConfigError, match="named twice"):
        TrainConfig(red_agent="b_line=1,b_line=1")
    with pytest.raises(ConfigError, match="named twice"):
        TrainConfig(red_agent="b_line=0.5,B_lineAgent=0.5")


def test_more_than_the_machine_can_hold_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--n-envs", "100000000", "--output-dir", str(tmp_path / "runs")]
    assert main(["train", *flags]) == 2
    said = capsys.readouterr().err
    assert "100000000 networks and 100 steps take" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "runs" / "x").exists()


def test_a_file_of_settings_is_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.yaml")
    with pytest.raises(ConfigError, match=r"cannot read .*no plain file"):
        from_file(TrainConfig, tmp_path / "mine.yaml")


def test_a_budget_in_episodes_takes_the_place_of_a_files_steps(tmp_path: Path) -> None:
    file = write(tmp_path, "total_steps: 1000\n")
    config = from_flags(TrainConfig, {"config": str(file), "total_episodes": "7"})
    assert (config.total_steps, config.total_episodes) == (None, 7)


def test_a_flag_that_says_what_happens_anyway_is_no_slip() -> None:
    flags = {"env": "CartPole-v1", "wait_for": "4", "overlap": "false", "critic_truth": "no"}
    assert from_flags(TrainConfig, flags).overlap is False


def test_a_place_may_be_given_as_a_path(tmp_path: Path) -> None:
    assert TrainConfig(start_from=tmp_path).start_from == str(tmp_path)  # type: ignore[arg-type]


def test_what_a_merge_was_given_is_known_by_its_own_name() -> None:
    assert SearchConfig(n_envs=200).given == {"num_envs"}  # type: ignore[call-arg]


def test_to_go_on_what_a_file_may_not_name_is_named() -> None:
    plain = TrainConfig().as_dict()
    assert asked_again(plain) == ""
    assert asked_again(TrainConfig(env="CartPole-v1").as_dict()) == ""
    mine = TrainConfig(env="mine:make", network="mine:net").as_dict()
    assert asked_again(mine) == " --env mine:make --network mine:net"
    assert asked_again(plain | {"ray_address": "auto"}) == " --ray-address auto"


@pytest.mark.parametrize(
    "changes", [{"algo": "a3c", "env": "CartPole-v1", "num_envs": 8}, {"num_envs": "auto"}]
)
def test_ray_has_no_a3c_and_needs_the_number_of_environments(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="--runner ray needs --algo ppo or impala, and the num"):
        TrainConfig(runner="ray", **changes)


def test_a_file_that_has_runs_written_elsewhere_is_said_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    file = tmp_path / "mine.yaml"
    for place, is_said in ((tmp_path / "far", True), ("../far", True), ("runs", False)):
        file.write_text(f"output_dir: {place}\n")
        assert from_flags(TrainConfig, {"config": str(file)}).output_dir == Path(place)
        said = capsys.readouterr().err
        assert said == is_said * f"phalanx: {file} has runs written to {place}\n"
    from_flags(TrainConfig, {"config": str(file), "output_dir": str(tmp_path)})
    assert capsys.readouterr().err == ""  # the user has named the place
