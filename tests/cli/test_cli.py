"""The command line: readable help, one-line errors, exit code 2, nothing half done."""

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

import phalanx
from phalanx.__main__ import main as entry
from phalanx.bench import learning, sim, stepping
from phalanx.cli.commands import COMMANDS, main
from phalanx.compiled.cache import cache_folder
from phalanx.files import write_json
from phalanx.machine import count_cores
from phalanx.settings.flags import helps_of


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"phalanx {phalanx.__version__}\n"


def test_ctrl_c_is_one_line_even_before_there_is_anything_to_stop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def importing(_arguments: object = None) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("phalanx.cli.commands.main", importing)
    assert entry() == 130
    assert capsys.readouterr().err == "phalanx: interrupted\n"


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "examples:" in capsys.readouterr().out


def shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_explained(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = COMMANDS[command].config
    helps = helps_of(config)
    assert set(helps) == {item.name for item in fields(config)}
    said = " ".join(shown([command, "--help-all"], capsys).split())
    for one in helps.values():
        assert one.text.split()[0] in said
        assert not one.section or f" {one.section}: --" in said


@pytest.mark.parametrize("command", ["train", "search"])
def test_help_shows_what_is_used_most_and_help_all_the_rest(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    often, all_of_them = (shown([command, flag], capsys) for flag in ("--help", "--help-all"))
    assert "--total-episodes" in often
    assert "--help-all" in often
    assert "--max-grad-norm" not in often
    assert "--max-grad-norm" in all_of_them
    assert len(often.splitlines()) < len(all_of_them.splitlines()) / 2
    for said in (often, all_of_them):
        headings = [line for line in said.splitlines() if line.endswith(":")]
        assert len(set(headings)) == len(headings) >= 2


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_what_its_settings_say(name: str) -> None:
    about, *_details = str(COMMANDS[name].config.__doc__).splitlines()
    assert COMMANDS[name].about == about
    assert COMMANDS[name].example.startswith(f"phalanx {name} ")


def test_help_imports_nothing_that_only_commands_need() -> None:
    heavy = "numba scipy yaml rich torch phalanx.cage2.rules phalanx.settings phalanx.training"
    asked = f"import sys, phalanx.cli.commands as c; c.main([]); print(*sys.modules, {heavy!r})"
    ran = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    )  # what was imported, and after it what must not have been
    *_, last = ran.stdout.splitlines()
    assert [name for name in heavy.split() if last.split().count(name) > 1] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_settings_are_read_without_the_compiled_game(name: str) -> None:
    asked = f"import sys; from phalanx.cli.commands import *; COMMANDS[{name!r}].config; "
    asked += "print('numba' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("evalute", "did you mean evaluate?"),
        ("--verbose", "unknown option --verbose"),
        ("evaluate --polcy sleep", "did you mean --policy?"),
        ("evaluate --policy slep", "did you mean sleep?"),
        ("evaluate --policy nope", "champion"),
        ("search --env CartPole-v1", "phalanx search trains with ppo on CAGE-2"),
        ("search --gp-beta -1", "gp_beta must be from 0 to 1e+06, got -1"),
        ("evaluate --red-agent b_lin", "did you mean b_line?"),
        ("evaluate --red-agent b_line=0.5,meander=0.6", "sum to 1"),
        ("evaluate --horizon 0", "horizon must be"),
        ("evaluate --horizon x", "'x' is not a whole number"),
        ("evaluate --episodes 1", "episodes must be from 2"),
        ("evaluate --episodes many", "--episodes: 'many' is not a whole number"),
        ("evaluate --rules 2.1", "choose from 2.1-final, 2.1-leaderboard"),
        ("evaluate --seed -1", "seed must be"),
        ("evaluate --num-threads none", "num_threads must be"),
        ("evaluate --json /no/such/folder/x.json", "cannot write"),
        ("evaluate nowhere", "there is no run or checkpoint nowhere"),
        ("verify a b", "unknown argument b"),
        ("verify nowhere", "is not a folder"),
        ("verify nowhere --rules 3", "choose from 2.1-final"),
        ("bench simm", "did you mean sim"),
        ("bench --rounds 0", "rounds must be from 1"),
        ("bench --num-envs ,", "at least one value"),
        ("bench --num-envs 999999999999", "num_envs must be from 1"),
        ("bench --seconds nan", "'nan' is not a number"),
        ("evaluate --policy ,", "at least one value"),
        ("evaluate --red-agent b_line:0.5,meander:0.5", "unknown red agent 'b_line:0.5'"),
        ("evaluate --num-threads 99999", "num_threads must be"),
        ("evaluate --json /proc/x.json", "cannot write"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_result_file_that_is_a_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--json", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_a_flag_may_be_given_several_times(tmp_path: Path) -> None:
    report = tmp_path / "x.json"
    flags = "--policy sleep --red-agent sleep --horizon 2 --horizon 3,4 --episodes 2"
    assert main(["evaluate", *flags.split(), "--json", str(report)]) == 0
    assert [cell["horizon"] for cell in json.loads(report.read_text())["cells"]] == [2, 3, 4]


def test_a_link_is_followed_and_a_device_is_not_replaced(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    write_json(link, [1])
    assert json.loads(target.read_text()) == [1]
    assert link.is_symlink()
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    write_json(pipe, [2])
    assert json.loads(reader.communicate(timeout=600)[0]) == [2]
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "target"]


def test_a_broken_pipe_loses_no_result(tmp_path: Path) -> None:
    report = tmp_path / "x.json"
    command = (
        f"{Path(sys.executable).parent / 'phalanx'} evaluate --episodes 2 --json {report} | true"
    )
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr
    assert json.loads(report.read_text())["complete"]


def test_the_original_is_not_loaded_for_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "CybORG"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise RuntimeError('loaded')")
    ran = subprocess.run(
        [sys.executable, "-m", "phalanx.cli.commands", "--version"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_the_command_is_installed() -> None:
    ran = subprocess.run(
        [Path(sys.executable).parent / "phalanx", "verify", "nowhere"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("phalanx: nowhere is not a folder")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("what", ["train", "learner"])
def test_bench_measures_training_beside_its_bound(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(learning.REFERENCE, horizon=4, update_steps=4)
    monkeypatch.setattr(learning, "REFERENCE", short)
    monkeypatch.setattr(learning, "SIZES", (32, 64))
    monkeypatch.setattr(learning, "choose_num_envs", lambda config: (64, {}))
    monkeypatch.setattr(stepping, "BENCHMARKS", Path("nowhere"))
    report = tmp_path / "bench.json"
    assert main(["bench", what, "--rounds", "1", "--seconds", "0.01", "--json", str(report)]) == 0
    result = json.loads(report.read_text())
    for name in ("episodes_per_s", "gemm_bound_episodes_per_s", "collect_steps_per_s"):
        assert result[name] > 0
    assert result["plain_torch_episodes_per_s"] is None  # said so, not made up
    if what == "train":
        assert 0 < result["watching_share"] < 1
        assert 0 < result["watching_share_of_cartpoles"] < 1
        assert result["ratios"]["live view, split and sinks / nobody watches"] > 0
    products = f"matrix products alone, {count_cores()} threads"
    ratio = result["ratios"][f"training / {products}"]
    assert ratio == pytest.approx(
        result["episodes_per_s"] / result["gemm_bound_episodes_per_s"], abs=0.01
    )


def test_bench_measures_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_child, usual = sim.run_child, str(cache_folder().parent)  # type: ignore[union-attr]

    def compile_only_first_steps(program: str, cache: str) -> float:
        return run_child(program, cache if program == sim.FIRST_STEP else usual)

    monkeypatch.setattr(sim, "run_child", compile_only_first_steps)
    monkeypatch.setattr(sim, "MILLION", sim.MILLION.replace("1_000_000", "1_000"))
    report = tmp_path / "bench.json"
    flags = "bench sim --num-envs 1 64 --red-agent meander --rounds 1 --seconds 0.02"
    assert main([*flags.split(), "--json", str(report)]) == 0
    assert "steps/s" in capsys.readouterr().out
    result = json.loads(report.read_text())
    rows = result["rows"]
    assert {"num_envs", "threads", "red_agent", "steps_per_s"} <= set(rows[0])
    assert {row["how"] for row in rows} >= {"kernel", "step()", "gymnasium.make"}
    assert all(row["steps_per_s"] > 0 for row in rows)
    assert result["start_up"]["first_step_compiled_s"] > 0
