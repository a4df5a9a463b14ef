"""The names and numbers people give for a game, checked and turned into what the rules use."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, DRAWN, NUM_ACTIONS, RED_AGENTS, RULE_SETS
from phalanx.errors import ActionError, ConfigError, choices
from phalanx.machine import count_cores

MAX_HORIZON = 10_000
MAX_THREADS = 1024
SIMULATORS = ("phalanx", "cyborg")
OBSERVATIONS = ("bits", "history", "memory", "truth", "belief")
# Whom training meets if nothing else is said: the challenge's attackers, and a few others, so that
# a defender does not break when it meets one that is new to it. A belief expects the same but for
# `coin`, who can do nearly anything: that leaves many states possible, and turns take twice as long
DEFAULT_RED_AGENTS = (
    "b_line=0.46,meander=0.46,sleep=0.02,b_line_detour=0.02,meander_rescan=0.02,coin=0.02"
)
DEFAULT_PRIOR = "b_line=0.47,meander=0.47,sleep=0.02,b_line_detour=0.02,meander_rescan=0.02"
ORIGINAL_RED_AGENTS = "b_line=0.49,meander=0.49,sleep=0.02"  # the same for the original simulator

RedAgent = object  # a name, a mixture of names, a name for each network, an attacker of one's own
FIRST_OWN = len(ALL_RED_AGENTS)


def is_own(name: object) -> bool:
    """Whether it names, or is, an attacker of the user's own: my_file.py:my_red, not b_line:0.5."""
    return not isinstance(name, str) or re.search(r":[^\W\d][^:]*$", name) is not None


def refuse_own(name: object, why: str) -> None:
    """Refuse an attacker of the user's own, in one line that says why."""
    if is_own(name):
        raise ConfigError(f"{name!s:.80} cannot be used here: {why}")


def red_agent_number(name: str) -> int:
    """The number of a red agent by any usual spelling: b_line, B_lineAgent, bline, RedMeanderAgent,
    sleep.
    """
    plain = re.sub(r"[_\- ]", "", str(name).lower()).removeprefix("red").removesuffix("agent")
    known = [agent.replace("_", "") for agent in ALL_RED_AGENTS]
    if plain not in known:
        raise ConfigError(choices("red agent", name, ALL_RED_AGENTS))
    return known.index(plain)


def red_agent_weights(spec: str | Mapping[str, float]) -> dict[str, float]:
    """`"b_line=0.5,meander=0.5"` or a dict of the same as weights by name; one name has the weight
    1.
    """
    weights: dict[str, float] = {}
    for name, weight in spec.items() if isinstance(spec, Mapping) else _pairs(spec):
        agent = name if is_own(name) else ALL_RED_AGENTS[red_agent_number(name)]
        if agent in weights:
            raise ConfigError(f"red agent {agent} is named twice in {spec!r}; give each one weight")
        try:
            weights[agent] = float(weight)
        except (TypeError, ValueError):
            raise ConfigError(
                f"{weight!r} in red agents {spec!r} is not a number; write b_line=0.5,meander=0.5"
            ) from None
    if not weights or min(weights.values()) < 0 or not abs(sum(weights.values()) - 1) < 1e-6:
        total = sum(weights.values())
        raise ConfigError(
            f"weights of red agents must be 0 or more and sum to 1, got {weights} (sum {total:g}); "
            "write b_line=0.5,meander=0.5"
        )
    return weights


def prior_weights(spec: str | Mapping[str, float]) -> dict[str, float]:
    """The same for whom a belief expects: those that it can follow."""
    weights = red_agent_weights(spec)
    for name in weights:
        refuse_own(name, "a belief foresees the built-in attackers only; leave it out of the prior")
    return weights


def original_red_agent_weights(spec: str | Mapping[str, float]) -> dict[str, float]:
    """The same for the original simulator, which does not have all of them."""
    weights = red_agent_weights(spec)
    for name in weights:
        refuse_own(name, "the original simulator plays attackers written for it: phalanx record")
        if name not in RED_AGENTS:
            raise ConfigError(
                f"the original simulator has no red agent {name}; choose from "
                f"{', '.join(RED_AGENTS)}, or play against {name} in phalanx"
            )
    return weights


def kinds_of_episodes(spec: str) -> tuple[str, ...]:
    """Names by the number of the attacker: the challenge's own, or all if others take part."""
    names = red_agent_weights(spec)
    own = tuple(name for name in names if is_own(name))
    return (*ALL_RED_AGENTS, *own) if set(names) - set(RED_AGENTS) else RED_AGENTS


def _pairs(spec: str) -> list[tuple[str, float | str]]:
    """Names and weights, as they are written."""
    if "=" in spec:
        parts = [part.rpartition("=") for part in spec.split(",")]
        return [(n.strip(), w) if equals else (w.strip(), "nan") for n, equals, w in parts]
    names = [name.strip() for name in spec.split(",")]
    if len(names) > 1:
        raise ConfigError(
            f"{spec!r} names several red agents; say how often each attacks: "
            + ",".join(f"{name}={1 / len(names):.3g}" for name in names)
        )
    return [(spec, 1.0)]


def red_agent_plan(
    spec: RedAgent, num_envs: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], tuple[object, ...]]:
    """Who attacks each network (or DRAWN), uint8 [N]; the odds where it is drawn, int64; and the
    user's own attackers, in the order of their numbers, which come after those of the built-in.
    """
    if not isinstance(spec, str | Mapping | Sequence | np.ndarray):
        if not callable(spec):
            raise ConfigError(choices("red agent", spec, ALL_RED_AGENTS))
        spec = {spec: 1.0}
    if not isinstance(spec, str | Mapping):
        if len(spec) != num_envs:
            raise ConfigError(
                f"got {len(spec)} red agents for {num_envs} networks; give one name, a mixture, "
                "or one name for each"
            )
        own = tuple(dict.fromkeys(name for name in spec if is_own(name)))
        plan = np.array([_number_of(name, own) for name in spec], np.uint8)
        return plan, np.zeros(FIRST_OWN + len(own), np.int64), own
    weights = red_agent_weights(spec)
    own = tuple(name for name in weights if is_own(name))
    odds = np.zeros(FIRST_OWN + len(own), np.int64)
    if len(weights) == 1:
        return np.full(num_envs, _number_of(next(iter(weights)), own), np.uint8), odds, own
    shares = np.array([weights.get(agent, 0.0) for agent in (*ALL_RED_AGENTS, *own)])
    odds[:] = np.rint(np.cumsum(shares) * 2**32)
    odds[np.flatnonzero(shares)[-1] :] = 2**32
    return np.full(num_envs, DRAWN, np.uint8), odds, own


def _number_of(name: object, own: tuple[object, ...]) -> int:
    return FIRST_OWN + own.index(name) if is_own(name) else red_agent_number(str(name))


def red_agents_of(plan: npt.NDArray[np.uint8], odds: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """The names of all built-in ones that can come up by `red_agent_plan`."""
    drawn = np.flatnonzero(np.diff(odds, prepend=0)) if (plan == DRAWN).any() else ()
    numbers = {*np.unique(plan).tolist(), *(int(k) for k in drawn)} - {DRAWN}
    return tuple(ALL_RED_AGENTS[number] for number in sorted(numbers) if number < FIRST_OWN)


def check_simulator(name: str) -> None:
    """phalanx itself, the original, or one of the user's own."""
    if name not in SIMULATORS and not re.fullmatch(r"[\w.]+:\w+", name):
        raise ConfigError(choices("simulator", name, (*SIMULATORS, "module:factory of your own")))


def rule_set_number(name: str) -> int:
    if name not in RULE_SETS:
        raise ConfigError(choices("rule set", name, RULE_SETS))
    return RULE_SETS.index(name)


def whole(name: str, number: object, low: int, high: int, wanted: str) -> int:
    """A whole number of any kind within its range; `wanted` says which, in words."""
    is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not isinstance(number, int | np.integer) or not is_whole or not low <= number <= high:
        raise ConfigError(f"{name} must be {wanted}, got {number!r}")
    return int(number)


def checked_horizon(horizon: int) -> int:
    wanted = f"a whole number from 1 to {MAX_HORIZON}"
    return whole("horizon", horizon, 1, MAX_HORIZON, wanted)


def checked_green(green: float) -> float:
    """The chance that green acts in a turn."""
    is_number = isinstance(green, int | float | np.number) and not isinstance(green, bool)
    if not is_number or not 0 <= green <= 1:
        raise ConfigError(f"green must be a number from 0 (none) to 1 (every turn), got {green!r}")
    return float(green)


def checked_seed(seed: int) -> int:
    return whole("seed", seed, 0, 2**64 - 1, "a whole number from 0 to 2**64 - 1")


def checked_num_envs(num_envs: int | None) -> int:
    return whole("num_envs", num_envs, 1, 2**62, "a whole number, 1 or more")


def num_envs_of(num_envs: int | None, n_envs: int | None, unsaid: int | None = None) -> int:
    """How many networks, by either of two names; `unsaid` if by none."""
    if num_envs is not None and n_envs is not None:
        raise ConfigError(
            f"num_envs and n_envs are two names for one number; both are given: {num_envs} and "
            f"{n_envs}"
        )
    given = num_envs if n_envs is None else n_envs
    return checked_num_envs(unsaid if given is None else given)


def checked_threads(num_threads: int | str, num_envs: int) -> int:
    """How many threads share a batch; "auto" is one per core, but at least 1 024 networks each."""
    from phalanx.compiled.rule import COMPILED  # not for settings alone: Numba takes long to import

    if num_threads == "auto":
        return max(1, min(count_cores(), num_envs // 1024)) if COMPILED else 1
    threads = whole("num_threads", num_threads, 1, MAX_THREADS, f"1 to {MAX_THREADS}, or 'auto'")
    return min(threads, num_envs) if COMPILED else 1


def checked_choice(chosen: npt.NDArray[np.bool_] | None, num_envs: int) -> npt.NDArray[np.bool_]:
    """Which networks are to begin again, bool [N]; None means all of them."""
    if chosen is None:
        return np.ones(num_envs, np.bool_)
    kind = getattr(chosen, "dtype", type(chosen).__name__)
    if kind != np.bool_ or np.shape(chosen) != (num_envs,):
        raise ConfigError(
            f"which networks to begin again must be a bool array of shape ({num_envs},), "
            f"got {kind} of shape {np.shape(chosen)}"
        )
    return chosen


def checked_actions(
    actions: npt.NDArray[np.integer], num_envs: int, num_actions: int = NUM_ACTIONS
) -> npt.NDArray[np.int64]:
    """Actions that are one of 0..144 for each network; others are refused before the turn."""
    if not isinstance(actions, np.ndarray) or actions.shape != (num_envs,):
        raise ActionError(
            f"actions must be an array of shape ({num_envs},), one whole number per environment; "
            f"got {type(actions).__name__} of shape {np.shape(actions)}"
        )
    if actions.dtype.kind not in "iu":
        raise ActionError(
            f"actions must be whole numbers 0..{num_actions - 1}, got dtype {actions.dtype}"
        )
    if actions.min() < 0 or actions.max() >= num_actions:
        i = int(np.flatnonzero((actions < 0) | (actions >= num_actions))[0])
        raise ActionError(
            f"action {actions[i]} of environment {i} is not one of 0..{num_actions - 1}"
        )
    return np.ascontiguousarray(actions, np.int64)


# --- seeds of a reset, as Gymnasium means them ----------------------------------------------------

Seed = int | Sequence[int | None] | None


def spread_seeds(seed: Seed, num_envs: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """A seed for each network, and which networks got one.

    A number s gives network i the seed s + i. In a list, None leaves a network its dice.
    """
    if seed is None:
        return np.zeros(num_envs, np.uint64), np.zeros(num_envs, np.bool_)
    if not isinstance(seed, Sequence | np.ndarray):
        first = checked_seed(seed)
        checked_seed(first + num_envs - 1)
        return np.arange(num_envs, dtype=np.uint64) + np.uint64(first), np.ones(num_envs, np.bool_)
    seeds = seeds_of_each([0 if one is None else one for one in seed], num_envs)
    return seeds, np.array([one is not None for one in seed], np.bool_)


def seeds_of_each(seeds: Sequence[int], num_envs: int) -> npt.NDArray[np.uint64]:
    if len(seeds) != num_envs:
        raise ConfigError(f"got {len(seeds)} seeds for {num_envs} networks; give one or one each")
    return np.array([checked_seed(seed) for seed in seeds], np.uint64)
