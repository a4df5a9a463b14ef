"""YAML files of settings that nobody should write."""

import dataclasses
import shutil
import typing
from collections.abc import Callable
from typing import Any

import yaml

from phalanx.search.config import SearchConfig
from phalanx.training.config import TrainConfig
from tests.fuzz.case import Case, Dice, Places, choose
from tests.fuzz.damage import damage_bytes

BUDGET = {
    "total_steps": "40",
    "num_envs": "2",
    "update_steps": "5",
    "horizon": "5",
    "hidden": "4",
    "num_threads": "1",
    "minibatch_size": "4",
    "duration": "0.0001",
    "name": "made",
}
# Odd values, several a line: hence `fmt: skip` here and below.
# What may not be anywhere: no number, no word, nothing to read.
NEVER = (
    "[[1]]", "{a: 1}", "[{a: [1]}]", "!!python/object:helper.Make {}",
    "!!python/object/apply:os.system [touch ran-yaml]", "!!python/name:helper.make", '"a\\0b"',
    "!!set {a, b}",
)  # fmt: skip
NEVER_A_NUMBER = (
    ".nan", ".inf", "-.inf",
    "-1", "-1e308", "word", "[1, 2]", "1_0_0x", "190:20:30", "9" * 5000, "1e999", "true",
    "2001-01-01",
    "!!binary aGVsbG8=", "'1 2'", "0x", "1e400",
)  # fmt: skip
NEVER_WHOLE = ("1.5", "1e-3", ".5", "0.1")
ODD = (
    "0", "1", "2", "''", "null", "~", "1e308", "5e-324", "1e30", "1e9", "999999999999",
    "18446744073709551616",
    "0o17", "0x10", "0b1", "1_000", "yes", "no", "'0'", "auto", "all", "x",
    "'" + "y" * 100_000 + "'",
    "../outside/salary", "/etc/passwd", "[0]", "[]", "'\\ud800'", "1.0", "-0.0", "b_line=nan",
    "b_line=1,b_line=1",
)  # fmt: skip
CODE = ("http.server:test", "helper:make", "antigravity:geohash", ":a", "helper:", "json:loads")
# Honest values of these take longer than a case may: other processes, Ray, torch.
LEFT_OUT = (
    "runner",
    "algo",
    "learner",
    "device",
    "compile",
    "config",
    "resume",
    "merge",
    "output_dir",
    "ray_address",
)


def make_config(dice: Dice, places: Places) -> Case:
    honest = (places.templates / "plain" / "config.yaml").read_bytes()
    way = choose(dice, (_damaged, _structure, _structure, _values, _values, _values, _code))
    content, told, must_refuse, settings = way(dice, honest)
    file = places.case / "hostile.yaml"
    file.write_bytes(content)
    commands = [["train"], ["train"], ["train", "resume"]]
    if must_refuse:
        commands += [["search"], ["sweep"]]
    command = choose(dice, commands)
    what = f"{' '.join(command)}: {told}"
    if command[-1] == "resume":
        shutil.copytree(places.templates / "plain", places.run)
        file.replace(places.run / "config.yaml")
        return Case(what, ["train", "--resume", "case/run", "--total-steps", "80"], must_refuse)
    if command == ["sweep"]:
        more = ["--over", "gamma=0.9,0.99", "--output-dir", "case/out"]
        return Case(what, ["sweep", "case/hostile.yaml", *more], must_refuse)
    flags = [
        word
        for name, value in BUDGET.items()
        if name not in settings
        for word in (f"--{name.replace('_', '-')}", value)
    ]
    if command == ["search"]:
        flags = []
    return Case(
        what,
        [*command, "--config", "case/hostile.yaml", "--output-dir", "case/out", *flags],
        must_refuse,
    )


Made = tuple[bytes, str, bool, list[str]]


def _damaged(dice: Dice, honest: bytes) -> Made:
    """Any letter may have become another; flags keep the budget small."""
    content, what = damage_bytes(dice, honest)
    return content, what, False, []


def _values(dice: Dice, _honest: bytes) -> Made:
    """Values of the wrong kind or size for settings."""
    hints = typing.get_type_hints(TrainConfig)
    names = [item.name for item in dataclasses.fields(TrainConfig) if item.name not in LEFT_OUT]
    settings: dict[str, str] = {}
    must_refuse = False
    for _ in range(int(choose(dice, (1, 1, 1, 2, 5)))):
        name = choose(dice, names)
        kinds = {kind for kind in _kinds(hints[name]) if kind is not type(None)}
        is_number = kinds <= {int, float}
        refused = [
            *NEVER,
            *(NEVER_A_NUMBER if is_number else ()),
            *(NEVER_WHOLE if kinds == {int} else ()),
        ]
        if typing.get_origin(hints[name]) is tuple:
            refused = [one for one in refused if not one.startswith("[1")]
        has_no_meaning = dice.random() < 0.6
        settings[name] = choose(dice, refused if has_no_meaning else ODD)
        must_refuse |= has_no_meaning
    if settings.keys() & {"total_steps"}:
        settings.pop("total_episodes", None)
    content = "".join(f"{name}: {value}\n" for name, value in settings.items())
    told = ", ".join(f"{name}: {value:.30}" for name, value in settings.items())
    return content.encode(), told, must_refuse, list(settings)


def _kinds(hint: Any) -> set[Any]:
    inner = () if typing.get_origin(hint) is Callable else typing.get_args(hint)
    return set().union(*(_kinds(one) for one in inner if one is not ...)) if inner else {hint}


def _code(dice: Dice, _honest: bytes) -> Made:
    name, value = choose(dice, ("env", "network")), choose(dice, CODE)
    return f"{name}: '{value}'\n".encode(), f"{name}: {value}", True, []


def _structure(dice: Dice, honest: bytes) -> Made:
    """Text that is no short table of words and numbers."""
    told, content = choose(dice, list(_structures(dice, honest).items()))
    return content if isinstance(content, bytes) else content.encode(), told, True, []


def _structures(dice: Dice, honest: bytes) -> dict[str, str | bytes]:
    depth, size = int(choose(dice, (50, 2000, 200_000))), int(choose(dice, (1000, 200_000)))
    levels = int(dice.integers(8, 40))
    laughs = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, levels))
    merged = "".join(
        f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}], k{i}: 1}}\n" for i in range(1, levels)
    )
    names = [item.name for item in dataclasses.fields(SearchConfig)]
    twice = choose(dice, names)
    return {
        "nothing": "", "a word": "word", "a number": "3", "a list": "- 1\n- 2\n",
        "only a comment": "# x\n",
        "aliases that multiply": "a0: &a0 [1]\n" + laughs + f"hidden: *a{levels - 1}\n",
        "merges that multiply": "a0: &a0 {k: 1}\n" + merged + f"hidden: *a{levels - 1}\n",
        "an alias": "seed: &a 1\nnum_envs: *a\n", "an alias of itself": "hidden: &a [*a]\n",
        "a key twice": honest + f"{twice}: 1\n{twice}: 1\n".encode(),
        "a key twice, with - and _": "n-envs: 2\nnum-envs: 2\nnum_envs: 2\n",
        "deep lists": "hidden: " + "[" * depth + "]" * depth,
        "deep tables": "hidden: " + "{a: " * depth + "}" * depth,
        "open brackets": "[" * depth, "deep questions": "? " * depth, "deep dashes": "- " * depth,
        "a long list": "hidden: [" + "1, " * size + "1]",
        "a long list of lines": "condition:\n" + "- 1\n" * size,
        "many keys": "".join(f"key{i}: 1\n" for i in range(size)),
        "a long key": "k" * size + ": 1\n", "a long word": f"red_agent: {'x' * size}\n",
        "many digits": f"seed: {'9' * int(choose(dice, (400, 5000, 100_000)))}\n",
        "many digits after a point": f"gamma: 1.{'9' * size}e-{'9' * 50}x\n",
        "NUL": "seed: 1\0\n", "binary": dice.bytes(2000), "not UTF-8": b"seed: \xff\n",
        "two documents": "seed: 1\n---\nseed: 2\n", "tabs": "seed:\n\t- 1\n",
        "a tag": "!!python/object/new:os.system [touch ran-yaml]\n",
        "a tag of a key": "!!python/name:os.system : 1\n",
        "an unknown tag": "!helper x\n", "a directive": "%YAML 9.9\n---\nseed: 1\n",
        "numbers as keys": "1: 2\n", "nothing as a key": "null: 2\n",
        "a list as a key": "? [1, 2]\n: 3\n",
        "a table as a key": "? {a: 1}\n: 3\n", "dates": "2001-01-01: 2001-01-01\n",
        "a private key": "__class__: 1\n",
        "an unknown key": f"{'x' * 20}: 1\n", "a hidden key": "\u202eseed: 1\n",
        "UTF-16": "sees: 1\n".encode("utf-16"),
    }  # fmt: skip


assert yaml.safe_load("a: 190:20:30")["a"] == 685_230  # YAML 1.1 counts by sixty
