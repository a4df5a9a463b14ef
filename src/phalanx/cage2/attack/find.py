"""Attackers that the user names, `my_file.py:my_red` or `my_module:my_red`, or hands over."""

from phalanx.cage2.attack.attacker import Attacker
from phalanx.cage2.attack.python_red import PythonAttacker
from phalanx.errors import ConfigError
from phalanx.importing import find_named

HOW = (
    "decorate a function of (net, memory, die) with @attacker, or give a class with "
    "get_action(observation, action_space); see docs/attackers.md"
)
HANDED = "given:"  # begins the name of one that was handed over, in this process

_handed: dict[str, Attacker | PythonAttacker] = {}


def find_attacker(given: object) -> Attacker | PythonAttacker:
    """The attacker of a name, which is imported; or what was handed over, if it is one."""
    if isinstance(given, str) and given.startswith(HANDED):
        if given not in _handed:
            raise ConfigError(
                f"{given} was handed over in another process; name its file: my_file.py:my_red"
            )
        return _handed[given]
    found = find_named("the attacker", given) if isinstance(given, str) else given
    if isinstance(found, Attacker | PythonAttacker):
        return found
    if isinstance(found, type) and callable(getattr(found, "get_action", None)):
        return PythonAttacker(found)
    name = given if isinstance(given, str) else getattr(given, "__qualname__", repr(given))
    raise ConfigError(f"{name!s:.80} is no attacker; {HOW}")


def name_of(given: object) -> str:
    """A name for settings, of an attacker that may be handed over as it is."""
    if isinstance(given, str):
        return given
    attacker = find_attacker(given)
    _handed[f"{HANDED}{attacker.name}"] = attacker
    return f"{HANDED}{attacker.name}"
