"""Results on disk: whole or not at all."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from phalanx.errors import ConfigError
from phalanx.system import AT_ONCE

Facts = dict[str, Any]  # as JSON has them: a file can hold anything, and its reader checks it


def open_plain(path: Path) -> BinaryIO:
    """A file to read from; what is none (a pipe, a device) would be waited for without end."""
    file = os.fdopen(os.open(path, os.O_RDONLY | AT_ONCE), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return file


def read_plain(path: Path, most: int) -> bytes:
    """What a file holds, or its first bytes if it has more."""
    with open_plain(path) as file:
        return file.read(most)


def check_writable(path: Path | None) -> None:
    """Refuse a result file that cannot be written, before time is spent on the result."""
    if path is None or _is_device(path):
        return
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; give the name of a file")
    beside = _beside(path.resolve())
    try:
        beside.touch(exist_ok=False)
        beside.unlink()
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; give another file") from None


def write_json(path: Path, result: object) -> None:
    """A result as JSON: whole or not at all."""
    write_text(path, json.dumps(result, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a result where the user wants it: to a device, or through a link of the user's."""
    try:
        if _is_device(path):
            path.write_text(text, encoding="utf-8")
        else:
            replace_text(path.resolve(), text)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None


def replace_text(path: Path, text: str) -> None:
    """Write beside the file and rename: a reader never sees half of it, and no link is followed."""
    beside = _beside(path)
    beside.unlink(missing_ok=True)
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    """Such as /dev/stdout: written to, never replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")
