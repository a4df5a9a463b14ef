"""Settings from a YAML file: names, each once, with a word or a short list of words.

A file may come from anyone. It is read as a list of words, which are understood exactly as those of
the command line; what YAML could do besides (objects, references that multiply, numbers in base 60)
is refused with its line.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from phalanx.errors import ConfigError
from phalanx.files import read_plain
from phalanx.settings.fields import LONGEST_LIST

LARGEST_FILE = 1 << 16  # bytes; all settings with their comments take a tenth of that
NOTHING = ("", "~", "null", "Null", "NULL")

Words = str | list[str] | None


def read_settings(path: Path) -> dict[str, Words]:
    """The settings of a file, by the names that they have there; None where nothing is given."""
    try:
        content = read_plain(path, LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise _Refused(f"it has more than the {LARGEST_FILE} bytes that settings take")
        return _settings(yaml.parse(content.decode(), Loader=yaml.SafeLoader))
    except _Refused as error:
        raise ConfigError(f"{path}: {error}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())[:200]}") from None


class _Refused(Exception):
    """Why a file is refused."""


def _settings(events: Iterator[yaml.Event]) -> dict[str, Words]:
    """What the events of a parser say; anything else than `name: value` lines is refused."""
    lines: dict[str, int] = {}
    found: dict[str, Words] = {}
    for kind in (yaml.StreamStartEvent, yaml.DocumentStartEvent, yaml.MappingStartEvent):
        _next(events, kind)
    while not isinstance(
        key := _next(events, yaml.ScalarEvent, yaml.MappingEndEvent), yaml.MappingEndEvent
    ):
        name = key.value.replace("-", "_")
        if name in lines:
            raise _Refused(
                f"{name!r:.80} is given twice, in lines {lines[name]} and {_line(key)}; leave one"
            )
        lines[name] = _line(key)
        found[name] = _value(events)
    _next(events, yaml.DocumentEndEvent)
    _next(events, yaml.StreamEndEvent)
    return found


def _value(events: Iterator[yaml.Event]) -> Words:
    value = _next(events, yaml.ScalarEvent, yaml.SequenceStartEvent)
    if isinstance(value, yaml.ScalarEvent):
        return None if value.style is None and value.value in NOTHING else value.value
    words: list[str] = []
    while not isinstance(
        part := _next(events, yaml.ScalarEvent, yaml.SequenceEndEvent), yaml.SequenceEndEvent
    ):
        words.append(part.value)
        if len(words) > LONGEST_LIST:
            raise _Refused(f"line {_line(part)}: a list has {LONGEST_LIST} values at most")
    return words


def _next(events: Iterator[yaml.Event], *kinds: type[yaml.Event]) -> Any:
    event = next(events)
    if not isinstance(event, kinds):
        raise _Refused(
            f"line {_line(event)}: settings are `name: value` lines, a value is a word or a list "
            "of words"
        )
    if getattr(event, "anchor", None) or getattr(event, "tag", None):
        raise _Refused(f"line {_line(event)}: settings have no & and no ! before them")
    return event


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
