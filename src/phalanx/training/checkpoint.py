"""All that a run needs to continue exactly: arrays and JSON in one file, whole or not at all.

A file may come from anyone. Nothing in it is executed; names, sizes and kinds are compared with
what they must be before memory is taken; a checksum over all of it tells damage.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import numpy as np

from phalanx.arrays import Array, Arrays
from phalanx.arrays_file import ArraysFile, BadArrays, Declared, open_arrays
from phalanx.cage2.scenario.packed import is_packed
from phalanx.errors import CheckpointError
from phalanx.files import Facts
from phalanx.settings.fields import LONGEST_LIST, LONGEST_TEXT
from phalanx.training.time_split import is_split
from phalanx.training.update_record import Episode

FORMAT = 2
MAX_BYTES = 1 << 34  # of a checkpoint; members are not compressed, so the file is as large
MAX_FACTS = 1 << 22  # bytes of JSON; the last 2,000 episodes take a tenth of that
LEARNT = ("theta", "weights_", "obs_")  # how the names of weights begin, and of what goes with them
GAMES = "sampler_"  # ... and of games that were under way
TABLES = ("updates", "episodes")  # that a run goes back to when it is continued
RECENT = 2000  # episodes that a run's returns are taken from
MOST_SETTINGS = 1000

_MEMBER = re.compile(
    r"facts|digest|theta|adam_mean|adam_square|prices|lessons|weights_[\w.]{1,200}|exp_avg(_sq)?_\d{1,6}"
    r"|(obs|return)_(count|mean|var)"
    r"|sampler_(\d{1,6}_)?(nets|memories|odds|infected|next_obs|condition|conducts|own_returns|belief_\w{1,20})",
    re.ASCII,
)


def save_checkpoint(path: Path, arrays: Arrays, facts: Facts) -> None:
    """Write beside the file, flush to disk, rename: the last good one survives whatever happens."""
    beside = path.with_name(f".{path.name}.tmp")
    text = json.dumps({"format": FORMAT, **facts}, allow_nan=False).encode()
    members = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    members["facts"] = np.frombuffer(text, np.uint8)
    declared = {name: Declared(array.shape, array.dtype) for name, array in members.items()}
    digest = _digest(declared, ((name, [members[name].data]) for name in sorted(members)))
    members["digest"] = np.frombuffer(digest, np.uint8)
    try:
        beside.unlink(missing_ok=True)  # of a run that was killed while writing, or a link
        with beside.open("xb") as file:
            np.savez(file, allow_pickle=False, **members)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise CheckpointError(
            f"cannot write {path}: {error.strerror}; the last checkpoint is kept"
        ) from None
    finally:
        beside.unlink(missing_ok=True)


def last_checkpoint(path: Path) -> Path:
    """The newest checkpoint of a run folder, or a search's winner; a file is taken as it is."""
    winner, last = path / "policies" / "winner.npz", path / "checkpoints" / "last.npz"
    if not path.is_dir():
        return path
    return winner if winner.exists() and not last.exists() else last


def read_facts(path: Path) -> tuple[Facts, dict[str, Declared]]:
    """The facts of a checkpoint, and the declared shapes of its arrays; no array is read."""
    with _opened(path) as (_file, facts, declared):
        return facts, declared


def load_checkpoint(
    path: Path, template: Mapping[str, Array] | None = None
) -> tuple[Arrays, Facts]:
    """The arrays and facts of a checkpoint.

    template: arrays of the shapes and kinds that the file's must have; it may have no others.
        Without one, all that was learnt is read, and no games.
    """
    with _opened(path) as (file, facts, declared):
        if template is None:
            declared = {k: v for k, v in declared.items() if not k.startswith(GAMES)}
        else:
            _check_fits(path, declared, template)
        arrays = {name: file.read(name) for name in declared}
        _check_digest(file)
    return arrays, facts


def _check_fits(
    path: Path, declared: Mapping[str, Declared], template: Mapping[str, Array]
) -> None:
    for name, is_declared in declared.items():
        mine = template.get(name)
        if mine is None or (mine.shape, mine.dtype) != (is_declared.shape, is_declared.dtype):
            needed = "no such" if mine is None else str(Declared(mine.shape, mine.dtype))
            raise CheckpointError(
                f"{path} does not fit: {name} is {is_declared}, {needed} is needed; give it the "
                "settings that it was trained with"
            )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[ArraysFile, Facts, dict[str, Declared]]]:
    """A checkpoint, its facts, and the declared shapes of its arrays; what is wrong in one line."""
    try:
        with open_arrays(
            path, is_known=lambda name: bool(_MEMBER.fullmatch(name)), max_bytes=MAX_BYTES
        ) as file:
            declared = {k: v for k, v in file.declared.items() if k not in ("facts", "digest")}
            yield file, _facts_of(path, file), declared
    except FileNotFoundError:
        raise CheckpointError(f"there is no checkpoint {path}") from None
    except BadArrays as error:
        raise CheckpointError(f"{path} is not a whole checkpoint of phalanx ({error})") from None
    except OSError as error:
        raise CheckpointError(
            f"cannot read the checkpoint {path}: {error.strerror or error}"
        ) from None


def _facts_of(path: Path, file: ArraysFile) -> Facts:
    is_text = file.declared.get("facts")
    if is_text is None or is_text.dtype != np.uint8 or is_text.num_bytes > MAX_FACTS:
        raise BadArrays("it has no facts, or too many")
    facts = _checked_facts(file.read("facts").tobytes())
    if facts.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is no checkpoint of this version of phalanx, which reads format {FORMAT}, "
            f"not {facts.get('format')!r:.20}"
        )
    return facts


def _check_digest(file: ArraysFile) -> None:
    declared = {name: one for name, one in file.declared.items() if name != "digest"}
    given = file.declared.get("digest")
    if given is None or given.num_bytes != hashlib.sha256().digest_size:
        raise BadArrays("it has no checksum")
    digest = _digest(declared, ((name, file.pieces(name)) for name in sorted(declared)))
    if file.read("digest").tobytes() != digest:
        raise BadArrays("its checksum is that of other numbers")


def _digest(
    declared: Mapping[str, Declared], numbers: Iterable[tuple[str, Iterable[bytes | memoryview]]]
) -> bytes:
    """One for all names, kinds, shapes and numbers."""
    total = hashlib.sha256()
    for name, pieces in numbers:
        total.update(f"{name} {declared[name]}\n".encode())
        for piece in pieces:
            total.update(piece)
    return total.digest()


# --- facts: JSON from a file that anyone may have written -----------------------------------------


def _checked_facts(text: bytes) -> Facts:
    """The facts, if each is of its kind; whoever needs one that is missing will say so."""
    try:
        facts = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadArrays(f"its facts are no JSON: {str(error)[:100]}") from None
    if not isinstance(facts, dict):
        raise BadArrays("its facts are no table")
    for name, is_right in _FACTS.items():
        if name in facts and not is_right(facts[name]):
            raise BadArrays(f"its {name} are not what phalanx writes")
    return facts


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _is_number(value: object) -> bool:
    is_plain = type(value) in (int, float)
    return is_plain and isinstance(value, int | float) and math.isfinite(value)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and "\0" not in value


def _is_setting(value: object) -> bool:
    if isinstance(value, list):
        return _is_list(value, lambda one: not isinstance(one, list) and _is_setting(one))
    return value is None or isinstance(value, bool) or _is_number(value) or _is_word(value)


def _is_episode(value: object) -> bool:
    kinds = {int: _is_count, float: _is_number, str: _is_word}
    rights = [kinds[kind] for kind in Episode.__annotations__.values()]
    return (
        isinstance(value, list)
        and len(value) in (len(rights) - 1, len(rights))  # once there were no own returns
        and all(is_right(one) for is_right, one in zip(rights, value, strict=False))
    )


def _is_list(value: object, is_right: Callable[[object], bool], most: int = LONGEST_LIST) -> bool:
    return isinstance(value, list) and len(value) <= most and all(map(is_right, value))


def _is_table(
    value: object, is_right: Callable[[object], bool], names: Iterable[str] | None = None
) -> bool:
    """names: those that it must have, if they are known."""
    if not isinstance(value, dict) or len(value) > MOST_SETTINGS or not all(map(_is_word, value)):
        return False
    return (names is None or set(value) == set(names)) and all(map(is_right, value.values()))


_FACTS: dict[str, Callable[[object], bool]] = {
    "scenario": is_packed,
    "config": lambda value: _is_table(value, _is_setting),
    "tables": lambda value: _is_table(value, _is_count, TABLES),
    "seconds": lambda value: _is_table(value, _is_number) and is_split(value),
    "recent": lambda value: _is_list(value, _is_episode, RECENT),
    "elapsed_s": _is_number,
    **dict.fromkeys(("updates", "episodes", "steps", "adam_steps"), _is_count),
}
