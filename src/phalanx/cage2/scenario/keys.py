"""Reading YAML key by key: what is wrong is refused in one line that names the key."""

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import yaml

from phalanx.errors import ConfigError, choices
from phalanx.files import read_plain

Given = Any  # a value of a YAML file: whoever asks for it checks it
Meaning = TypeVar("Meaning")
LARGEST_FILE = 1 << 20  # bytes; Scenario2.yaml has 9,000


class Keys:
    """A mapping of a file, and where it stands there."""

    def __init__(self, file: str, where: tuple[str, ...], content: Mapping[str, object]) -> None:
        self.file, self.where, self.content = file, where, content

    def get(self, key: str, unsaid: object = None) -> Given:
        return self.content.get(key, unsaid)

    def needed(self, key: str) -> Given:
        if key not in self.content:
            refuse(self, key, "is missing")
        return self.content[key]

    def part(self, key: str, unsaid: Mapping[str, object] | None = None) -> "Keys":
        """The mapping under a key."""
        content = self.get(key, unsaid)
        content = self.needed(key) if content is None else content
        if not isinstance(content, Mapping):
            refuse(self, key, f"must be a mapping, got {_short(content)}")
        return Keys(self.file, (*self.where, key), content)

    def parts(self, key: str, unsaid: object = None) -> Iterator["Keys"]:
        """The mappings of the list under a key."""
        for k, content in enumerate(self.items(key, unsaid)):
            if not isinstance(content, Mapping):
                refuse(self, f"{key}[{k}]", f"must be a mapping, got {_short(content)}")
            yield Keys(self.file, (*self.where, f"{key}[{k}]"), content)

    def items(self, key: str, unsaid: object = None) -> list[Given]:
        """The list under a key."""
        content = self.get(key, unsaid)
        content = self.needed(key) if content is None else content
        if not isinstance(content, list | tuple):
            refuse(self, key, f"must be a list, got {_short(content)}")
        return list(content)

    def names(self, key: str, unsaid: object = None) -> list[str]:
        """The list of names under a key."""
        names = self.items(key, unsaid)
        for name in names:
            if not isinstance(name, str):
                refuse(self, key, f"must be a list of names, got {_short(name)} in it")
        return names

    def whole(self, key: str) -> int:
        content = self.needed(key)
        if not isinstance(content, int) or isinstance(content, bool) or content < 0:
            refuse(self, key, f"must be a whole number, 0 or more, got {_short(content)}")
        return content

    def text(self, key: str) -> str:
        content = self.needed(key)
        if not isinstance(content, str):
            refuse(self, key, f"must be a name, got {_short(content)}")
        return content

    def choice(
        self, key: str, allowed: Mapping[str, Meaning], unsaid: str | None = None
    ) -> Meaning:
        """What one of some words stands for."""
        word = self.needed(key) if unsaid is None else self.get(key, unsaid)
        if str(word) not in allowed:
            refuse(self, key, choices("value", word, allowed))
        return allowed[str(word)]

    def only(self, *allowed: str) -> None:
        """Refuse keys that nobody would look at."""
        for key in self.content:
            if key not in allowed:
                refuse(self, str(key), f"is not known here; known are {', '.join(allowed)}")


def refuse(keys: Keys, key: str, why: str) -> NoReturn:
    raise ConfigError(f"{keys.file}: {'.'.join((*keys.where, key))}: {why}")


def _short(content: object) -> str:
    text = repr(content)
    return text if len(text) <= 40 else f"{text[:37]}..."


class _Loader(yaml.SafeLoader):
    """Plain data; keys are names as they stand there, and none is given twice."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.YAMLError(f"a key is no name (line {key.start_mark.line + 1})")
            if key.value in seen:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"{key.value} is given twice (line {line})")
            seen.add(key.value)
            key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)


def read_keys(path: Path) -> Keys:
    """A YAML file that holds a mapping."""
    try:
        content = read_plain(path, LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise ConfigError(f"{path} is no scenario: it has more than {LARGEST_FILE} bytes")
        data = yaml.load(content.decode(), Loader=_Loader)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"{path} is not YAML: {reason}") from None
    if not isinstance(data, Mapping):
        raise ConfigError(f"{path} must hold a mapping (Agents, Hosts, Subnets), and holds none")
    return Keys(str(path), (), data)
