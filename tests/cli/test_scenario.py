"""`phalanx scenario` and `phalanx record` on networks that are drawn."""

from pathlib import Path

import pytest
import yaml

from phalanx.cli.commands import main


def test_one_of_many_random_networks_is_shown_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.yaml"
    assert main(["scenario", "random:seed=1,network=3", "--original", str(file)]) == 0
    assert "scenario random-1-3: 15 hosts in 3 subnets, 167 actions" in capsys.readouterr().out
    assert len(yaml.safe_load(file.read_text())["Hosts"]) == 15


def test_many_are_counted_and_cannot_be_written_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scenario", "random:seed=1"]) == 0
    assert "256 networks of 9 to 18 hosts; the first of them:" in capsys.readouterr().out
    for command in (
        ["scenario", "random:seed=1", "--original", str(tmp_path / "out.yaml")],
        ["record", "--scenario", "random:seed=1", "--out", str(tmp_path / "recorded")],
    ):
        assert main(command) == 2
        assert "random:seed=1 is 256 networks; say which: network=0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
