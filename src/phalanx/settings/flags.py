"""From the command line and YAML files to frozen settings, and from their classes to help."""

import ast
import dataclasses
import inspect
import math
import re
import textwrap
import typing
from argparse import SUPPRESS, ArgumentParser, _ActionsContainer
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from phalanx.configs import config_path
from phalanx.errors import ConfigError
from phalanx.files import Facts
from phalanx.settings.fields import (
    Dataclass,
    Made,
    hints_of,
    kinds_of,
    setting_named,
    without_effect,
)
from phalanx.settings.yaml_file import Words, read_settings
from phalanx.trust import IN_THE_GAME, check_cluster, check_named, say_where

NOT_IN_FILES = ("resume", "config", "track", "quiet")  # a file does not send anything anywhere


class Help(NamedTuple):
    """What stands around a field in its class."""

    section: str
    is_rare: bool
    """shown by --help-all only"""
    text: str


def add_flags(parser: ArgumentParser, config: type[Dataclass], everything: bool = False) -> None:
    """A flag (or a positional argument) for every field of a config class; all values are words.

    everything: explain also those that are rarely used.
    """
    helps, heading, usage = helps_of(config), "", [parser.prog]
    group: _ActionsContainer = parser
    for name, (section, is_rare, text) in helps.items():
        item = config.__dataclass_fields__[name]
        kind, many = _kind_of(config, name)
        default = default_of(item)
        text = f"{text} (default: {default})" if default else text
        text = SUPPRESS if is_rare and not everything else text
        metavar = item.metadata.get("metavar", name.upper())
        options: dict[str, Any] = {"help": text.replace("%", "%%"), "metavar": metavar}
        if item.metadata.get("positional"):
            is_needed = item.default is dataclasses.MISSING
            parser.add_argument(name, nargs="*" if many else None if is_needed else "?", **options)
            usage.append(metavar if is_needed else f"[{metavar}{' ...' * many}]")
            continue
        if many:
            options |= {"nargs": "+", "action": "extend"}
        elif kind is bool:  # --flag, --flag true, --flag false
            options |= {"nargs": "?", "const": "true"}
        if section != heading:
            heading, group = section, parser.add_argument_group(section)
        group.add_argument(*flags_of(item), dest=name, **options)
    has_rare = any(help.is_rare for help in helps.values())
    more = "show the same with all flags" if has_rare else SUPPRESS
    parser.add_argument("--help-all", action="help", help=more)
    parser.usage = " ".join([*usage, "[flags]"])


def flags_of(item: dataclasses.Field[object]) -> tuple[str, ...]:
    """The flag of a field, and its other names; a positional argument has none."""
    if item.metadata.get("positional"):
        return ()
    return (f"--{_dashed(item.name)}", *item.metadata.get("aliases", ()))


def from_flags(config: type[Made], values: Mapping[str, Words]) -> Made:
    """The config object of parsed flags; they take precedence over a file, and it over defaults."""
    given: dict[str, object] = {}
    flags = {
        name: from_words(config, name, words)
        for name, words in values.items()
        if words not in (None, [])
    }
    resume, file = flags.get("resume"), flags.get("config")
    own_file = getattr(config, "own_file", None)
    if own_file is not None and resume is None:
        file = flags["config"] = own_file(flags)
    above = None if resume is None else resume / "config.yaml"
    for path in (above, None if file is None else config_path(file)):
        if path is not None:
            settings = from_file(config, path)
            # What a teacher did lies in the checkpoint: a run that goes on does not ask it again.
            also = IN_THE_GAME if path is above else (*IN_THE_GAME, "teacher")
            check_named(settings, flags, path, also=also)
            check_cluster(settings, flags, path)
            say_where(settings, flags, path)
            given |= settings
    if "total_episodes" in flags and "total_steps" not in flags:
        given.pop("total_steps", None)  # the budget of a file, in another unit
    made = config(**given | flags)
    for name, what in without_effect(made).items():
        if name in flags and flags[name] is not False:  # which is what happens anyway
            raise ConfigError(
                f"--{_dashed(name)} has no effect here, it is for {what}; leave it out"
            )
    return made


def from_file(config: type[Dataclass], path: Path) -> Facts:
    """The settings of a YAML file; unknown ones are refused."""
    given: dict[str, object] = {}
    for word, words in read_settings(path).items():
        try:
            name = setting_named(config, word)
            if name in NOT_IN_FILES:
                raise ConfigError(f"{name} is a flag, not a setting of a file")
            if name in given:
                raise ConfigError(f"{name} is given twice, once as {word}; leave one")
            if words is not None:
                given[name] = from_words(config, name, words)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
    return given


def from_words(config: type[Dataclass], name: str, words: str | list[str]) -> Any:
    """The value of a setting as it is written: one word, or several for a list (or `64x64`)."""
    kind, many = _kind_of(config, name)
    if many:
        parts = [words] if isinstance(words, str) else words
        if "positional" not in config.__dataclass_fields__[name].metadata:  # paths may have commas
            parts = _split(parts, kind)
        if not parts and words:  # a file may say that a list is empty
            raise ConfigError(f"--{_dashed(name)} needs at least one value")
        return tuple(_convert(name, kind, part) for part in parts)
    if isinstance(words, list):
        raise ConfigError(f"--{_dashed(name)} takes one value, got a list of {len(words)}")
    return _convert(name, kind, words)


@cache
def helps_of(config: type) -> dict[str, Help]:
    """The section of each field and the string under it; what is inherited is last, and rare."""
    helps: dict[str, Help] = {}
    for kind in filter(dataclasses.is_dataclass, config.__mro__):
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
        section, rare = "", list[ast.keyword]()
        for statement, below in pairwise(body):
            match statement, below:
                case ast.Expr(ast.Call(args=[ast.Constant(str(section))], keywords=rare)), _:
                    pass
                case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    is_rare = bool(rare) or kind is not config
                    helps.setdefault(name, Help(section, is_rare, " ".join(text.split())))
    return helps


def _kind_of(config: type[Dataclass], name: str) -> tuple[Callable[[str], object], bool]:
    """What one word of a setting is to become, and whether several may be given."""
    hint, _notes = hints_of(config)[name]
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True
    kinds = {kind for kind in kinds_of(hint) if kind in (int, float, bool, str, Path)}
    return (_number_or_word if kinds == {int, str} else kinds.pop()), False


def _whole(text: str) -> int:
    """`100000`, `100_000` or `1e5`."""
    try:
        return int(text)
    except ValueError:
        if not float(text).is_integer():
            raise
        return int(float(text))


def _number(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError
    return float(text)


def _number_or_word(text: str) -> int | str:
    try:
        return _whole(text)
    except ValueError:
        return text


_YES_OR_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_READ: dict[object, tuple[Callable[[str], object], str]] = {
    int: (_whole, "not a whole number"),
    float: (_number, "not a number"),
    bool: (lambda text: _YES_OR_NO[text.lower()], "neither true nor false"),
}


def _split(words: list[str], kind: object) -> list[str]:
    """`a,b c` as three, `64x64` as two numbers; a mixture such as `a=0.5,b=0.5` stays whole."""
    if kind is not str:
        return [part for part in re.split(r"(?<=\d)x(?=\d)|,", ",".join(words)) if part]
    return [part for word in words for part in ([word] if "=" in word else word.split(",")) if part]


def _convert(name: str, kind: Callable[[str], object], text: str) -> object:
    read, what = _READ.get(kind, (kind, ""))
    try:
        return read(text)
    except (KeyError, ValueError):
        raise ConfigError(f"--{_dashed(name)}: {text!r:.80} is {what}") from None


def default_of(item: dataclasses.Field[object]) -> str:
    """The default of a field in words, with what it depends on; empty if there is none."""
    if "cage2" in item.metadata:
        pair = {"cage2": item.metadata["cage2"], "others": item.metadata["other"]}
        words = [f"{value} for {which}" for which, value in pair.items() if value is not None]
        both = pair["cage2"] if pair["cage2"] == pair["others"] else ", ".join(words)
        for algo in ("impala", "a3c"):
            if algo in item.metadata:
                first, second = item.metadata[algo]
                both = f"{both}; with {algo} {first}, {second}"
        for task in ("continuous", "images"):
            if task in item.metadata:
                both = f"{both}; ppo, {task} {item.metadata[task]}"
        return str(both)
    if item.default in (dataclasses.MISSING, None, "", ()):
        return ""
    value = item.default
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _dashed(name: str) -> str:
    return name.replace("_", "-")
