"""A worker of A3C: its own process, environments and networks, on weights that all share."""

import contextlib
import dataclasses
import faulthandler
import math
import os
import pickle
import signal
import socket
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsFloat, TypeVar, cast

import gymnasium
import numpy as np

from phalanx.envs.block import Info, Obs
from phalanx.envs.channel import Channel
from phalanx.envs.factories import AnyEnv, factory_of
from phalanx.envs.faults import Fault
from phalanx.envs.making import make_pool
from phalanx.envs.shared_memory import block_of, numbers, seed_of
from phalanx.errors import PhalanxError, WorkerError
from phalanx.learn.a3c import A3C, BEATS, BEGIN, EPISODES, STEPS, Shared, SharedStepper
from phalanx.learn.compiled.mlp import use_one_thread_per_product
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.ppo import PPOSettings
from phalanx.learn.rollout import Stopped
from phalanx.stopwatch import COPYING, IDLE, LEARNING, LOGGING, difference
from phalanx.system import die_with
from phalanx.training.config import TrainConfig
from phalanx.training.on_pool import env_of, open_networks, open_sampler
from phalanx.training.recipe import Network, settings_of
from phalanx.training.schedules import entropy_weight_at, learning_rate_at, progress_of
from phalanx.training.update_record import UpdateRecord, added_up, episodes_of

REPORT_S = 0.05  # updates that take less are reported together
UNBOUNDED = 2**31  # failures are counted where those of all workers are known

T = TypeVar("T")


@dataclass(frozen=True)
class Setup:
    """All that a worker is told at its start."""

    number: int
    num_workers: int
    n_envs: int
    """of all workers together"""
    config: TrainConfig
    network: Network | None
    memory_fd: int
    size: int
    """weights of the networks"""
    begun: int
    """updates that there were when it began: a worker that replaces another plays other games"""


def main(channel_fd: int, setup_fd: int, life_fd: int, words_fd: int) -> None:
    """Be a worker until told to stop. Whatever goes wrong is told before the process ends."""
    die_with(life_fd)
    faulthandler.enable(words_fd)
    faulthandler.register(signal.SIGUSR1, words_fd)
    channel = Channel(socket.socket(fileno=channel_fd))
    code = 1
    try:
        with open(setup_fd, "rb") as file:
            worker = Worker(pickle.load(file), channel)
        channel.send(("ready",))
        worker.work()
        channel.send(("done",))
        channel.receive_one()  # nothing comes but the end: until then our memory can be measured
    except (ConnectionError, EOFError):
        code = 0  # whoever started us has hung up
    except Exception as error:
        what = str(error) if isinstance(error, PhalanxError) else f"{type(error).__name__}: {error}"
        with contextlib.suppress(ConnectionError):
            for_all = isinstance(error, WorkerError)  # of environments: others have the same
            channel.send(("failed", what, traceback.format_exc(), for_all))
    os._exit(code)


class Worker:
    """Copies the weights, plays a rollout, adds its step to the weights; again and again."""

    def __init__(self, setup: Setup, channel: Channel) -> None:
        use_one_thread_per_product()
        self.config, self.number, self._channel = setup.config, setup.number, channel
        config, block = self.config, block_of(setup.number, setup.n_envs, setup.num_workers)
        self.first_env, self._block = block.start, slice(block.start, block.stop)
        self.shared = Shared(setup.memory_fd, setup.size, setup.num_workers, setup.n_envs)
        self._own = numbers(self.shared.lines[setup.number])
        seed = one_seed_of(config.seed, 4, setup.number, setup.begun)
        np.random.seed(seed)  # noqa: NPY002  for environments that use numpy's own dice
        factory, _name = factory_of(env_of(config))
        pool = make_pool(
            lambda: Watched(factory(), self._own),
            n_envs=len(block),
            num_workers=0,
            seed=config.seed,
            infos=False,
            max_restarts=UNBOUNDED,
            on_fault=self._tell,
        )
        actor, stepper, _device = open_networks(
            config, pool.single_observation_space, pool.single_action_space, setup.network
        )
        if isinstance(stepper, CompiledStepper):
            stepper = CompiledStepper(
                stepper.policy, stepper.team, len(block) * config.update_steps
            )
        self.learner = A3C(
            cast(SharedStepper, stepper), settings_of(PPOSettings, config), self.shared, bring=False
        )
        seeds = [env_seed(config.seed, i, setup.begun) for i in block]
        self.sampler = open_sampler(
            config, pool, actor, seed=seed, env_seeds=seeds, first_env=block.start
        )
        self.sampler.stop = lambda: self.shared.stopped

    def work(self) -> None:
        """From when all are told to begin until they are told to stop."""
        while not self.shared.counters[BEGIN] and not self.shared.stopped:
            time.sleep(0.002)
        pending: list[UpdateRecord] = []
        told = time.monotonic()
        try:
            while not self.shared.stopped:
                progress = progress_of(self.config, *self.shared.done)
                if progress < 1:
                    with contextlib.suppress(Stopped):  # in the middle of a rollout
                        pending.append(self._update(progress))
                    self.shared.running[self._block] = self.sampler.running
                else:
                    time.sleep(0.005)  # the budget is spent, unless somebody dies who has not told
                well = not pending or all(map(math.isfinite, pending[-1].metrics.values()))
                if pending and (progress >= 1 or not well or time.monotonic() - told > REPORT_S):
                    self._channel.send(("update", added_up(pending)))
                    pending, told = [], time.monotonic()
        finally:  # also before what has gone wrong is told
            if pending:
                self._channel.send(("update", added_up(pending)))

    def _update(self, progress: float) -> UpdateRecord:
        """Play a rollout, and take one step for it."""
        rate = learning_rate_at(self.config, progress)
        entropy_weight = entropy_weight_at(self.config, progress)
        watch = self.sampler.watch
        before, began, version = watch.lap(), time.perf_counter(), self.shared.updates
        watch.switch(COPYING)
        self.sampler.set_weights(self.learner.stepper.weights(), version)
        rollout = self.sampler.collect()
        collected = time.perf_counter()
        watch.switch(LEARNING)
        metrics = self.learner.update(rollout, rate, entropy_weight)
        learnt = time.perf_counter()
        watch.switch(LOGGING)
        lag = self.learner.stepper.steps - 1 - version  # what others did meanwhile
        episodes = episodes_of(rollout, (self.config.env_name,), self.first_env)
        self._own[STEPS] += rollout.rewards.size
        self._own[EPISODES] += len(episodes)
        watch.switch(IDLE)
        return UpdateRecord(
            updates=1,
            steps=rollout.rewards.size,
            dropped=0,
            lags=Counter({lag: rollout.rewards.shape[1]}),
            episodes=episodes,
            rate=rate,
            entropy_weight=entropy_weight,
            metrics=metrics,
            collect_s=collected - began,
            learn_s=learnt - collected,
            split=difference(watch.seconds, before),
        )

    def _tell(self, fault: Fault) -> None:
        """One of our environments failed and is built again; others number it differently."""
        assert fault.env_id is not None
        number = self.first_env + fault.env_id
        reason = fault.what.removeprefix(f"environment {fault.env_id} failed: ")
        what = f"environment {number} in worker {self.number} failed: {reason}"
        named = dataclasses.replace(
            fault, what=what, env_id=number, worker=self.number, lost=(number,)
        )
        self._channel.send(("fault", named))


class Watched(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that shows whether it is at work: its count of BEATS is odd meanwhile."""

    def __init__(self, env: AnyEnv, own: memoryview) -> None:
        super().__init__(env)
        self._own = own

    def step(self, action: object) -> tuple[Obs, SupportsFloat, bool, bool, Info]:
        return self._watched(self.env.step, action)

    def reset(self, **options: object) -> tuple[Obs, Info]:
        return self._watched(self.env.reset, **options)

    def _watched(self, call: Callable[..., T], *given: object, **options: object) -> T:
        self._own[BEATS] |= 1
        answer = call(*given, **options)
        self._own[BEATS] += 1
        return answer


def env_seed(seed: int, i: int, begun: int) -> int:
    """The seed of environment i, wherever it runs; a new one after its worker was lost."""
    return one_seed_of(seed, i, begun) if begun else seed_of(seed, i)


def one_seed_of(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
