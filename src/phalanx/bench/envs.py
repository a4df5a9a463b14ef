"""Environments that runners are measured with: one for each way in which they are slow."""

import time

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

FIXED_LOOPS = 160_000
LOOPS = 500  # of Python between two looks at the clock, some 10 µs
TAIL_S, USUAL_S, TAIL_SHARE = 0.020, 0.001, 0.05
MEAN_WAIT_S = TAIL_SHARE * TAIL_S + (1 - TAIL_SHARE) * USUAL_S

Obs = npt.NDArray[np.generic]
Info = dict[str, object]
Step = tuple[Obs, float, bool, bool, Info]


class Nothing(gymnasium.Env[Obs, np.int64]):
    """Does nothing, and never ends: what is left is the runner."""

    observation_space: spaces.Box = spaces.Box(-1, 1, (52,), np.float32)
    action_space = spaces.Discrete(145)
    metadata: Info = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.obs = np.zeros(self.observation_space.shape, self.observation_space.dtype)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Obs, Info]:
        super().reset(seed=seed)
        return self.obs, {}

    def step(self, action: np.int64) -> Step:
        return self.obs, 0.0, False, False, {}


class Works(Nothing):
    """The same Python in every step, some 3 ms; longer where cores slow each other down."""

    def step(self, action: np.int64) -> Step:
        for _ in range(FIXED_LOOPS):
            pass
        return super().step(action)


class Computes(Nothing):
    """Three milliseconds of Python, by the thread's own clock."""

    def step(self, action: np.int64) -> Step:
        compute(3)
        return super().step(action)


class Waits(Nothing):
    """A millisecond most of the time, twenty one time in twenty; it sleeps meanwhile."""

    def step(self, action: np.int64) -> Step:
        time.sleep(TAIL_S if self.np_random.random() < TAIL_SHARE else USUAL_S)
        return super().step(action)


class Paced(Nothing):
    """Sleeps for a millisecond, or as long as it is told to."""

    sleep_s = 0.001

    def step(self, action: np.int64) -> Step:
        time.sleep(self.sleep_s)
        return super().step(action)


class Sleepy(Paced):
    """Sleeps for twenty milliseconds: many of them fit on one core."""

    sleep_s = 0.02


class Signals(Nothing):
    """A light is on; the button under it gives 1, the others nothing. Episodes of 20 steps.

    A step takes two milliseconds of Python.
    """

    observation_space: spaces.Box = spaces.Box(0, 1, (4,), np.float32)
    action_space = spaces.Discrete(4)
    length, work_ms = 20, 2.0

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Obs, Info]:
        super().reset(seed=seed)
        self.turn = 0
        return self.next_light(), {}

    def next_light(self) -> Obs:
        self.light = int(self.np_random.integers(4))
        return self.show()

    def show(self) -> Obs:
        self.obs[:] = 0
        self.obs[self.light] = 1
        return self.obs

    def step(self, action: np.int64) -> Step:
        compute(self.work_ms)
        reward = float(action == self.light)
        self.turn += 1
        return self.next_light(), reward, False, self.turn >= self.length, {}


class Pictures(Signals):
    """The same with a picture of 64 x 64 pixels, a quarter of which is lit; 5 ms of Python."""

    observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)
    work_ms = 5.0

    def show(self) -> Obs:
        self.obs[:] = 0
        self.obs[16 * self.light : 16 * (self.light + 1)] = 255
        return self.obs


def compute(milliseconds: float) -> None:
    """Python for so long by the thread's own clock.

    It leaves out what cores lose when all of them are busy, which users do pay (see `Works`): what
    is compared is how well a runner keeps the cores at work.
    """
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        for _ in range(LOOPS):
            pass
