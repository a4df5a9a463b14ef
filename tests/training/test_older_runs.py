"""Runs that an older version of phalanx has begun go on as they were begun."""

import re
from pathlib import Path
from typing import Any

import pytest

from phalanx.cli.commands import main
from phalanx.training.checkpoint import load_checkpoint, read_facts, save_checkpoint
from phalanx.training.loop import train
from tests.training.test_training import small

FEW, MORE = 96 * 25, 2 * 96 * 25  # steps


@pytest.mark.parametrize("observation", ["belief", "memory"])
def test_a_run_from_before_foresight_goes_on_without_it(tmp_path: Path, observation: str) -> None:
    settings: dict[str, Any] = {"observation": observation, "total_steps": FEW}
    run = train(small(tmp_path, "old", **settings, foresight=False))
    path, file = run.folder.checkpoint, run.folder.path / "config.yaml"
    arrays, facts = load_checkpoint(path, run._saved()[0])
    del facts["config"]["foresight"]
    save_checkpoint(path, arrays, facts)
    file.write_text(re.sub(r"(?m)^foresight:.*\n", "", file.read_text()))
    assert main(["train", "--resume", str(run.folder.path), "--total-steps", str(MORE)]) == 0
    facts, _ = read_facts(path)
    assert facts["steps"] == MORE
    assert not facts["config"]["foresight"]
