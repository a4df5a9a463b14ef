"""Another checkout measured beside this one."""

import json
from pathlib import Path

import pytest

from phalanx.bench import beside
from phalanx.cli.commands import main

THIS = Path(__file__).parent.parent.parent


def test_both_play_in_turn_and_their_ratio_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beside, "OBSERVATIONS", ("bits",))
    monkeypatch.setattr(beside, "NUM_ENVS", 16)
    monkeypatch.setattr(beside, "FIRST_STEP", "import phalanx; print(len(phalanx.__path__))")
    report = tmp_path / "beside.json"
    flags = f"bench sim --beside {THIS} --red-agent meander --rounds 2 --seconds 0.01"
    assert main([*flags.split(), "--json", str(report)]) == 0
    result = json.loads(report.read_text())
    ours, theirs = result["rows"]
    assert (ours["checkout"], theirs["checkout"]) == ("this one", "the other")
    ratio = result["ratios"]["meander, bits: this one / the other"]
    assert ratio == pytest.approx(ours["steps_per_s"] / theirs["steps_per_s"], abs=1e-3)
    assert result["first_step_compiling_cpu_s"] == {"this one": 1.0, "the other": 1.0}
    assert "compiling: this one / the other: 1.00" in capsys.readouterr().out


def test_a_folder_without_phalanx_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "sim", "--beside", str(tmp_path)]) == 2
    assert "holds no src/phalanx; give the folder of another" in capsys.readouterr().err


def test_a_checkout_that_cannot_play_gets_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src" / "phalanx").mkdir(parents=True)
    (tmp_path / "src" / "phalanx" / "__init__.py").touch()
    assert main(["bench", "sim", "--beside", str(tmp_path), "--rounds", "1"]) == 2
    assert "cannot play meander bits" in capfd.readouterr().err
