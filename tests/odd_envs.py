"""Environments that sleep, raise, die, hang, or give what they should not.

Most act up when they are told to by an action, so that a test decides when, and in which of them.
"""

import os
import signal
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

OBS = spaces.Box(-10, 10, (3,), np.float32)
FINE, ACT_UP = 0, 1


class Counting(gymnasium.Env[Any, Any]):
    """Counts its steps; an episode ends after `length` of them. It shows a throw of its dice."""

    observation_space: spaces.Space[Any] = OBS
    action_space: spaces.Space[Any] = spaces.Discrete(4)
    length = 5

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        self.dice = float(self.np_random.random())
        return self.see(), {}

    def see(self) -> Any:
        return np.array([self.dice, self.count, 0], np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        if action == ACT_UP:
            self.act_up()
        return self.see(), float(self.count), self.count >= self.length, False, {}

    def act_up(self) -> None:
        """Nothing, for most."""


class Raises(Counting):
    def act_up(self) -> None:
        raise ZeroDivisionError("the reactor is on fire")


class Dies(Counting):
    def act_up(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Segfaults(Counting):
    def act_up(self) -> None:
        import ctypes

        ctypes.string_at(0)


class Exits(Counting):
    def act_up(self) -> None:
        os._exit(7)


class Hangs(Counting):
    def act_up(self) -> None:
        time.sleep(1000)


class HangsInCompiledCode(Counting):
    """Holds the interpreter's lock, so that no thread of its process can do anything."""

    def act_up(self) -> None:
        sum(range(10**15))


class DiesInReset(Counting):
    """The second episode cannot begin."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if seed is None:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().reset(seed=seed)


class RaisesInReset(Counting):
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        raise KeyError("no such scenario")


class HangsInItsFirstReset(Counting):
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        time.sleep(1000)
        return super().reset(seed=seed)


class CrashesInItsFirstStep(Counting):
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        os.kill(os.getpid(), signal.SIGSEGV)
        return super().step(action)


class HangsInClose(Counting):
    def close(self) -> None:
        time.sleep(1000)


class Answers(Counting):
    """Gives what it is told to instead of `terminated`, `truncated` or `info`."""

    instead: dict[str, Any] = {}  # noqa: RUF012

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = super().step(action)
        answer = {"terminated": terminated, "truncated": truncated, "info": info, "reward": reward}
        if action == ACT_UP:
            answer |= self.instead
        return obs, *(answer[name] for name in ("reward", "terminated", "truncated", "info"))


class SaysMaybe(Answers):
    instead = {"terminated": "maybe"}  # noqa: RUF012


class SaysTwo(Answers):
    instead = {"truncated": 2}  # noqa: RUF012


class TellsAList(Answers):
    instead = {"info": ["a"]}  # noqa: RUF012


class SaysOne(Answers):
    """As environments do that count in numpy."""

    instead = {"terminated": np.int64(1), "truncated": np.False_}  # noqa: RUF012


class CannotBeginAgain(Raises):
    """Fails when it is told to; another one that is built in the same process cannot begin."""

    failed_in = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if CannotBeginAgain.failed_in == os.getpid():
            raise KeyError("no second life")
        return super().reset(seed=seed)

    def act_up(self) -> None:
        CannotBeginAgain.failed_in = os.getpid()
        super().act_up()


class CannotBeBuilt(Counting):
    def __init__(self) -> None:
        raise FileNotFoundError("no map")


class WrongShape(Counting):
    def act_up(self) -> None:
        self.see = lambda: np.zeros(1, np.float32)  # type: ignore[method-assign]


class WrongType(Counting):
    observation_space = spaces.Box(0, 255, (3,), np.uint8)

    def see(self) -> Any:
        return np.array([1, 2, self.count], np.uint8)

    def act_up(self) -> None:
        self.see = lambda: np.zeros(3, np.float64)  # type: ignore[method-assign]


class NotANumber(Counting):
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, float("nan") if action == ACT_UP else reward, terminated, truncated, info


class EndsAtOnce(Counting):
    length = 1


class NeverEnds(Counting):
    length = 10**9


class Truncates(Counting):
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, ended, _truncated, info = super().step(action)
        return obs, reward, False, ended, info


class Talks(Counting):
    """Tells something at every second step, at its end, and a mask always."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        obs, _info = super().reset(seed=seed)
        return obs, {"began": True, "action_mask": self.mask()}

    def mask(self) -> Any:
        return np.arange(4) <= self.count

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, _info = super().step(action)
        info: dict[str, Any] = {"action_mask": self.mask()}
        if self.count % 2 == 0 or terminated:
            info["count"] = self.count
        return obs, reward, terminated, truncated, info


class TalksMuch(Counting):
    """More than a pipe holds."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, _info = super().step(action)
        return obs, reward, terminated, truncated, {"log": b"x" * 3_000_000, "count": self.count}


class Sleeps(NeverEnds):
    """A millisecond for most actions, a third of a second for one."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(0.3 if action == ACT_UP else 0.001)
        return super().step(FINE)


class Busy(NeverEnds):
    """Computes for half a millisecond."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        end = time.thread_time() + 0.0005
        while time.thread_time() < end:
            pass
        return super().step(FINE)


class Environment(Counting):
    """Shows what its process was given."""

    def threads(self) -> str | None:
        return os.environ.get("OMP_NUM_THREADS")

    def process(self) -> int:
        return os.getpid()


class Echo(gymnasium.Env[Any, Any]):
    """Shows samples of its observation space, and remembers the action in its reward."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.count = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        info = {"action": action}
        return self.observation_space.sample(), 1.0, False, self.count % 3 == 0, info


class Image(Counting):
    observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)

    def see(self) -> Any:
        return self.np_random.integers(0, 256, (8, 8, 3), np.uint8)


class Continuous(Counting):
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action.dtype == np.float32
        assert action.shape == (2,)
        obs, _reward, terminated, truncated, info = super().step(FINE)
        return obs, float(action.sum()), terminated, truncated, info


class Words(Counting):
    observation_space = spaces.Text(5)


class TalksOfGraphs(Counting):
    """Spaces that no array can hold."""

    observation_space = spaces.Dict(
        {"graph": spaces.Graph(spaces.Box(-1, 1, (2,)), None), "word": spaces.Text(9)}
    )
    action_space = spaces.Tuple((spaces.Text(3), spaces.Discrete(2)))

    def see(self) -> Any:
        nodes = np.full((self.count, 2), self.dice, np.float32)
        return {"graph": spaces.GraphInstance(nodes, None, None), "word": "w" * self.count}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        word, number = action
        obs, _reward, terminated, truncated, _info = super().step(FINE)
        obs["word"] += word
        return obs, float(number), terminated, truncated, {"word": word}


class Optional(Counting):
    """Needs an option."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        obs, _info = super().reset(seed=seed)
        assert options is not None
        return obs, {"level": options["level"]}


class Bounded(Counting):
    """Shows its own highest number."""

    def __init__(self, most: int) -> None:
        self.observation_space = spaces.Discrete(most + 1)

    def see(self) -> Any:
        return int(self.observation_space.n) - 1  # type: ignore[attr-defined]


class Painter(Counting):
    render_mode = "rgb_array"

    def render(self) -> Any:
        return np.full((2, 2, 3), self.count, np.uint8)


class NeedsScenario(Counting):
    """Cannot begin before somebody has said in what."""

    scenario = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if not self.scenario:
            raise KeyError("no scenario")
        return super().reset(seed=seed)[0], {"scenario": self.scenario}


class TellsOptions(Counting):
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=seed)[0], {"options": options}


class Commands(Counting):
    """Takes two things at once."""

    action_space: spaces.Space[Any] = spaces.Dict(
        {"what": spaces.Discrete(3), "where": spaces.Box(0, 1, (2,))}
    )

    @staticmethod
    def value_of(action: Any) -> float:
        return float(np.float32(action["what"] + action["where"].sum()))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.see(), self.value_of(action), False, False, {}


class Pairs(Commands):
    action_space = spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(2)))

    @staticmethod
    def value_of(action: Any) -> float:
        return float(action[0] + action[1].sum())
