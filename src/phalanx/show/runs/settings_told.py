"""What a run was told: settings that differ from the defaults first, then all others."""

from pathlib import Path
from typing import NamedTuple

from phalanx.errors import ConfigError
from phalanx.search.config import SearchConfig
from phalanx.settings.flags import from_file, helps_of
from phalanx.show.runs.runs import is_search, settings_of
from phalanx.training.config import TrainConfig

DECIDES = ("env", "algo", "runner")  # what other settings have their defaults by


class Setting(NamedTuple):
    """One setting of a run, in words."""

    name: str
    value: str
    default: str
    about: str

    @property
    def differs(self) -> bool:
        return self.value != self.default


def told_settings(folder: Path) -> tuple[list[Setting], str]:
    """All settings of a run, and a sentence if some cannot be understood; none without any."""
    words, why = settings_of(folder)
    if not words:
        return [], why
    kind = SearchConfig if is_search(words) else TrainConfig
    helps = helps_of(kind)
    try:
        given = from_file(kind, folder / "config.yaml")
        mine = kind(**given).as_dict()
        basis = {name: given[name] for name in DECIDES if name in given}
        defaults = kind(**basis).for_task("").as_dict()  # an environment's kind decides a few more
    except ConfigError:  # of another version, or by hand
        why = "config.yaml has settings that this version of phalanx does not know."
        mine, defaults = dict(words), kind().as_dict()
    abouts = {name: helps[name].text if name in helps else "" for name in mine}
    found = [
        Setting(name, in_words(value), in_words(defaults.get(name)), abouts[name])
        for name, value in mine.items()
    ]
    return found, why


def in_words(value: object) -> str:
    """As one would write it after a flag."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(in_words, value)) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
