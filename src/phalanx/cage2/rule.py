"""`@rule` and `@kernel`: compile the game, and keep what was compiled until any file of this folder
changes.
"""

import contextlib
import fcntl
import hashlib
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import config as numba_config

Function = TypeVar("Function", bound=Callable[..., Any])
HERE = Path(__file__).parent

COMPILED = not numba_config.DISABLE_JIT


def rule(function: Function) -> Function:
    """A small function of one network, compiled into whoever calls it."""
    return numba.njit(function, inline="never", forceinline=True, error_model="numpy")


def kernel(function: Function) -> Function:
    """A loop over networks: compiled, free of the interpreter lock, and kept on disk."""
    compiled = numba.njit(function, nogil=True, error_model="numpy", boundscheck=False)
    folder = cache_folder()
    if COMPILED and folder is not None:
        # Numba looks only at the kernel's own file: after an edit of blue.py it would go on playing
        # the old rule. A folder named by all files cannot.
        before, numba_config.CACHE_DIR = numba_config.CACHE_DIR, str(folder)
        try:
            compiled.enable_caching()
        finally:
            numba_config.CACHE_DIR = before
    return compiled


def records(shape: int | tuple[int, ...], dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """A batch of zeroed records that rules can take: as numpy's own class where not compiled."""
    batch = np.zeros(shape, dtype)
    return batch if COMPILED else batch.view(np.recarray)


def source_hash() -> str:
    """A name for what is compiled, as it is written now: the hash of all files that hold some."""
    digest = hashlib.sha256()
    for path in sorted(HERE.parent.glob("*/*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """Where compiled kernels of these rules are kept; None, and one warning, if nowhere can be."""
    folder = _cache_root() / f"cage2-{source_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        warnings.warn(
            f"cannot write to {folder} ({error.strerror}): the simulator will be compiled anew in "
            "each process; set PHALANX_CACHE_DIR to a writable folder",
            RuntimeWarning,
            stacklevel=1,
        )
        return None
    return folder


def _cache_root() -> Path:
    chosen = os.environ.get("PHALANX_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "phalanx"


def announce_compilation(kernel: Callable[..., Any]) -> None:
    """Say once, before the first call, that compiling takes a while; silent if it is on disk."""
    if COMPILED and not _announced and not _is_kept(kernel):
        _announced.add(kernel.__name__)
        print(
            "phalanx: compiling the simulator, once; this takes ten to twenty seconds",
            file=sys.stderr,
            flush=True,
        )


@contextlib.contextmanager
def compiled_by_one(kernel: Callable[..., Any]) -> Iterator[None]:
    """Around a call: of the processes that begin at the same time one compiles, others wait."""
    folder = cache_folder()
    with contextlib.ExitStack() as until_called:
        if kernel.__name__ not in _called and folder is not None and not _is_kept(kernel):
            lock = until_called.enter_context((folder / ".lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_kept(kernel):  # by another, meanwhile
                fcntl.flock(lock, fcntl.LOCK_UN)
        yield
    _called.add(kernel.__name__)


def _is_kept(kernel: Callable[..., Any]) -> bool:
    folder = cache_folder()
    return folder is not None and any(folder.rglob(f"*.{kernel.__name__}-*.nbc"))


_announced: set[str] = set()
_called: set[str] = set()

if not COMPILED:
    np.seterr(over="ignore")  # the dice wrap around, and plain numpy would warn
