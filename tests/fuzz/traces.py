"""Folders of recorded games that were never recorded."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.archives import damage_archive
from tests.fuzz.case import Case, Dice, Places, choose
from tests.fuzz.checkpoints import TEXTS, VALUES
from tests.fuzz.damage import damage_bytes

GOLDEN = Path(__file__).parent.parent / "golden" / "final"
EPISODES = 3
NUMBERS = (-1, 0, 1, 2, 13, 52, 127, 145, 200, 255, -128, 32_767, 2**31 - 1, -(2**31), 2**62)


def make_trace_template(places: Places) -> None:
    """The first few recorded episodes of each attacker."""
    folder = places.templates / "traces"
    folder.mkdir()
    shutil.copy(GOLDEN / "codebook.json", folder)
    for path in sorted(GOLDEN.glob("*.npz")):
        np.savez_compressed(folder / path.name, **_shortened(dict(np.load(path))))


def _shortened(arrays: dict[str, Any]) -> dict[str, Any]:
    steps = int(arrays["ep_start"][EPISODES])
    until = {"ep": EPISODES, "in": EPISODES, "st": steps}
    short = {name: array[: until[name[:2]]] for name, array in arrays.items() if name[:2] in until}
    return short | {"ep_start": arrays["ep_start"][: EPISODES + 1]}


def make_trace(dice: Dice, places: Places) -> Case:
    folder = places.case / "traces"
    shutil.copytree(places.templates / "traces", folder)
    victim = choose(dice, sorted(folder.glob("*.npz")))
    what = choose(dice, WAYS)(dice, folder, victim)
    more = choose(dice, ([], [], ["--json", "case/out/result.json"]))
    return Case(what, ["verify", "case/traces", *more])


def _bytes(dice: Dice, _folder: Path, victim: Path) -> str:
    changed, what = damage_bytes(dice, victim.read_bytes())
    victim.write_bytes(changed)
    return f"{victim.name}: {what}"


def _archive(dice: Dice, _folder: Path, victim: Path) -> str:
    changed, what = damage_archive(dice, victim.read_bytes())
    victim.write_bytes(changed)
    return f"{victim.name}: {what}"


def _numbers(dice: Dice, _folder: Path, victim: Path) -> str:
    """Whole arrays of plausible kinds, with numbers, shapes or kinds of another game."""
    arrays = dict(np.load(victim))
    name = choose(dice, arrays)
    array, way = arrays[name], int(dice.integers(6))
    if way < 3:
        changed, value = array.astype(np.int64), int(choose(dice, NUMBERS))
        at = dice.random(array.shape) < choose(dice, (0.01, 0.5, 1.0))
        changed[at if at.any() else ...] = value
        arrays[name] = changed if way == 0 else changed.astype(array.dtype)
    elif way == 3:
        arrays[name] = array.astype(
            choose(dice, ("f8", "c16", "U9", "?", "M8[s]", "u8", "i8", "S3"))
        )
    elif way == 4:
        arrays[name] = array[: int(dice.integers(len(array)))]
    else:
        arrays[name] = array.reshape(choose(dice, ((-1,), (1, -1), (-1, 1), array.shape[::-1])))
    np.savez_compressed(victim, **arrays)
    return f"{victim.name}: {name}, way {way}"


def _codebook(dice: Dice, folder: Path, _victim: Path) -> str:
    path = folder / "codebook.json"
    codebook = json.loads(path.read_text())
    way = int(dice.integers(4))
    if way == 0:
        changed, what = damage_bytes(dice, path.read_bytes())
        path.write_bytes(changed)
        return f"codebook: {what}"
    if way == 1:
        text = choose(dice, TEXTS)
        path.write_bytes(text)
        return f"codebook: {text[:30]!r}"
    name, value = choose(dice, (*codebook, "rules", "red_agents")), choose(dice, VALUES)
    if way == 2 and isinstance(codebook.get(name), list):
        value = [value, *codebook[name][1:]]
    codebook[name] = value
    path.write_text(json.dumps(codebook))
    return f"codebook: {name}: {value!r:.40}"


def _files(dice: Dice, folder: Path, victim: Path) -> str:
    """Names that lead elsewhere, or to what is no file."""
    way = choose(dice, ("folder", "link", "loop", "missing", "text", "bare array"))
    victim.unlink()
    if way == "folder":
        victim.mkdir()
    elif way == "link":
        victim.symlink_to("../../outside/salary.csv")
    elif way == "loop":
        victim.symlink_to(victim.name)
    elif way == "text":
        (folder / "a\nb.npz").write_text("text")
    elif way == "bare array":
        with victim.open("wb") as file:
            np.save(file, np.zeros(3))
    return f"{victim.name} is a {way}"


WAYS = (_bytes, _bytes, _archive, _archive, _numbers, _numbers, _codebook, _files)
