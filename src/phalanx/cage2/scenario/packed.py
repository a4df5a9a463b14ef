"""The files of a scenario as text, to go with a policy: whoever has the policy has its network."""

import atexit
import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from phalanx.cage2.scenario.keys import LARGEST_FILE
from phalanx.cage2.scenario.names import CAGE2_NAME, give_name, says_all
from phalanx.errors import ConfigError
from phalanx.files import Facts, read_plain

Packed = dict[str, str]
MOST_TEXT = 1 << 21  # characters of all files
MOST_FILES = 1000
ENDINGS = (".yaml", ".yml")
_UNPACKED: dict[tuple[str, str], str] = {}  # where files are now, by their name and what they say
_NAME = re.compile(r"(images/)?[\w][\w .+-]{0,200}", re.ASCII)


def files_of(folder: Path) -> list[Path]:
    """The scenarios of a folder, by name."""
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix in ENDINGS)
    except OSError as error:
        raise ConfigError(f"cannot read {folder}: {error.strerror or error}") from None
    if not 0 < len(found) <= MOST_FILES:
        raise ConfigError(
            f"{folder} has {len(found)} scenarios ({', '.join(ENDINGS)}); give 1 to {MOST_FILES}"
        )
    return found


def pack(source: str) -> Packed:
    """The files that a scenario consists of, by name; none if its name says all."""
    if says_all(source):
        return {}
    path = Path(source)
    paths = files_of(path) if path.is_dir() else [path]
    images = paths[0].parent / "images"
    if images.is_dir():
        paths += sorted(one for one in images.iterdir() if one.is_file())
    try:
        packed = {
            f"{'images/' if one.parent == images else ''}{one.name}": read_plain(
                one, LARGEST_FILE
            ).decode()
            for one in paths
        }
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the scenario {source}: {error}") from None
    if not is_packed(packed):
        raise ConfigError(
            f"scenario {source} cannot go with a policy: {len(packed)} files, "
            f"{sum(map(len, packed.values())):,} characters; at most {MOST_FILES} with plain "
            f"names, {MOST_TEXT:,} characters"
        )
    return packed


def is_packed(value: object) -> bool:
    """Whether it is what `pack` gives: it may come from anyone."""
    return (
        isinstance(value, dict)
        and len(value) <= MOST_FILES
        and all(isinstance(name, str) and _NAME.fullmatch(name) for name in value)
        and all(isinstance(text, str) for text in value.values())
        and sum(map(len, value.values())) <= MOST_TEXT
    )


def unpack(packed: Mapping[str, str], source: str) -> str:
    """Where the files now are, in a folder of this process's own.

    source: what the scenario was called when it was packed.
    """
    if not packed:
        return source
    mark = (source, _mark(packed))
    if mark not in _UNPACKED:
        _UNPACKED[mark] = _put_aside(packed)
        give_name(_UNPACKED[mark], source)
    return _UNPACKED[mark]


def scenario_of(facts: Facts) -> str:
    """The network that a policy was trained on, by the facts of its file."""
    name = facts.get("config", {}).get("scenario", CAGE2_NAME)
    return unpack(facts.get("scenario", {}), str(name))


def _put_aside(packed: Mapping[str, str]) -> str:
    folder = Path(tempfile.mkdtemp(prefix="phalanx-scenario-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "images").mkdir()
    for name, text in packed.items():
        (folder / name).write_text(text)
    files = [name for name in packed if not name.startswith("images/")]
    if not any(name.startswith("images/") for name in packed):
        (folder / "images").rmdir()
    return str(folder if len(files) > 1 else folder / files[0])


def fingerprint(source: str) -> str:
    """The same for the same networks, wherever their files are."""
    return _mark(pack(source) or {source: ""})


def _mark(packed: Mapping[str, str]) -> str:
    parts = (f"{name}\0{packed[name]}" for name in sorted(packed))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
