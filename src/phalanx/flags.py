"""From the command line and YAML files to the frozen settings of `config.py`, and back to help."""

import ast
import dataclasses
import inspect
import re
import textwrap
import typing
from argparse import ArgumentParser, ArgumentTypeError
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Union

from phalanx.errors import ConfigError, choices
from phalanx.run_folder import read_config


def add_flags(parser: ArgumentParser, config: type) -> None:
    """A flag (or a positional argument) for every field of a config class."""
    helps, types = field_helps(config), typing.get_type_hints(config)
    for item in dataclasses.fields(config):
        kind, many = _plain_type(types[item.name])
        text = helps[item.name] + _default_text(item)
        metavar = item.metadata.get("metavar", item.name.upper())
        options: dict[str, Any] = {"help": text.replace("%", "%%"), "metavar": metavar}
        if item.metadata.get("positional"):
            required = item.default is dataclasses.MISSING
            parser.add_argument(item.name, type=kind, nargs=None if required else "?", **options)
        else:
            flags = (f"--{_dashed(item.name)}", *item.metadata.get("aliases", ()))
            if many:
                parser.add_argument(*flags, dest=item.name, nargs="+", action="extend", **options)
            elif types[item.name] is bool:  # --flag, --flag true, --flag false
                options |= {"nargs": "?", "const": True}
                parser.add_argument(*flags, dest=item.name, type=kind, **options)
            else:
                parser.add_argument(*flags, dest=item.name, type=kind, **options)


def from_flags(config: type, values: dict[str, Any]) -> Any:
    """The config object of parsed flags; below them those of a file, below these the defaults."""
    types = typing.get_type_hints(config)
    given: dict[str, Any] = {}
    resume, file = values.get("resume"), values.get("config")
    if resume is not None:
        given |= from_file(config, resume / "config.yaml")
    if file is not None:
        given |= from_file(config, file)
    for name, value in values.items():
        if value is None:
            continue
        kind, many = _plain_type(types[name])
        if many:
            value = tuple(_convert(name, kind, part) for part in _split(value, kind))
            if not value:
                raise ConfigError(f"--{_dashed(name)} needs at least one value")
        given[name] = value
    return config(**given)


def from_file(config: type, path: Path) -> dict[str, Any]:
    """The settings of a YAML file; unknown ones are refused."""
    settings, types = read_config(path), typing.get_type_hints(config)
    given = {}
    for key, value in settings.items():
        name = str(key).replace("-", "_")
        if name not in types:
            raise ConfigError(f"{path}: {choices('setting', key, types)}")
        if value is None:
            continue
        try:
            given[name] = _from_yaml(name, types[name], value)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
    return given


def _from_yaml(name: str, hint: Any, value: Any) -> Any:
    kind, many = _plain_type(hint)
    if many:
        parts = value if isinstance(value, list) else _split([str(value)], kind)
        return tuple(_convert(name, kind, part) for part in parts)
    return _convert(name, kind, str(value) if kind in (_number_or_word, _yes_or_no) else value)


def from_word(config: type, name: str, word: str) -> Any:
    """The value of one setting, as written in a single word; several numbers as `64x64`."""
    kind, many = _plain_type(typing.get_type_hints(config)[name])
    if many:
        return tuple(_convert(name, kind, part) for part in _split([word], kind))
    return _convert(name, kind, word)


def field_helps(config: type) -> dict[str, str]:
    """The string under each field."""
    helps = {}
    for kind in reversed([kind for kind in config.__mro__ if dataclasses.is_dataclass(kind)]):
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
        for statement, below in pairwise(body):
            if isinstance(statement, ast.AnnAssign) and isinstance(below, ast.Expr):
                text = ast.literal_eval(below.value)
                helps[statement.target.id] = " ".join(text.split())  # type: ignore[union-attr]
    return helps


def _plain_type(hint: Any) -> tuple[Any, bool]:
    """What converts one word of the command line, and whether several may be given."""
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True
    if typing.get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return (_number_or_word if set(kinds) == {int, str} else kinds[0]), False
    return (_yes_or_no if hint is bool else hint), False


def _yes_or_no(text: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise ArgumentTypeError(f"{text!r} is neither true nor false")
    return words[text.lower()]


def _number_or_word(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text


def _split(words: list[str], kind: Any) -> list[str]:
    """`a,b c` as three, `64x64` as two numbers; a mixture such as `a=0.5,b=0.5` stays whole."""
    if kind is not str:
        return [part for part in re.split(r"(?<=\d)x(?=\d)|,", ",".join(words)) if part]
    return [part for word in words for part in ([word] if "=" in word else word.split(",")) if part]


def _convert(name: str, kind: Any, text: Any) -> Any:
    try:
        return kind(text)
    except ArgumentTypeError as error:
        raise ConfigError(f"--{_dashed(name)}: {error}") from None
    except (TypeError, ValueError):
        wanted = "whole number" if kind is int else "number" if kind is float else "value for it"
        raise ConfigError(f"--{_dashed(name)}: {text!r} is not a {wanted}") from None


def _default_text(item: Any) -> str:
    if "cage2" in item.metadata:
        cage2, other = item.metadata["cage2"], item.metadata["other"]
        both = cage2 if cage2 == other else f"{cage2} for cage2, {other} for others"
        for algo in ("impala", "a3c"):
            if algo in item.metadata:
                first, second = item.metadata[algo]
                both = f"{both}; with {algo} {first}, {second}"
        return f" (default: {both})"
    if item.default in (dataclasses.MISSING, None, "", ()):
        return ""
    value = item.default
    return f" (default: {' '.join(map(str, value)) if isinstance(value, tuple) else value})"


def _dashed(name: str) -> str:
    return name.replace("_", "-")
