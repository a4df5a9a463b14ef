"""What a network is called: `cage2`, a file, a folder of files, or `random:…`. Reads nothing."""

from pathlib import Path

CAGE2_NAME = "cage2"
RANDOM = "random:"
_NAMED: dict[str, str] = {}  # places of files that came with a policy: as they were called before


def is_random(source: object) -> bool:
    return str(source).startswith(RANDOM)


def says_all(source: str) -> bool:
    """Whether the name is enough: no file is needed."""
    return source == CAGE2_NAME or is_random(source)


def absolute(source: str) -> str:
    """The same, found from anywhere."""
    return source if says_all(source) else str(Path(source).absolute())


def give_name(place: str, name: str) -> None:
    """Let what is at a place be called by another name."""
    _NAMED[place] = name


def as_named(source: str) -> str:
    """What a scenario was called before its files came with a policy."""
    return _NAMED.get(source, source)


def short_name(source: str) -> str:
    """For people: a file by its name alone."""
    return source if says_all(source) else Path(as_named(source)).stem
