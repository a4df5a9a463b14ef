"""Checkpoints and exported agents that are damaged, or made up and signed as phalanx would."""

import contextlib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from phalanx.arrays_file import Declared
from phalanx.training.checkpoint import _digest, load_checkpoint, read_facts
from tests.fuzz.archives import damage_archive
from tests.fuzz.case import Case, Dice, Places, choose
from tests.fuzz.damage import damage_bytes

TINY = [
    "--total-steps",
    "40",
    "--n-envs",
    "2",
    "--update-steps",
    "5",
    "--hidden",
    "4",
    "--num-threads",
    "1",
    "--minibatch-size",
    "4",
]
RUNS = {
    "plain": ["--horizon", "5"],
    "gate": ["--horizon", "5", "--workflow", "all", "--alignment", "gate"],
    "cartpole": ["--env", "CartPole-v1", "--num-workers", "0"],
}
AGENT = "agent.npz"
SHORT = ["--episodes", "2", "--red-agent", "b_line", "--num-threads", "1"]

CODE = (
    "http.server:test",
    "helper:make",
    "helper",
    "json:loads",
    "antigravity:geohash",
    ":a",
    "os:",
    "a:b:c",
)
# Odd values, several a line: hence `fmt: skip` here and below.
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1.5, 10**9, 10**30, -(10**30), 1e308, -0.0, 5e-324, "", "x" * 100_000,
    "../outside/salary", "/etc/passwd", "nul\0", "\ud800", "�", "cage2", "0", "nan", [], [[]],
    [[1, 2]], {}, {"a": {}}, ["x"], [1e308] * 2000, [True], [10**9], [0], [-5], [1.5], "b_line=nan",
    "b_line=1,b_line=1", "auto", "torch", "a3c", "impala",
)  # fmt: skip
ODD: dict[str, tuple[Any, ...]] = {
    "env": (*CODE, "CartPole-v1", "phalanx/Cage2-v0", "cyborg", "Nobody-v9"),
    "network": CODE,
    "hidden": ([10**9], [10**5, 10**5], [2] * 1000, [1] * 1001, ["64"], [0], [-4], 64, "64x64"),
    "num_envs": (10**8, 10**12, "auto", "2", 2.0, True),
    "update_steps": (10**8, 10**12, 5.0),
    "minibatch_size": (10**9, 10**18),
    "horizon": (10**4, 10**5, 10**9, 0, 5.5),
    "condition": ([0.0] * 1000, [0.0] * 25, [1e39], ["nan"]),
    "workflow": ("all", "user", "defender,user", "user,user,user,user,user"),
    "observation": ("truth", "bits", "memory", "none"),
    "num_threads": (10**9, 0, -1, "many"),
    "start_from": ("../outside/salary", "champion"),
    "red_agent": ("b_line=1e999", "b_line=-1,meander=2", "b_line=", "=1", "," * 9000),
    "seed": (2**63, 2**64, 2**200, -1, 1.0),
}
FACTS: dict[str, tuple[Any, ...]] = {
    "tables": (
        {"../outside/salary": 0, "episodes": 0}, {"updates": 0, "episodes": 10**15}, {},
        {"updates": -1, "episodes": 0}, {"updates": 1.5, "episodes": 0},
    ),
    "recent": (
        [], [[]], [[0, "b_line", 5, -1.0, 0, 0, 0, 0.0]] * 2001, [[0] * 8], [{}],
        [[2**62, "", 2**61, 0, 0, 0, 0, 0]],
        [[0, "x" * 10**6, 5, 0.5, 0, 0, 0, 0.0]],
        [[0, "b_line", 5, 1e308, 10**15, 0, 0, 1e308]] * 9,
    ),
    "seconds": (
        {}, {"collect": 1e308, "learn": 1e308, "other": 1e308},
        {"collect": -1, "learn": 0, "other": 0},
    ),
    "format": (1, 3, "2", 2.0, None, [2], 10**400),
    "updates": (2**61, 2**62, -1, 10**5000), "steps": (2**61, 0, 39.0), "episodes": (2**61, "8"),
    "adam_steps": (2**61, -1, 0, 1e308),
}  # fmt: skip
TEXTS = (
    b"", b"null", b"[]", b"{", b"[" * 200_000, b'{"a":' * 100_000,
    b'{"format": 2, "config": ' + b"9" * 5000 + b"}",
    b'{"format": 2, "updates": NaN}', b'{"format": 2, "steps": -Infinity}', b"\xff\xfe\0",
    b'"' + b"x" * 10**6 + b'"',
    b'{"format": 2, "config": {"seed": 1e999}}', b'{"format": 2, "format": 2}', b"{}",
    b" " * (1 << 22) + b"{}",
    b'{"format": 2, "x": [' + b"0," * 10**6 + b"0]}",
    b'{"format": 2, "config": {"env": "\\ud800"}}',
)  # fmt: skip


def sign(path: Path, arrays: Mapping[str, Any], text: bytes) -> None:
    """A checkpoint whose checksum is right, whatever it holds."""
    members = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    members["facts"] = np.frombuffer(text, np.uint8)
    declared = {name: Declared(array.shape, array.dtype) for name, array in members.items()}
    digest = _digest(declared, ((name, [members[name].tobytes()]) for name in sorted(members)))
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **members, digest=np.frombuffer(digest, np.uint8))


def read_all(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Every array and fact of an honest checkpoint, its games too."""
    facts, declared = read_facts(path)
    template = {name: np.empty(one.shape, one.dtype) for name, one in declared.items()}
    return load_checkpoint(path, template)[0], facts


def make_templates(places: Places, play: Any) -> None:
    """Honest runs and an exported agent. Times are taken out: equal numbers, equal cases."""
    for name, flags in RUNS.items():
        play(["train", *TINY, *flags, "--output-dir", "templates", "--name", name])
        last = places.templates / name / "checkpoints" / "last.npz"
        arrays, facts = read_all(last)
        facts["seconds"] = {"collect": 0.25, "learn": 0.25, "other": 0.25}
        sign(last, arrays, json.dumps(facts).encode())
        (last.parent.parent / "summary.json").unlink()
    play(["export", "templates/plain", f"templates/{AGENT}"])


def warm_commands() -> list[list[str]]:
    """Honest uses of the templates."""
    return [
        ["train", *TINY, "--start-from", "templates/plain", "--output-dir", "warm"],
        *(
            [word, f"templates/{AGENT}", *SHORT, "--horizon", "5"]
            for word in ("evaluate", "explain")
        ),
        ["evaluate", "templates/gate", *SHORT, "--workflow", "balanced", "--horizon", "5"],
        ["evaluate", "templates/cartpole", "--episodes", "2"],
    ]


def make_checkpoint(dice: Dice, places: Places) -> Case:
    name = choose(dice, (*RUNS, "plain", "plain", AGENT))
    template = places.templates / name
    honest = template if name == AGENT else template / "checkpoints" / "last.npz"
    file = places.case / "hostile.npz"
    way = choose(dice, WAYS)
    made = way(dice, honest, file)
    if name == AGENT:
        command = choose(dice, (_evaluate, _explain, _export, _start_from))(file)
    elif dice.random() < 0.4:
        command = _resume(dice, places, template, file, made.settings)
    else:
        command = choose(dice, (_evaluate, _evaluate, _explain, _export, _start_from))(file)
    takes_weights_only = made.settings is not None and (
        command[0] == "export" or "--start-from" in command
    )
    return Case(f"{name}: {made.what}", command, made.must_refuse and not takes_weights_only)


class Made(NamedTuple):
    what: str
    must_refuse: bool = False
    settings: dict[str, Any] | None = None
    """where they are others than the honest run's"""


def _damaged_bytes(dice: Dice, honest: Path, file: Path) -> Made:
    changed, what = damage_bytes(dice, honest.read_bytes())
    file.write_bytes(changed)
    return Made(what)


def _damaged_archive(dice: Dice, honest: Path, file: Path) -> Made:
    changed, what = damage_archive(dice, honest.read_bytes())
    file.write_bytes(changed)
    return Made(what, what.startswith(("bomb", "pickled", "twice", "missing", "packed")))


def _signed_settings(dice: Dice, honest: Path, file: Path) -> Made:
    arrays, facts = read_all(honest)
    settings, told = facts["config"], []
    for _ in range(int(choose(dice, (1, 1, 1, 2, 4)))):
        name = choose(dice, (*settings, *ODD, *ODD))
        settings[name] = choose(dice, ODD.get(name, VALUES) if dice.random() < 0.8 else VALUES)
        told.append(f"{name}: {settings[name]!r:.40}")
    sign(file, arrays, json.dumps(facts).encode())
    return Made(f"signed settings {', '.join(told)}", settings["env"] in CODE, settings)


def _signed_facts(dice: Dice, honest: Path, file: Path) -> Made:
    arrays, facts = read_all(honest)
    name = choose(dice, (*FACTS, "config"))
    if dice.random() < 0.1:
        facts.pop(name, None)
    else:
        facts[name] = choose(dice, FACTS.get(name, VALUES) if dice.random() < 0.8 else VALUES)
    with _of_any_length():
        sign(file, arrays, json.dumps(facts).encode())
        return Made(f"signed fact {name}: {facts.get(name, 'missing')!r:.60}")


def _signed_text(dice: Dice, honest: Path, file: Path) -> Made:
    text = choose(dice, TEXTS)
    sign(file, read_all(honest)[0], text)
    return Made(f"signed text {text[:30]!r} of {len(text)} bytes")


def _signed_arrays(dice: Dice, honest: Path, file: Path) -> Made:
    arrays, facts = read_all(honest)
    name = choose(dice, arrays)
    array, way = arrays[name], int(dice.integers(8))
    if way < 4:  # numbers of its kind that no run has
        arrays[name] = np.frombuffer(dice.bytes(array.nbytes), array.dtype).reshape(array.shape)
    elif way == 4:
        kind = choose(dice, ("<f8", "<f2", "<i8", "|u1", "|b1", "<i4"))
        arrays[name] = np.zeros(array.shape, kind)
    elif way == 5:
        shape = choose(dice, ((), (0,), (1,), (*array.shape, 1), array.shape[::-1], (3, 0, 5)))
        arrays[name] = np.ones(shape, array.dtype)
    elif way == 6:
        value = choose(dice, (np.nan, np.inf)) if array.dtype.kind == "f" else np.array(-1)
        arrays[name] = np.full(array.shape, value).astype(array.dtype)
    else:
        del arrays[name]
    sign(file, arrays, json.dumps(facts).encode())
    return Made(f"signed array {name}, way {way}")


WAYS = (
    _damaged_bytes, _damaged_bytes, _damaged_bytes, _damaged_archive, _damaged_archive,
    _damaged_archive,
    _signed_settings, _signed_settings, _signed_facts, _signed_text, _signed_arrays,
)  # fmt: skip


@contextlib.contextmanager
def _of_any_length() -> Iterator[None]:
    """Python refuses to write or read numbers of more than 4,300 digits, unless it is told to."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


# --- as a user would ------------------------------------------------------------------------------


def _evaluate(file: Path) -> list[str]:
    return ["evaluate", f"case/{file.name}", *SHORT, "--horizon", "2"]


def _explain(file: Path) -> list[str]:
    return ["explain", f"case/{file.name}", *SHORT, "--horizon", "5"]


def _export(file: Path) -> list[str]:
    return ["export", f"case/{file.name}", "case/out/agent.npz"]


def _start_from(file: Path) -> list[str]:
    return ["train", *TINY, "--start-from", f"case/{file.name}", "--output-dir", "case/out"]


def _resume(
    dice: Dice, places: Places, template: Path, file: Path, settings: dict[str, Any] | None
) -> list[str]:
    """A run folder as somebody has sent it; its settings agree with the checkpoint's."""
    shutil.copytree(template, places.run)
    file.replace(places.run / "checkpoints" / "last.npz")
    if settings is not None:
        text = yaml.safe_dump(settings, sort_keys=False)
        (places.run / "config.yaml").write_text(text, errors="replace")
    if dice.random() < 0.05:
        link = places.run / choose(dice, ("updates.csv", "config.yaml", "summary.json", ".lock"))
        link.unlink(missing_ok=True)
        link.symlink_to(places.outside / "salary.csv")
    return ["train", "--resume", "case/run", "--total-steps", "80"]
