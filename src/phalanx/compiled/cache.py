"""Compiled kernels on disk, until a file that they were made from changes.

They are machine code and pickles: whoever can write them can run anything. So they are read only
from a folder that no other user can write, through a descriptor of that folder, and each begins
with its checksum.
"""

import contextlib
import hashlib
import os
import pickle
import stat
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from time import monotonic, sleep

import llvmlite
import numba
from numba.core.codegen import Codegen
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from phalanx.compiled.llvm import Context, Types
from phalanx.system import UNIX, Folder, is_ours, open_folder, take_lock

PACKAGE = Path(__file__).parent.parent
COMPILED_FOLDERS = ("bench", "bound", "cage2", "compiled", "learn")
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
DIGEST = hashlib.sha256
TURN_S = 300.0  # how long another process, which may have been stopped, is waited for
PROBE = ".writable"


class KeptKernel:
    """One function's compiled forms, as Numba's `Dispatcher` asks for them."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    @property
    def cache_path(self) -> str:
        return str(cache_folder())

    def flush(self) -> None:
        """Forget nothing: what another source has made has another name."""

    def lock(self, types: Types, target: Context) -> str:
        """The name of the file that whoever compiles for these types holds."""
        return self._name(types, target.codegen()).removesuffix(".nbc") + ".lock"

    def is_kept(self, types: Types, target: Context) -> bool:
        """Whether there is a file for arguments of these types."""
        folder = cache_folder()
        return folder is not None and (folder / self._name(types, target.codegen())).exists()

    def load_overload(self, types: Types, target: Context) -> CompileResult | None:
        """What was compiled for these types; None if it was not, or if that cannot be used."""
        target.refresh()
        name, folder = self._name(types, target.codegen()), cache_folder()
        if folder is None:
            return None
        try:
            with (
                open_private(folder) as place,
                open(place.open(name, os.O_RDONLY), "rb") as file,
            ):
                content = file.read()
            code = content[DIGEST().digest_size :]
            if content != _with_checksum(name, code):
                raise ValueError("its checksum is wrong")
            return CompileResult._rebuild(target, *pickle.loads(code))
        except FileNotFoundError:
            return None
        except Exception as error:  # a pickle that another Numba has written may raise anything
            say(f"cannot use {folder / name} ({error!s:.100}); it is compiled again")
            return None

    def save_overload(self, types: Types, result: CompileResult) -> None:
        name, folder = self._name(types, result.codegen), cache_folder()
        if folder is None or result.library.has_dynamic_globals:
            return
        content = _with_checksum(name, dumps(result._reduce()))
        try:
            with open_private(folder) as place:
                # Whole or not at all; what a killed process has left is written over by the next.
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                with open(place.open(f"{name}.tmp", flags), "wb") as file:
                    file.write(content)
                place.replace(f"{name}.tmp", name)
        except OSError as error:
            why = error.strerror or error
            say(f"cannot keep {folder / name} ({why}); it will be compiled again")

    def _name(self, types: Types, codegen: Codegen) -> str:
        """By all that the code depends on."""
        function, code = self._function, self._function.__code__
        versions = numba.__version__, llvmlite.__version__, sys.implementation.cache_tag
        place = function.__module__, code.co_firstlineno, code.co_code
        depends_on = source_hash(), *versions, *place, types, codegen.magic_tuple()
        digest = DIGEST(repr(depends_on).encode()).hexdigest()[:16]
        return f"{function.__module__}.{function.__qualname__}-{digest}.nbc"


@contextlib.contextmanager
def taking_turns(lock: str, is_done: Callable[[], bool]) -> Iterator[None]:
    """Of processes that need the same kernel one compiles; the others wait until it is done."""
    folder, until = cache_folder(), monotonic() + TURN_S
    with contextlib.ExitStack() as after:
        if folder is not None:
            with contextlib.suppress(OSError), open_private(folder) as place:
                held = place.open(lock, os.O_RDWR | os.O_CREAT)
                after.callback(os.close, held)
                while not take_lock(held) and not is_done() and monotonic() < until:
                    sleep(0.05)
        yield


def say(line: str) -> None:
    print(f"phalanx: {line}", file=sys.stderr, flush=True)


# --- the folder -----------------------------------------------------------------------------------


@cache
def source_hash() -> str:
    """A name for what is compiled, as it is written now: the hash of all files that hold some."""
    digest = DIGEST()
    for folder in COMPILED_FOLDERS:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(PACKAGE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """Where compiled kernels of these rules are kept; None, and one line, if nowhere can be."""
    folder = _cache_root() / f"cage2-{source_hash()}"
    try:
        _make_private(folder.parent)
        _check_root(folder.parent.stat())
        _make_private(folder)
        with open_private(folder) as place:
            os.close(place.open(PROBE, os.O_RDWR | os.O_CREAT))
    except _NotOurs as error:
        what = f"will not load code from {folder} ({error})"
    except OSError as error:
        what = f"cannot write to {folder} ({error.strerror})"
    else:
        return folder
    say(
        f"{what}: all is compiled again in each process; set PHALANX_CACHE_DIR to a folder that "
        "only you can write"
    )
    return None


def _cache_root() -> Path:
    chosen = os.environ.get("PHALANX_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "phalanx"


class _NotOurs(OSError):
    """Why what lies in a folder may be somebody else's."""


def _make_private(folder: Path) -> None:
    """The folder and all above it that are missing: for this user alone, whatever the umask."""
    if not folder.is_dir():
        _make_private(folder.parent)
        with contextlib.suppress(FileExistsError):  # another process was quicker
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)


def _check_root(status: os.stat_result) -> None:
    """A folder that others share must at least keep them from what is not theirs: be sticky."""
    if not UNIX or status.st_mode & stat.S_ISVTX:
        return
    if status.st_uid != 0 and not is_ours(status):
        raise _NotOurs("the folder above belongs to another user")
    if status.st_mode & stat.S_IWOTH:
        raise _NotOurs("everybody can write to the folder above")


@contextlib.contextmanager
def open_private(folder: Path) -> Iterator[Folder]:
    """A folder that is ours alone: whoever moves it cannot change what we read."""
    if folder.is_symlink():
        raise _NotOurs("it is a link")
    with open_folder(folder) as place:
        status = place.status()
        if not is_ours(status):
            raise _NotOurs("it belongs to another user")
        if UNIX and status.st_mode & OTHERS_MAY_WRITE:
            raise _NotOurs("other users can write to it")
        yield place


def _with_checksum(name: str, code: bytes) -> bytes:
    return DIGEST(name.encode() + b"\0" + code).digest() + code
