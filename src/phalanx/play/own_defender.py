"""A defender of the user's own, by whichever interface it has: act, get_action, predict, a call."""

import inspect
from collections.abc import Callable
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array
from phalanx.cage2.rules.observation import OBS_SIZES, observation_kind
from phalanx.cage2.rules.scenario import NUM_ACTIONS
from phalanx.cage2.settings import DEFAULT_PRIOR, checked_horizon, rule_set_number
from phalanx.errors import ActionError, ConfigError

WAYS = ("act", "get_action", "predict")  # methods that choose actions, the first that is there
MASKS = ("action_masks", "action_mask", "masks")  # parameters that ask for what can be placed
ASSUMED_HORIZON = 100  # that observations show, unless a defender declares another
WANTED = (
    "a defender has act(obs), get_action(observation, action_space) or predict(obs), or is a "
    "function of an observation; see docs/defenders.md"
)


class OwnDefender:
    """Asks the user's defender for actions, and lets it know when episodes begin and end.

    own = OwnDefender(Blue, "mine:Blue")    # a class, a factory without arguments, or a defender
    own.begin(sample=False)                 # before its episodes: one, or many if it is `batched`
    actions = own.act(obs, alerts, masks)   # [N] for [N, D]
    own.end()
    """

    def __init__(self, given: object, name: str, num_actions: int = NUM_ACTIONS) -> None:
        self.name, self._num_actions = name, num_actions
        self._make = given if _is_factory(given, name) else None
        self._agent = given if self._make is None else self._made()
        self._began = False
        self._find_way()
        self.observation = self._declared_observation()
        observation_kind(self.observation)
        horizon, rules = (getattr(self._agent, name, None) for name in ("horizon", "rules"))
        self.horizon = None if self.observation == "bits" else ASSUMED_HORIZON
        if isinstance(horizon, int):
            self.horizon = checked_horizon(horizon)
        self.rules = rules if isinstance(rules, str) else None
        self.prior = str(getattr(self._agent, "prior", DEFAULT_PRIOR))
        if self.rules is not None:
            rule_set_number(self.rules)

    @property
    def can_sample(self) -> bool:
        return "deterministic" in self._takes

    def begin(self, sample: bool) -> "OwnDefender":
        """New episodes: the same defender if it can be told so, else a new one."""
        is_told = any(hasattr(self._agent, name) for name in ("reset", "end_episode", "predict"))
        if self._began and self._make is not None and not is_told:
            self._agent = self._made()
            self._find_way()
        if hasattr(self._agent, "reset"):
            self._agent.reset()
        self._began, self._state, self._starts, self._sample = True, None, True, sample
        return self

    def end(self) -> None:
        """Episodes are over; agents of the original want to know."""
        if hasattr(self._agent, "end_episode"):
            self._agent.end_episode()

    def act(self, obs: Array, alerts: Array, masks: Array | None) -> npt.NDArray[np.int64]:
        is_of_original = self._name == "get_action" and self.observation == "bits"
        shown = obs.astype(np.int64 if is_of_original else obs.dtype)
        given = self._ask(shown if self.batched else shown[0], alerts, masks)
        return self._checked(given, len(obs))

    # --- how it is asked --------------------------------------------------------------------------

    def _find_way(self) -> None:
        agent = self._agent
        names = (name for name in WAYS if callable(getattr(agent, name, None)))
        self._name = next(names, "__call__")
        if self._name == "__call__" and not callable(agent):
            raise ConfigError(f"{self.name} cannot be asked for actions; {WANTED}")
        self._way: Callable[..., object] = getattr(agent, self._name)
        self._takes = _parameters(self._way)
        by_itself = self._name == "predict" or "alerts" in self._takes
        self.batched = bool(getattr(agent, "batched", by_itself))
        self.takes_masks = any(name in self._takes for name in MASKS)
        optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        told = _parameters(getattr(agent, "reset", None)).values()
        needed = [one.name for one in told if one.default is one.empty and one.kind not in optional]
        if needed:
            raise ConfigError(
                f"{self.name}: its reset needs {', '.join(needed)}; a defender's reset() is told "
                "nothing but that an episode begins, and what it sees comes with act(obs)"
            )

    def _ask(self, obs: Array, alerts: Array, masks: Array | None) -> object:
        if self._name == "get_action":
            return self._way(obs, self._num_actions)  # as the challenge's script asks
        offers = {
            "alerts": alerts,
            "state": self._state,
            "episode_start": np.full(len(alerts), self._starts),
            "deterministic": not self._sample,
            **dict.fromkeys(MASKS, masks if self.batched or masks is None else masks[0]),
        }
        given = self._way(obs, **{k: v for k, v in offers.items() if k in self._takes})
        self._starts = False
        if self._name == "predict" and isinstance(given, tuple):  # and a recurrent model's state
            given, self._state = given
        return given

    def _checked(self, given: object, rows: int) -> npt.NDArray[np.int64]:
        """Whole numbers 0..144 (in CAGE-2), as many as were asked for."""
        actions = np.asarray(given)
        if actions.size == rows and actions.dtype.kind in "iu":
            actions = actions.reshape(rows).astype(np.int64)
            if actions.min() >= 0 and actions.max() < self._num_actions:
                return actions
        what = f"{rows} observations" if self.batched else "an observation"
        wanted = f"{rows} whole numbers" if self.batched else "a whole number"
        raise ActionError(
            f"{self.name} answered {what} with {' '.join(repr(given).split())[:80]}; wanted is "
            f"{wanted} from 0 to {self._num_actions - 1}"
        )

    # --- what it declares -------------------------------------------------------------------------

    def _declared_observation(self) -> str:
        """`observation`, else by the size of an `observation_space`, else the challenge's bits."""
        declared = getattr(self._agent, "observation", None)
        if isinstance(declared, str):
            return declared
        shape = getattr(getattr(self._agent, "observation_space", None), "shape", None)
        if shape is None:
            return "bits"
        kinds = {(size,): kind for kind, size in OBS_SIZES.items()}
        if tuple(shape) not in kinds:
            known = ", ".join(f"{kind} ({size} numbers)" for kind, size in OBS_SIZES.items())
            raise ConfigError(f"{self.name} sees observations of shape {shape}; CAGE-2 has {known}")
        return kinds[tuple(shape)]

    def _made(self) -> object:
        assert self._make is not None
        try:
            return self._make()
        except Exception as error:  # it is the user's code
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise ConfigError(f"the defender {self.name} cannot be made ({why[:200]})") from error


def _is_factory(given: object, name: str) -> TypeGuard[Callable[[], object]]:
    """A class, or a function without parameters; one that takes an observation is the defender."""
    if not inspect.isclass(given) and not inspect.isroutine(given):
        return False
    try:
        inspect.signature(given).bind()
        return True
    except TypeError:  # it needs arguments
        if not inspect.isclass(given):
            return False
        raise ConfigError(
            f"the class {name} cannot be made without arguments; give a function that makes it"
        ) from None
    except ValueError:  # a built-in that does not tell
        return inspect.isclass(given)


def _parameters(way: object) -> dict[str, inspect.Parameter]:
    """The parameters of a function; none for a built-in, or for what is no function."""
    if not callable(way):
        return {}
    try:
        return dict(inspect.signature(way).parameters)
    except (TypeError, ValueError):
        return {}
