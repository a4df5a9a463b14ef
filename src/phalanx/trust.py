"""What a file may name: code that it asks for runs only if the user asks for it too."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.errors import ConfigError
from phalanx.importing import GIVEN

BUILT_IN = ("cage2", "cyborg")
Settings = Mapping[str, Any]  # plain values by name, as files have them: they are looked at here
NAMES_CODE = ("env", "network", "simulator")  # settings that import something
IN_THE_GAME = ("red_agent", "reward")  # ... only where the game goes on that they are settings of


def check_named(
    settings: Settings,
    asked: Settings,
    where: Path | str,
    how: str = "--{} {}",
    also: tuple[str, ...] = (),
) -> None:
    """Refuse code that only a file names.

    settings: of a checkpoint, or of a YAML file. asked: what the user named besides, as flags or
    arguments. where: the file, and how: what names a setting there, for the message. also: settings
    that import something only in what is about to be done.
    """
    for name, value in _code_of(settings, (*NAMES_CODE, *also)).items():
        if asked.get(name) is None:
            raise ConfigError(
                f"{where} names the {name} {str(value)[:80]!r}, which is code of yours or "
                "another's: a file never decides what runs. If you trust it, name it too: "
                + how.format(name.replace("_", "-"), str(value)[:80])
            )


def check_cluster(settings: Settings, asked: Settings, where: Path | str) -> None:
    """The same for machines that are given code, and whose answers are believed."""
    cluster = settings.get("ray_address")
    if cluster is not None and asked.get("ray_address") is None:
        raise ConfigError(
            f"{where} names the cluster {str(cluster)[:80]!r}, whose machines would run your code "
            f"and answer it. If you trust it, name it too: --ray-address {cluster!s:.80}"
        )


def say_where(settings: Settings, asked: Settings, where: Path | str) -> None:
    """Say it if only a file has runs written outside the current folder.

    Own configs do so for good reasons, and in a run's folder nothing is touched that was there.
    """
    place = settings.get("output_dir")
    if place is None or asked.get("output_dir") is not None:
        return
    if not Path(place).resolve().is_relative_to(Path.cwd()):
        print(f"phalanx: {where} has runs written to {place}", file=sys.stderr)


def asked_again(settings: Settings) -> str:
    """What has to be named again to continue a run with these settings, as flags."""
    again = _code_of(settings, (*NAMES_CODE, *IN_THE_GAME))
    if settings.get("ray_address") is not None:
        again["ray_address"] = settings["ray_address"]
    return "".join(f" --{name.replace('_', '-')} {value}" for name, value in again.items())


def _code_of(settings: Settings, names: tuple[str, ...] = NAMES_CODE) -> dict[str, object]:
    """The settings that import something of the user's."""
    given = {name: settings[name] for name in names if settings.get(name) is not None}
    return {
        k: value for k, value in given.items() if k not in NAMES_NONE or not NAMES_NONE[k](value)
    }


def _is_no_module(teacher: object) -> bool:
    """A run, a file or the name of a defender: numbers, or code of phalanx's own."""
    return ":" not in str(teacher) or Path(str(teacher)).exists()


def _is_built_in(name: object) -> bool:
    """A simulator: phalanx itself, or the original. Attackers: phalanx's own."""
    return ":" not in str(name)


def _is_known(env: object) -> bool:
    """Built in, or registered with Gymnasium by what is imported already."""
    if env in BUILT_IN or str(env).startswith(GIVEN):  # which names nothing that could be run
        return True
    import gymnasium

    return isinstance(env, str) and ":" not in env and env in gymnasium.registry


NAMES_NONE = {
    "env": _is_known,
    "network": lambda name: name == "hosts",
    "teacher": _is_no_module,
    "simulator": _is_built_in,
    "red_agent": _is_built_in,
}  # whether a value of these names no code
