"""The facts of a checkpoint: JSON from a file that anyone may have written, checked by kind."""

import json
import math
from typing import Any

from phalanx.settings.fields import LONGEST_LIST, LONGEST_TEXT
from phalanx.training.update_record import Episode

MOST_SETTINGS = 1000
TABLES = ("updates", "episodes")  # that a run goes back to when it is continued
COUNTS = ("updates", "episodes", "steps", "adam_steps")
SECONDS = ("collect", "learn", "other")
RECENT = 2000  # episodes that a run's returns are taken from


class BadFacts(Exception):
    """Why the facts are none that phalanx has written."""


def checked_facts(text: bytes) -> dict[str, Any]:
    """The facts, if each is of its kind; one that is missing is missed by whoever needs it."""
    try:
        facts = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadFacts(f"its facts are no JSON: {str(error)[:100]}") from None
    if not isinstance(facts, dict):
        raise BadFacts("its facts are no table")
    for name, is_right in _KINDS.items():
        if name in facts and not is_right(facts[name]):
            raise BadFacts(f"its {name} are not what phalanx writes")
    return facts


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _is_setting(value: object) -> bool:
    if isinstance(value, list):
        return len(value) <= LONGEST_LIST and all(map(_is_scalar, value))
    return _is_scalar(value)


def _is_scalar(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT and "\0" not in value
    return value is None or isinstance(value, bool) or _is_number(value)


def _are_settings(value: object) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MOST_SETTINGS
        and all(map(_is_scalar, value))
        and all(map(_is_setting, value.values()))
    )


def _are_table_sizes(value: object) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == set(TABLES)
        and all(map(_is_count, value.values()))
    )


def _are_seconds(value: object) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == set(SECONDS)
        and all(map(_is_number, value.values()))
    )


def _are_episodes(value: object) -> bool:
    return isinstance(value, list) and len(value) <= RECENT and all(map(_is_episode, value))


def _is_episode(value: object) -> bool:
    if not isinstance(value, list) or len(value) != len(Episode._fields):
        return False
    env, kind, length, total, order, fixes, compliant, alignment = value
    counts = (env, length, order, fixes, compliant)
    return (
        isinstance(kind, str)
        and all(map(_is_count, counts))
        and _is_number(total)
        and _is_number(alignment)
    )


_KINDS = {
    "config": _are_settings,
    "tables": _are_table_sizes,
    "seconds": _are_seconds,
    "recent": _are_episodes,
    "elapsed_s": _is_number,
    **dict.fromkeys(COUNTS, _is_count),
}
