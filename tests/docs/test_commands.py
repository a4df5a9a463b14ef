"""Every command and every piece of Python in the documents runs, or says why not."""

import re
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from phalanx.cli.commands import COMMANDS, main
from phalanx.cli.train import show_results
from phalanx.settings.flags import add_flags, flags_of
from tests.docs.blocks import DOCUMENTS, ROOT, Block, blocks_of, marks_of

NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
TINY = "train --total-episodes 32 --n-envs 16 --horizon 50 --name first"
# Flags of other people's programs that the documents speak of.
FOREIGN = {
    "--head",
    "--port",
    "--address",
    "--max-steps",
    "--n-workflows",
    "--n-eval-episodes",
    "--n-workers",
    "--episodes-per-update",
    "--checkpoint-dir",
    "--max-episodes-per-workflow",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, for documents that speak of runs/first without training it."""
    folder = tmp_path_factory.mktemp("trained")
    assert main([*TINY.split(), "--output-dir", str(folder)]) == 0
    return folder / "first"


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder as the current one, in which modules are found.

    What is trained there is scored on a few episodes.
    """
    monkeypatch.setattr("phalanx.cli.train.show_results", partial(show_results, episodes=20))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_document_shows_runs(name: str, workshop: Path, trained: Path) -> None:
    blocks = [block for block in blocks_of(ROOT / name) if block.is_run]
    if not any("--name first" in block.text for block in blocks):
        shutil.copytree(trained, workshop / "runs" / "first")
    for block in blocks:
        if block.file:
            (workshop / block.file).write_text(block.text)
    for block in blocks:
        if block.is_python:
            run_python(block)
        for command in block.commands:
            arguments = block.arguments(command)
            assert main(arguments) == 0, f"{block}: phalanx {' '.join(arguments)}"


def run_python(block: Block) -> None:
    """A block as a program of its own."""
    wanted = set(
        re.findall(r"^(?:from|import) (stable_baselines3|torch)", block.text, re.MULTILINE)
    )
    for package in wanted:
        if find_spec(package) is None:
            pytest.skip(f"{block} needs {package}, which is not installed")
    if wanted:
        import torch

        torch.set_num_threads(1)  # of a small network's threads each would wait for the others
    code = compile(block.python, str(block), "exec")
    exec(code, {"__name__": "__main__"})


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_run_says_why(name: str) -> None:
    blocks = blocks_of(ROOT / name)
    for block in blocks:
        assert block.is_run or len(block.words.split()) >= 3, f"{block}: say why"
    marked = [block for block in blocks if block.words]
    assert marks_of(ROOT / name) == len(marked), "a comment that stands above no block"
    assert all(block.commands or block.is_python for block in marked)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_within_a_sentence_is_understood(name: str) -> None:
    """Its flags are there; whether its values fit is for whoever runs it."""
    text = (ROOT / name).read_text()
    for span in re.findall(r"(?<!`)`(phalanx [a-z][^`]*)`(?!`)", text):
        command, *given = span.replace("…", "").replace("...", "").split()[1:]
        if command not in COMMANDS:
            continue
        parser = ArgumentParser(allow_abbrev=False, exit_on_error=False)
        add_flags(parser, COMMANDS[command].config, everything=True)
        flags = [word.split("=")[0] for word in given if word.startswith("--")]
        known = parser._option_string_actions
        assert [flag for flag in flags if flag not in known] == [], span


@pytest.mark.parametrize("name", NAMES)
def test_every_flag_that_a_document_names_is_there(name: str) -> None:
    known = {
        flag for one in COMMANDS.values() for item in fields(one.config) for flag in flags_of(item)
    }
    scripts = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "examples").glob("*.py")]
    scripts += [ROOT / "tests" / "mutants" / "__main__.py"]
    for script in scripts:
        known |= set(re.findall(r'"(--[a-z-]+)"', script.read_text()))
    named = set(re.findall(r"`(--[a-z][a-z-]*)", (ROOT / name).read_text()))
    assert sorted(named - known - FOREIGN - {"--help", "--help-all", "--flag"}) == []
