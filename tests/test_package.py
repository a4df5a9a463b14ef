"""What comes with phalanx is found by name, wherever one works and however it was installed."""

import os
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import phalanx
from phalanx.agents import AGENTS
from phalanx.cli.commands import main
from phalanx.cluster.sweep_config import SweepConfig
from phalanx.configs import CONFIGS, ZOO, config_path, zoo_path
from phalanx.errors import ConfigError
from phalanx.settings.fields import without_effect
from phalanx.settings.flags import from_file, from_flags, helps_of
from phalanx.training.config import TrainConfig
from phalanx.verify.replay import GAMES
from tests.conftest import pytest_collection_modifyitems

ROOT = Path(__file__).parent.parent


def test_the_wheel_holds_configs_agents_and_games() -> None:
    """All files below src/phalanx are packed, whatever they are: nothing may lie elsewhere."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/phalanx"]}
    assert "champion" in CONFIGS
    assert "champion" in AGENTS
    games = sorted(GAMES.glob("*/*"))
    assert sum(path.suffix == ".npz" for path in games) == 6
    assert sum(path.stat().st_size for path in games) < 300_000
    for path in (*CONFIGS.values(), *ZOO.values(), *AGENTS.values(), *games):
        assert path.is_relative_to(str(files("phalanx")))
        assert path.is_file()


def test_the_citation_names_the_version_that_is_installed() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == phalanx.__version__


def test_importing_phalanx_compiles_nothing_and_writes_nothing(tmp_path: Path) -> None:
    here = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TMPDIR"), str(tmp_path))
    ran = subprocess.run(
        [sys.executable, "-c", "import sys, phalanx; print(*sys.modules)"],
        env={**os.environ, **here},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(ran.stdout.split())
    assert "phalanx.cage2.registration" in loaded
    assert not loaded & {"numba", "llvmlite", "torch", "ray", "rich"}
    assert list(tmp_path.iterdir()) == []


# --- configs --------------------------------------------------------------------------------------


def test_a_config_that_comes_with_phalanx_is_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert config_path("champion").read_text().count("2.1-leaderboard") == 1
    assert config_path(Path("Champion_Final")) == CONFIGS["champion-final"]
    swept = SweepConfig(base=Path("quick"), over=("gamma=0.9",), output_dir=tmp_path)
    assert swept.trials[0].config.horizon == 50


def test_what_lies_in_the_current_folder_does_not_take_a_configs_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("quick", "quick.yaml"):
        (tmp_path / name).write_text("horizon: 3\n")
    assert config_path("quick") == CONFIGS["quick"]
    assert config_path("quick.yaml") == Path("quick.yaml")
    assert config_path(tmp_path / "quick") == tmp_path / "quick"


@pytest.mark.parametrize("name", ["champoin", "configs/champion.yaml", "champion.yml"])
def test_an_unknown_config_is_one_line_with_those_that_there_are(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["train", "--config", name], ["search", "--config", name]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert f"unknown config or YAML file {name!r}: choose from {', '.join(CONFIGS)}" in said
        assert "did you mean champion" in said
        assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_what_can_be_no_files_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="config"):
        config_path(name)


def test_the_help_names_every_config() -> None:
    said = helps_of(TrainConfig)["config"].text
    assert [name for name in CONFIGS if name not in said] == []


# --- settings that were tried for well-known environments -----------------------------------------


@pytest.mark.parametrize("name", ZOO)
def test_tried_settings_are_valid_and_all_have_an_effect(name: str) -> None:
    first, *_ = ZOO[name].read_text().splitlines()
    env = first.removeprefix("# phalanx train --env ")
    assert zoo_path(env) == ZOO[name]
    settings = from_file(TrainConfig, ZOO[name])
    assert "env" not in settings
    made = TrainConfig(env=env, **settings)
    assert (made.algo, without_effect(made)) == ("ppo", {})
    assert from_flags(TrainConfig, {"env": env}).as_dict() == made.as_dict()


def test_flags_and_configs_take_precedence_over_tried_settings(tmp_path: Path) -> None:
    def gamma(**flags: str) -> tuple[float, int]:
        made = from_flags(TrainConfig, {"env": "Pendulum-v1", **flags}).for_task("continuous")
        return made.gamma, made.k_epochs

    (tmp_path / "mine.yaml").write_text("gamma: 0.5\n")
    assert gamma() == (0.98, 20)
    assert gamma(gamma="0.7") == (0.7, 20)
    assert gamma(config=str(tmp_path / "mine.yaml")) == (0.5, 8)
    assert gamma(config="none") == (0.99, 8)
    assert gamma(algo="impala") == (0.99, 1)
    assert gamma(env="Unknown-v0") == (0.99, 8)


def test_tried_settings_are_told_and_never_those_of_the_folder_one_works_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zoo").mkdir()
    for place in (tmp_path, tmp_path / "zoo"):
        (place / "CartPole-v1.yaml").write_text("gamma: 0.5\n")
    monkeypatch.chdir(tmp_path)
    settings = "--env CartPole-v1 --total-steps 1 --update-steps 2"
    flags = ["train", *settings.split(), "--name"]
    assert main([*flags, "x"]) == 0
    told = "settings for CartPole-v1 as we tried them: configs/zoo/CartPole-v1.yaml; --config none"
    assert told in capsys.readouterr().out
    written = (tmp_path / "runs" / "x" / "config.yaml").read_text()
    assert f"# {told}" in written
    assert "\nnum_envs: 16\n" in written
    assert "\ngamma: 0.99\n" in written
    (tmp_path / "mine.yaml").write_text("num_envs: 2\n")
    for config in ("none", "mine.yaml"):
        assert main([*flags, f"with-{config}", "--config", config, "--n-envs", "2"]) == 0
        assert "as we tried them" not in capsys.readouterr().out


# --- the tests ------------------------------------------------------------------------------------


def test_files_that_are_marked_slow_come_first_and_others_keep_their_order() -> None:
    class Item(NamedTuple):
        path: Path
        marked: bool

        def get_closest_marker(self, name: str) -> bool:
            return self.marked and name == "slow"

    quick, mixed = Path("tests/test_a.py"), Path("tests/test_b.py")
    items: Any = [Item(quick, False), Item(mixed, False), Item(mixed, True), Item(quick, False)]
    pytest_collection_modifyitems(items)
    assert [item.path for item in items] == [mixed, mixed, quick, quick]
