"""`python -m docsite`: build the site into build/site, and check it."""

import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

from docsite.check import faults_of
from docsite.stage import ROOT, stage

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def build(folder: Path) -> Path:
    """The site without its API reference, in `folder`/site; strict: a warning is an error."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stage(folder)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode != 0 or "No issues found" not in ran.stdout + ran.stderr:
        said = COLOURS.sub("", ran.stdout + ran.stderr).partition("Traceback")[0]
        raise SystemExit(f"docsite: the site cannot be built\n{said}")
    return folder / "site"


def main() -> int:
    parser = ArgumentParser(prog="python -m docsite", description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="where to build")
    parser.add_argument("--without-api", action="store_true", help="leave the API reference out")
    given = parser.parse_args()
    site = build(given.folder)
    if not given.without_api:
        from docsite.api import write_api

        write_api(site / "api")
    faults = [
        fault for fault in faults_of(site)
        if not (given.without_api and "api/index.html" in fault)
    ]  # fmt: skip
    for fault in faults:
        print(f"docsite: {fault}", file=sys.stderr)
    count = sum(1 for _page in site.rglob("*.html"))
    print(f"{count} pages, {len(faults)} faults; open {site / 'index.html'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
