"""Settings of every command: frozen dataclasses whose fields are the command line's flags.

The string under a field is its help. What cannot work is refused when the object is made.
"""

import ast
import dataclasses
import inspect
import textwrap
import typing
from argparse import ArgumentParser
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Union

from phalanx.cage2.defenders import DEFENDERS, make_defender
from phalanx.cage2.scenario import RED_AGENTS
from phalanx.cage2.settings import (
    checked_horizon,
    checked_seed,
    checked_threads,
    red_agent_weights,
    rule_set_number,
)
from phalanx.errors import ConfigError
from phalanx.results import check_writable

MAX_NETWORKS = 100_000_000
MAX_EPISODES = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """Play many episodes with scripted defenders and print the table of returns."""

    policy: tuple[str, ...] = DEFENDERS
    """scripted defenders: sleep, random, react-remove, react-restore"""
    red_agent: tuple[str, ...] = RED_AGENTS
    """attackers: b_line, meander, sleep, or a mixture such as b_line=0.5,meander=0.5"""
    horizon: tuple[int, ...] = (30, 50, 100)
    """turns of an episode, 1 to 10000"""
    episodes: int = 1000
    """episodes per cell of the table"""
    rules: str = "2.1-final"
    """rule set: 2.1-final, or 2.1-leaderboard as the challenge was scored"""
    seed: int = 0
    """the only source of chance; equal seeds give equal tables"""
    num_threads: int | str = "auto"
    """threads that play; results do not depend on it"""
    json: Path | None = None
    """also write the table to this file"""

    def __post_init__(self) -> None:
        for name in self.policy:
            make_defender(name)
        for spec in self.red_agent:
            red_agent_weights(spec)
        for horizon in self.horizon:
            checked_horizon(horizon)
        if not 2 <= self.episodes <= MAX_EPISODES:
            raise ConfigError(
                f"episodes must be from 2 (for a standard error) to {MAX_EPISODES}, "
                f"got {self.episodes}"
            )
        rule_set_number(self.rules)
        checked_seed(self.seed)
        checked_threads(self.num_threads, 1)
        check_writable(self.json)


@dataclass(frozen=True, kw_only=True)
class VerifyConfig:
    """Replay recorded games of the original; a difference is named, and gives exit code 1."""

    folder: Path = field(metadata={"positional": True})
    """folder with codebook.json and .npz traces"""
    rules: str | None = None
    """the rule set the traces must be of; taken from codebook.json if not given"""
    json: Path | None = None
    """also write the result to this file"""

    def __post_init__(self) -> None:
        if self.rules is not None:
            rule_set_number(self.rules)
        check_writable(self.json)


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """Measure the speed of the simulator, and of the original beside it where that is installed."""

    what: str = field(default="sim", metadata={"positional": True})
    """what to measure: sim"""
    num_envs: tuple[int, ...] = (1, 1024, 4096, 65536, 1_000_000)
    """batch sizes"""
    red_agent: tuple[str, ...] = ("meander", "b_line")
    """attackers"""
    rounds: int = 5
    """each case is measured once a round, in turn with the others; the median counts"""
    seconds: float = 0.3
    """time per case and round"""
    json: Path | None = None
    """also write the figures to this file"""

    def __post_init__(self) -> None:
        if self.what != "sim":
            raise ConfigError(f"unknown benchmark {self.what!r}: choose sim")
        if not 1 <= min(self.num_envs) <= max(self.num_envs) <= MAX_NETWORKS:
            raise ConfigError(f"num_envs must be from 1 to {MAX_NETWORKS}, got {self.num_envs}")
        if self.rounds < 1 or not 0 < self.seconds < float("inf"):
            raise ConfigError(
                f"rounds must be 1 or more and seconds above 0, got {self.rounds}, {self.seconds}"
            )
        for spec in self.red_agent:
            red_agent_weights(spec)
        check_writable(self.json)


# --- from the command line ----------------------------------------------------------------------


def add_flags(parser: ArgumentParser, config: type) -> None:
    """A flag (or a positional argument) for every field of a config class."""
    helps, types = field_helps(config), typing.get_type_hints(config)
    for item in dataclasses.fields(config):
        kind, many = _plain_type(types[item.name])
        text = helps[item.name] + _default_text(item)
        options: dict[str, Any] = {"help": text.replace("%", "%%"), "metavar": item.name.upper()}
        if item.metadata.get("positional"):
            required = item.default is dataclasses.MISSING
            parser.add_argument(item.name, type=kind, nargs=None if required else "?", **options)
        elif many:
            parser.add_argument(f"--{_dashed(item.name)}", nargs="+", action="extend", **options)
        else:
            parser.add_argument(f"--{_dashed(item.name)}", type=kind, **options)


def from_flags(config: type, values: dict[str, Any]) -> Any:
    """The config object of parsed flags; those not given keep their defaults."""
    types = typing.get_type_hints(config)
    given: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
            continue
        kind, many = _plain_type(types[name])
        if many:
            value = tuple(_convert(name, kind, part) for part in _split(value))
            if not value:
                raise ConfigError(f"--{_dashed(name)} needs at least one value")
        given[name] = value
    return config(**given)


def field_helps(config: type) -> dict[str, str]:
    """The string under each field."""
    body = ast.parse(textwrap.dedent(inspect.getsource(config))).body[0].body  # type: ignore[attr-defined]
    helps = {}
    for statement, below in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(below, ast.Expr):
            helps[statement.target.id] = ast.literal_eval(below.value)  # type: ignore[union-attr]
    return helps


def _plain_type(hint: Any) -> tuple[Any, bool]:
    """What converts one word of the command line, and whether several may be given."""
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True
    if typing.get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return (_number_or_word if set(kinds) == {int, str} else kinds[0]), False
    return hint, False


def _number_or_word(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text


def _split(words: list[str]) -> list[str]:
    """`a,b c` as three; a mixture such as `a=0.5,b=0.5` stays whole."""
    return [part for word in words for part in ([word] if "=" in word else word.split(",")) if part]


def _convert(name: str, kind: Any, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ConfigError(f"--{_dashed(name)}: {text!r} is not a whole number") from None


def _default_text(item: Any) -> str:
    if item.default in (dataclasses.MISSING, None):
        return ""
    value = item.default
    return f" (default: {' '.join(map(str, value)) if isinstance(value, tuple) else value})"


def _dashed(name: str) -> str:
    return name.replace("_", "-")
