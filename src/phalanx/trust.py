"""What a file may name: code that it asks for runs only if the user asks for it too."""

from pathlib import Path
from typing import Any

from phalanx.envs.places import GIVEN
from phalanx.errors import ConfigError

BUILT_IN = ("cage2", "cyborg")
NAMES_CODE = ("env", "network")  # settings that import something
NAMES_MACHINE = "ray_address"  # ... or join machines that are given code, and give back objects


def check_named(settings: dict[str, Any], asked: dict[str, Any], where: Path | str) -> None:
    """Refuse code that only a file names.

    settings: of a checkpoint, or of a YAML file. asked: what the user named besides, as flags or
    arguments. where: the file, for the message.
    """
    for name in NAMES_CODE:
        value = settings.get(name)
        if value is None or asked.get(name) is not None or (name == "env" and _is_known(value)):
            continue
        raise ConfigError(
            f"{where} names the {name} {str(value)[:80]!r}, which is code of yours or another's: "
            f"a file never decides what runs. If you trust it, name it too: --{name} {value!s:.80}"
        )
    cluster = settings.get(NAMES_MACHINE)
    if cluster is not None and asked.get(NAMES_MACHINE) is None:
        raise ConfigError(
            f"{where} names the cluster {str(cluster)[:80]!r}, whose machines would run your code "
            f"and answer it. If you trust it, name it too: --ray-address {cluster!s:.80}"
        )


def _is_known(env: object) -> bool:
    """Built in, or registered with Gymnasium by what is imported already."""
    if env in BUILT_IN or str(env).startswith(GIVEN):  # which names nothing that could be run
        return True
    import gymnasium

    return isinstance(env, str) and ":" not in env and env in gymnasium.registry
