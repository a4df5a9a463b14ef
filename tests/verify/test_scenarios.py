"""Games of the original in other networks than its own, replayed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from phalanx.cage2.rules.red_actions import ESCALATE, EXPLOIT, SCAN, SWEEP
from phalanx.errors import ConfigError, TraceError
from phalanx.verify.replay import verify
from phalanx.verify.traces import read_folder

RECORDED = Path(__file__).parents[1] / "scenarios" / "recorded"
NAMES = sorted(path.name for path in RECORDED.iterdir())
OF_CAGE2S_SIZE = [name for name in NAMES if not name.startswith(("thirty", "more", "fewer", "own"))]


def test_there_are_games_of_every_scenario() -> None:
    files = [*RECORDED.parent.glob("*.yaml"), RECORDED.parent / "own_images" / "own_images.yaml"]
    scenarios = {path.stem for path in files}
    assert {name.rsplit("-", 2)[0] for name in NAMES} == scenarios


@pytest.mark.parametrize("name", OF_CAGE2S_SIZE)
def test_the_same_game_with_other_images_ways_prices_and_starts(name: str) -> None:
    result = verify(RECORDED / name)
    assert result.steps > 0
    assert (result.mismatches, result.first_mismatch) == (0, None)


def test_the_same_game_with_more_and_fewer_hosts_and_images_of_one_s_own() -> None:
    """Uncompiled, since code is compiled for each number of hosts."""
    for name in set(NAMES) - set(OF_CAGE2S_SIZE):
        command = [sys.executable, "-m", "phalanx", "verify", str(RECORDED / name)]
        environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
        played = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert played.returncode == 0, played.stdout + played.stderr
        assert " 0 mismatches" in played.stdout


def copy_of(name: str, folder: Path) -> Path:
    copied = folder / name
    shutil.copytree(RECORDED / name, copied)
    return copied


def test_a_scenario_that_was_not_played_is_told_apart(tmp_path: Path) -> None:
    """Prices of another file: the recorded rewards do not fit them."""
    copied = copy_of("other_values-meander-final", tmp_path)
    other = RECORDED / "other_images-meander-final" / "scenario.yaml"
    shutil.copyfile(other, copied / "scenario.yaml")
    assert verify(copied).mismatches > 0


def test_hosts_must_be_those_of_the_scenario(tmp_path: Path) -> None:
    copied = copy_of("other_values-meander-final", tmp_path)
    book = json.loads((copied / "codebook.json").read_text())
    book["hosts"][0] = "Somebody"
    (copied / "codebook.json").write_text(json.dumps(book))
    with pytest.raises(TraceError, match="numbers hosts as"):
        verify(copied)


@pytest.mark.parametrize("name", ["../scenario.yaml", "/etc/passwd", 7])
def test_a_scenario_lies_beside_its_codebook(tmp_path: Path, name: object) -> None:
    copied = copy_of("other_values-meander-final", tmp_path)
    book = json.loads((copied / "codebook.json").read_text())
    (copied / "codebook.json").write_text(json.dumps(book | {"scenario": name}))
    with pytest.raises(TraceError, match="must be a file beside it"):
        verify(copied)


def test_a_scenario_that_is_missing_is_named(tmp_path: Path) -> None:
    copied = copy_of("other_values-meander-final", tmp_path)
    (copied / "scenario.yaml").unlink()
    with pytest.raises(ConfigError, match=r"cannot read .*scenario\.yaml"):
        verify(copied)


def test_green_scans_in_its_recordings_and_only_there() -> None:
    for name in NAMES:
        (traces,) = read_folder(RECORDED / name)
        assert (traces.steps["green"] > 0).any() == name.startswith("green"), name


@pytest.mark.parametrize("name", NAMES)
def test_red_sweeps_scans_exploits_and_escalates_in_every_recording(name: str) -> None:
    """Games in which it did not would say little about a scenario."""
    for traces in read_folder(RECORDED / name):
        moves = set(np.unique(traces.steps["red"]).tolist())
        assert {SWEEP, SCAN, EXPLOIT, ESCALATE} <= moves
