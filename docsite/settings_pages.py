"""A page for each command with all of its settings, from the classes that declare them."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, get_args, get_origin

from phalanx.cli.commands import COMMANDS
from phalanx.settings.fields import (
    Above,
    FolderName,
    OneOf,
    Only,
    OrWord,
    Within,
    hints_of,
    kinds_of,
)
from phalanx.settings.flags import Help, default_of, flags_of, helps_of

KINDS = {int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}


def command_list() -> str:
    """The commands, each with a link to its page."""
    rows = [f"| [`phalanx {n}`](settings/{n}.md) | {c.about} |" for n, c in COMMANDS.items()]
    return "\n".join(["| command | what it does |", "|--|--|", *rows])


def settings_page(command: str) -> str:
    """All settings of a command by section, those that are used most first in each."""
    config = COMMANDS[command].config
    items = {item.name: item for item in fields(config)}
    lines = [f"# phalanx {command}", "", inspect.cleandoc(str(config.__doc__)), ""]
    lines += ["```bash", COMMANDS[command].example, "```", ""]
    for heading, helps in sections_of(config).items():
        lines += [f"## {heading.capitalize()}", ""]
        told = False
        for name, help in helps.items():
            if help.is_rare and not told and not all(one.is_rare for one in helps.values()):
                told = True
                lines += ["*Seldom needed, and shown by `--help-all` only:*", ""]
            lines += setting(config, items[name], help)
    return "\n".join(lines)


def sections_of(config: type) -> dict[str, dict[str, Help]]:
    """What the help tells of each setting, by section; those without one come first."""
    sections: dict[str, dict[str, Help]] = {}
    for name, help in helps_of(config).items():
        item = config.__dataclass_fields__[name]  # type: ignore[attr-defined]
        heading = "what is given" if item.metadata.get("positional") else help.section or "flags"
        sections.setdefault(heading, {})[name] = help
    for heading, helps in sections.items():
        sections[heading] = dict(sorted(helps.items(), key=lambda pair: pair[1].is_rare))
    return sections


def setting(config: type, item: Field[Any], help: Help) -> list[str]:
    """One setting: its flag as a heading, what it does, and what may be given."""
    flag, *others = flags_of(item) or (item.metadata.get("metavar", item.name.upper()),)
    facts = list(facts_of(config, item))
    facts += [f"also {' '.join(f'`{other}`' for other in others)}"] if others else []
    return [
        f"#### `{flag}` {{ #{item.name.replace('_', '-')} }}",
        "",
        as_text(help.text),
        "",
        f"<small>{' · '.join(facts)}</small>",
        "",
    ]


def facts_of(config: type, item: Field[Any]) -> Iterator[str]:
    """Kind and range, default, and when the setting has an effect."""
    hint, notes = hints_of(config)[item.name]
    yield kind_of(hint, notes)
    default = default_of(item)
    if default:
        yield f"default {as_text(default)}"
    elif item.default is MISSING:
        yield "needed"
    yield from (f"only for {as_text(note.what)}" for note in notes if isinstance(note, Only))


def kind_of(hint: Any, notes: tuple[Any, ...]) -> str:
    """What may be given, in words: `a whole number from 1 to 100, or auto`."""
    is_list = get_origin(hint) is tuple
    kinds = {get_args(hint)[0]} if is_list else {k for k in kinds_of(hint) if k in (*KINDS, str)}
    numbers = [KINDS[kind] for kind in (int, float, bool, Path) if kind in kinds]
    words = numbers[0] if numbers else "a word"
    for note in notes:
        if isinstance(note, OrWord):
            words += f", or {' or '.join(f'`{word}`' for word in note.words)}"
        elif isinstance(note, OneOf):
            words = "one of " + ", ".join(f"`{word}`" for word in note.words if word)
        elif isinstance(note, Above):
            words += f" above {number(note.low)}, at most {number(note.high)}"
        elif isinstance(note, Within):
            words += f" from {number(note.low)} to {number(note.high)}"
        elif isinstance(note, FolderName):
            words = "a folder's name"
    return f"a list; each {words}" if is_list else words


def number(value: float) -> str:
    """`1,000,000`, `0.999` or `2^64 - 1`."""
    if value == 2**64 - 1:
        return "2<sup>64</sup> - 1"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def as_text(words: str) -> str:
    """Words of the help as Markdown: nothing in them is markup, and flags stand out."""
    safe = words.replace("<", "&lt;").replace("_", "\\_").replace("*", "\\*")
    parts = [f"`{part}`" if part.startswith("--") else part for part in split_flags(safe)]
    return "".join(parts)


def split_flags(words: str) -> list[str]:
    """The words cut where a flag such as --n-envs begins and ends."""
    return [part for part in re.split(r"(?<![\w-])(--[a-z][a-z-]*[a-z])", words) if part]
