"""Settings are checked when they are given: kinds, ranges and choices stand at their fields.

IMPALA = Only("--algo impala", lambda mine: mine.algo == "impala")

@checked
@dataclass(frozen=True, kw_only=True)
class Mine:
    section("algorithm")
    algo: Annotated[str, OneOf("ppo", "impala")] = "ppo"
    "the string under a field is its help on the command line"
    section("algorithm", rarely=True)
    replay: Annotated[int, Within(0, 100), IMPALA] = 0

Mine(replay=-1)  # ConfigError: replay must be from 0 to 100, got -1
without_effect(Mine(replay=4))  # {"replay": "--algo impala"}
"""

import typing
from collections.abc import Callable, Container, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, Union

from phalanx.errors import ConfigError, RunError, choices
from phalanx.files import Facts

LONGEST_TEXT = 10_000
LONGEST_LIST = 256
LARGEST = 2**64


class Dataclass(Protocol):
    """What all settings are."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


Made = TypeVar("Made", bound=Dataclass)

_WANTED: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    Path: "a path",
}


@dataclass(frozen=True)
class Within:
    """The range of a number, or of each number of a list."""

    low: float
    high: float

    def check(self, name: str, value: object) -> None:
        if isinstance(value, int | float) and not self.low <= value <= self.high:
            raise ConfigError(
                f"{name} must be from {_plain(self.low)} to {_plain(self.high)}, got {value}"
            )


@dataclass(frozen=True)
class Above(Within):
    """The same without its lower end."""

    def check(self, name: str, value: object) -> None:
        if isinstance(value, int | float) and not self.low < value <= self.high:
            raise ConfigError(
                f"{name} must be more than {_plain(self.low)}, at most {_plain(self.high)}, "
                f"got {value}"
            )


class OneOf:
    """The words that may be given."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def check(self, name: str, value: object) -> None:
        if isinstance(value, str) and value not in self.words:
            raise ConfigError(choices(name, value, filter(None, self.words)))


class OrWord(OneOf):
    """The words that may be given instead of a number."""

    def check(self, name: str, value: object) -> None:
        if isinstance(value, str) and value not in self.words:
            raise ConfigError(
                f"{name} must be a whole number or {' or '.join(self.words)}, got {value!r:.80}"
            )


class FolderName:
    """The name of a folder to be made, not a path to one."""

    def check(self, name: str, value: object) -> None:
        if isinstance(value, str) and (value in ("", "..") or Path(value).name != value):
            raise ConfigError(
                f"--{name} {value!r:.80} is no folder's name; give its place as --output-dir"
            )


@dataclass(frozen=True)
class Only:
    """When a setting has an effect: in words, and as a question to the whole object."""

    what: str
    holds: Callable[[Any], bool]  # of any command's settings


def section(heading: str, *, rarely: bool = False) -> None:
    """Put the fields below under a heading of the help, which is read from the class's source.

    rarely: only `--help-all` shows them.
    """


def checked(config: type[Made]) -> type[Made]:
    """A dataclass whose values are checked and understood before it is made."""
    plain = config.__init__

    @wraps(plain)
    def understand(self: Made, **given: object) -> None:
        named = _named(config, given)
        plain(self, **{name: _checked(config, name, value) for name, value in named.items()})

    config.__init__ = understand  # type: ignore[assignment, method-assign]
    return config


def without_effect(config: Dataclass) -> dict[str, str]:
    """The settings that were changed and change nothing here: each with what it is for."""
    hints = hints_of(type(config))
    return {
        item.name: note.what
        for item in fields(config)
        for note in hints[item.name][1]
        if isinstance(note, Only) and not note.holds(config)
        if getattr(config, item.name) != _default(config, item)
    }


def effective(config: Made) -> Made:
    """The same settings, without those that change nothing."""
    defaults = {item.name: _default(config, item) for item in fields(config)}
    return replace(config, **{name: defaults[name] for name in without_effect(config)})


def values_of(config: Dataclass, but: Container[str] = ()) -> Facts:
    """Settings by name."""
    names = (item.name for item in fields(config) if item.name not in but)
    return {name: getattr(config, name) for name in names}


@cache
def hints_of(config: type[Dataclass]) -> dict[str, tuple[object, tuple[object, ...]]]:
    """The type of each field, and what is noted beside it."""
    found: dict[str, tuple[object, tuple[object, ...]]] = {}
    hints = typing.get_type_hints(config, include_extras=True)
    for item in fields(config):
        hint = hints[item.name]
        noted = typing.get_origin(hint) is Annotated
        hint, *notes = typing.get_args(hint) if noted else (hint,)
        found[item.name] = hint, tuple(notes)
    return found


@cache
def aliases_of(config: type[Dataclass]) -> dict[str, str]:
    """Other names that people use for a setting, as Python and YAML write them."""
    return {
        flag.removeprefix("--").replace("-", "_"): item.name
        for item in fields(config)
        for flag in item.metadata.get("aliases", ())
    }


def setting_named(config: type[Dataclass], name: str) -> str:
    """The setting that a name means; one line for a name that means none."""
    name = name.replace("-", "_")
    known = hints_of(config)
    name = aliases_of(config).get(name, name)
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}?" if near else "see --help-all for all that there are"
        raise ConfigError(f"there is no setting {name!r:.80}; {hint}")
    return name


def check_same(
    folder: Path,
    mine: Mapping[str, object],
    saved: Mapping[str, object],
    but: Container[str],
    done: str,
) -> None:
    """Refuse to go on in a folder with other settings than it was begun with.

    but: settings that may change. done: what was done there, such as "trained".
    """
    differ = [name for name in mine if name not in but and mine[name] != saved.get(name)]
    if differ:
        raise RunError(
            f"{folder} was {done} with another {', '.join(differ)}; leave that out, or begin a new "
            f"{'search' if done == 'searched' else 'run'}"
        )


def by_env(cage2: object, other: object, **metadata: object) -> Any:
    """A field whose default is one for CAGE-2 and another for all other environments.

    impala, a3c: both for that algorithm, if they are different.
    continuous, images: ppo's other one for such tasks, known when the environment is open.
    """
    return field(default=None, metadata={"cage2": cage2, "other": other, **metadata})


def _named(config: type[Dataclass], given: dict[str, object]) -> dict[str, object]:
    """The settings by their own names."""
    named: dict[str, object] = {}
    for word, value in given.items():
        name = setting_named(config, word)
        if name in named:
            raise ConfigError(f"{name} is given twice, once as {word}; give one of them")
        named[name] = value
    return named


def _default(config: Any, item: Field[object]) -> object:
    """A default that depends on other settings is told by the object."""
    return config.default_by_env(item.metadata) if "cage2" in item.metadata else item.default


def _checked(config: type[Dataclass], name: str, value: Any) -> object:
    hint, notes = hints_of(config)[name]
    default = config.__dataclass_fields__[name].default
    if value is None and (default is None or NoneType in typing.get_args(hint)):
        return None
    kinds = kinds_of(hint)
    if kinds == (tuple,):
        (kind, _ellipsis) = typing.get_args(hint)
        if not isinstance(value, list | tuple) and not hasattr(value, "tolist"):
            raise ConfigError(f"{name} must be a list, got {value!r:.80}")
        value = tuple(_of_kind(name, (kind,), part) for part in value)
        if len(value) > LONGEST_LIST:
            raise ConfigError(f"{name} has {len(value)} values; {LONGEST_LIST} at most")
        parts = value
    else:
        value = _of_kind(name, kinds, value)
        parts = (value,)
    for note in notes:
        if hasattr(note, "check"):
            for part in parts:
                note.check(name, part)
    return value


def kinds_of(hint: object) -> tuple[object, ...]:
    """The types that a value may have."""
    if typing.get_origin(hint) in (Union, UnionType):
        return tuple(kind for kind in typing.get_args(hint) if kind is not NoneType)
    return (typing.get_origin(hint) or hint,)


def _of_kind(name: str, kinds: tuple[object, ...], value: object) -> object:
    """A value as one of these types; whole numbers stay whole, and all numbers are finite."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # of numpy
    if isinstance(value, bool):
        if bool in kinds:
            return value
    elif isinstance(value, int | float):
        if not -LARGEST < value < LARGEST:  # nor NaN
            raise ConfigError(f"{name} must be a number of at most 64 bits")
        if int in kinds and value == int(value):
            return int(value)
        if float in kinds:
            return float(value)
    elif isinstance(value, str | Path):
        if "\0" in str(value) or len(str(value)) > LONGEST_TEXT:
            raise ConfigError(f"{name} is too long, or has a character that no name can have")
        if Path in kinds:
            return Path(value)
        if str in kinds:
            return str(value)
    elif callable(value) and any(typing.get_origin(kind) is Callable for kind in kinds):
        return value
    wanted = " or ".join(_WANTED.get(kind, "a function") for kind in kinds)
    raise ConfigError(f"{name} must be {wanted}, got {value!r:.80}")


def _plain(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"
