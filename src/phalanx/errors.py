"""Every error that phalanx raises on purpose.

PhalanxError
├── ConfigError       a setting, flag or argument that cannot work
│   └── KindError     ... because it is of another type than is wanted
├── ActionError       an action that is not one of 0..144, or not one per network
├── TraceError        a recorded trace that cannot be read
├── CheckpointError   a checkpoint that cannot be read or written
├── RunError          a run folder that cannot be used, or a run that cannot go on
├── WorkerError       environments that failed more often than the pool may restart them
└── MissingError      something optional that is not installed; the message says how to get it
"""

from collections.abc import Iterable
from difflib import get_close_matches


class PhalanxError(Exception):
    """What was given, what is demanded, and the way out, in one line."""


class ConfigError(PhalanxError, ValueError):
    """A setting that cannot work, refused before anything is started."""


class KindError(ConfigError, TypeError):
    """A setting or argument of another type than is wanted; Gymnasium raises TypeError for it."""


class ActionError(PhalanxError, ValueError):
    """An action that the game does not have; nothing was played."""


class TraceError(PhalanxError, ValueError):
    """A recorded trace that cannot be read, or is of another rule set."""


class CheckpointError(PhalanxError):
    """A checkpoint that cannot be read or written."""


class RunError(PhalanxError):
    """A run folder that cannot be used, or a run that cannot go on."""


class WorkerError(PhalanxError, RuntimeError):
    """Environments or workers that failed and could not be replaced; `fault` is the last one."""

    def __init__(self, message: str, fault: object = None) -> None:
        super().__init__(message)
        self.fault = fault


class MissingError(PhalanxError, ImportError):
    """Something optional that is not installed."""


def choices(what: str, given: object, allowed: Iterable[str]) -> str:
    """The line for a name that is not one of those allowed, with the nearest one that is."""
    names = list(allowed)
    given = str(given)[:80]
    near = get_close_matches(given.lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"unknown {what} {given!r}: choose from {', '.join(names)}{hint}"
