"""What users name as `module:factory` is found where they work, and nothing else there is."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from phalanx.importing import import_file

NAMED = """
import sys
from phalanx.importing import import_from
import_from(".", "mine")
print(sorted({"mine", "beside", "stray"} & set(sys.modules)))
try:
    import stray
except ImportError:
    print("stray is not found")
"""


def test_a_named_module_finds_what_lies_beside_it_and_nobody_else_does(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import beside\n")
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "stray.py").write_text("")
    ran = subprocess.run(
        [sys.executable, "-P", "-c", NAMED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert ran.stdout.splitlines() == ["['beside', 'mine']", "stray is not found"]


def test_a_file_takes_no_name_from_the_modules_that_others_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("path", "one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "my_red.py").write_text(f"import beside_{folder}\nwhere = {folder!r}")
        (tmp_path / folder / f"beside_{folder}.py").write_text("")
        assert import_file(str(tmp_path / folder / "my_red.py")).where == folder
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    assert import_module("my_red").where == "path"
    monkeypatch.delitem(sys.modules, "my_red")
