"""Fill rollouts from a pool of Gymnasium environments, without waiting for stragglers.

A column of a rollout is T turns of one environment. An environment that has filled its column
begins another one; the rollout is done when as many columns are full as there are environments. A
slow environment is simply in fewer of them, and what it has so far goes into the next rollout.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from phalanx.arrays import Array, Arrays
from phalanx.envs.pool import Pool
from phalanx.envs.received import Received
from phalanx.errors import WorkerError
from phalanx.learn.rollout import (
    Actor,
    Floats,
    Outputs,
    Rollout,
    Stopped,
    Weights,
    columns_of,
    empty_rollout,
)
from phalanx.stopwatch import COPYING, POLICY, SIMULATOR, WAITING, Stopwatch

WATCH_S = 0.5  # how often workers are looked after while nobody waits for them

Ints = npt.NDArray[np.int64]


class PoolSampler:
    """A pool, and who acts in it."""

    def __init__(
        self,
        pool: Pool,
        actor: Actor,
        turns: int,
        *,
        gamma: float,
        reward_scale: float,
        seed: int,
        num_rollouts: int = 1,
        noise_memory: float = 0.0,
        env_seeds: list[int] | None = None,
        first_env: int = 0,
    ) -> None:
        """noise_memory: what is left of the noise of continuous actions a step later, 0 to 1.

        env_seeds: those of the environments' first episodes, if not the pool's own.

        first_env: what the first environment is called, if others have some too.
        """
        self.pool, self.actor, self.turns = pool, actor, turns
        self.faults, self.listen = pool.faults, pool.listen
        self.gamma, self.reward_scale, self.seed = gamma, reward_scale, seed
        self.env_seeds, self.first_env = env_seeds, first_env
        self.version = self.collected = 0
        self._begun = False
        self.stop: Callable[[], bool] = lambda: False
        self.running = np.zeros(pool.n_envs)  # returns of the episodes under way
        self.watch = Stopwatch()
        self._received_by = WAITING if pool.num_workers else SIMULATOR
        self.received = 0
        """how often rows were waited for"""
        n, space = pool.n_envs, pool.single_action_space
        self._in_step = pool.wait_for == n
        # Columns: full ones (by the last rows perhaps a few too many), and unfinished ones.
        self._width = n if self._in_step else 2 * n + pool.wait_for
        self._scale = Scale(space)
        self._num_actions = int(space.n) if isinstance(space, spaces.Discrete) else 0
        shape, dtype = pool.single_observation_space.shape, pool.single_observation_space.dtype
        assert shape is not None
        obs = actor.prepare(np.zeros((self._width, *shape), dtype))
        self._rollouts = [
            empty_rollout(turns, obs, 0, self._num_actions, self._scale.example)
            for _ in range(num_rollouts)
        ]
        self._column: Ints = np.arange(n)  # of each environment
        self._turn: Ints = np.zeros(n, np.int64)  # how far it has come in it
        self._obs = obs[:n].copy()  # the last of each environment
        self._masks = np.ones((n, self._num_actions), np.bool_)
        self._idle = np.zeros(n, np.bool_)  # environments that no action was sent to
        self._steps: Ints = np.full(n, -1)  # of the episode under way; before the first, none
        self._random = np.random.default_rng(0)
        self._memory = noise_memory if self._scale.is_point else 0.0
        self._noise = np.zeros((n, int(np.prod(space.shape or ()))), np.float32)
        self._closed = threading.Event()
        if pool.num_workers:
            threading.Thread(target=self._watch, name="workers", daemon=True).start()

    def _watch(self) -> None:
        """Look after the workers also during a long update: their faults are reported at once."""
        while not self._closed.wait(WATCH_S):
            self.pool.attend()

    def set_weights(self, weights: Weights, version: int) -> None:
        self.actor.set_weights(weights)
        self.version = version

    def collect(self, _shaping: object = None) -> Rollout:
        """As many full columns as there are environments."""
        self._random = np.random.default_rng([self.seed, 2, self.collected])
        self.collected += 1
        rollout, done = self._next_rollout(), list[int]()
        if not self._begun:
            self.pool.reset(self.env_seeds)
            while not self._idle.all():
                self._note(self._receive())
            self._begun = True
        ids = np.flatnonzero(self._idle)
        self.watch.switch(POLICY)
        seen, values = self.actor.forward(self._obs[ids])
        while True:
            self._act(rollout, ids, seen, values)
            if self.stop():
                raise Stopped
            arrived = self._receive()
            self._note(arrived)
            ids = arrived.env_ids
            self.watch.switch(POLICY)
            seen, values = self.actor.forward(self._obs[ids])
            self.watch.switch(COPYING)
            done += self._store(rollout, arrived, values)
            if len(done) >= self.pool.n_envs:
                return rollout if self._in_step else columns_of(rollout, np.array(done))
            if self._in_step and done:  # who has failed on the way is behind the others
                behind = self._turn[ids] < self.turns
                ids, seen, values = ids[behind], seen[behind], values[behind]

    def _receive(self) -> Received:
        """The next rows: made here and now, or waited for; then copied."""
        self.received += 1
        self.watch.switch(self._received_by)
        return self.pool.recv(then=self._begin_to_copy)

    def _begin_to_copy(self) -> None:
        self.watch.switch(COPYING)

    def _note(self, arrived: Received) -> None:
        """Remember what is to be acted on."""
        ids, obs = arrived.env_ids, self.actor.prepare(arrived.obs)
        self._obs[ids] = obs
        if arrived.action_masks is not None:
            self._masks[ids] = arrived.action_masks
        self._idle[ids] = True
        self._steps[ids] += 1
        if self._obs.dtype.kind == "f":
            if arrived.final_obs is not arrived.obs:  # some episode has ended
                self._check(ids, self.actor.prepare(arrived.final_obs))
                self._steps[ids[arrived.terminated | arrived.truncated]] = 0
            self._check(ids, obs)

    def _check(self, ids: Ints, obs: Array) -> None:
        """Stop at an observation that is no number, before anything is learnt from it."""
        if np.isfinite(obs).all():
            return
        wrong = ids[np.flatnonzero(~np.isfinite(obs).reshape(len(ids), -1).all(axis=1))[0]]
        step = int(self._steps[wrong])
        when = f"at step {step} of an episode" if step else "at the beginning of an episode"
        raise WorkerError(
            f"environment {self.first_env + int(wrong)} gave an observation that is no number (NaN "
            f"or infinite) {when}; what was learnt before is saved: mend the environment, or wrap "
            "it"
        )

    def _next_rollout(self) -> Rollout:
        """The rollout to be filled, with what is unfinished in the one before."""
        before = self._rollouts[0]
        self._rollouts = self._rollouts[1:] + self._rollouts[:1]
        rollout = self._rollouts[0]
        if self._in_step:
            self._turn[:] = 0
            rollout.versions[:] = self.version
        else:
            unfinished = columns_of(before, self._column)  # a copy: it may be the same rollout
            first_ones: tuple[Array, ...] = columns_of(rollout, slice(len(self._column)))
            for target, array in zip(first_ones, unfinished, strict=True):
                target[:] = array
            self._column = np.arange(len(self._column))
            fresh = self._turn == 0
            rollout.versions[self._column[fresh]] = self.version
        self._free = len(self._column)
        return rollout

    def _act(self, rollout: Rollout, ids: Ints, seen: Outputs, values: Floats) -> None:
        """Draw actions for these environments, note them, and send them."""
        if not len(ids):
            return
        masks = self._masks[ids]
        self.watch.switch(POLICY)
        noise = self.actor.noise(self._random, len(ids))
        if self._memory:
            # As much noise in each step, but that of neighbouring steps is similar.
            noise = self._memory * self._noise[ids] + (1 - self._memory**2) ** 0.5 * noise
            self._noise[ids] = noise
        actions, log_probs = self.actor.draw(seen, masks, noise)
        self.watch.switch(COPYING)
        where = self._turn[ids], self._column[ids]
        rollout.obs[where], rollout.masks[where] = self._obs[ids], masks
        rollout.actions[where] = actions.reshape(len(ids), *rollout.actions.shape[2:])
        rollout.log_probs[where], rollout.values[where] = log_probs, values
        self._idle[ids] = False
        self.pool.send(self._scale(actions), ids, self.version)

    def _store(self, rollout: Rollout, arrived: Received, values: Floats) -> list[int]:
        """Note what the actions led to; returns the columns that are full now."""
        turn, column = self._turn[arrived.env_ids], self._column[arrived.env_ids]
        # An environment that failed did not play the action: its episode was cut a turn before.
        cut = arrived.lost & (turn > 0)
        rollout.ended[turn[cut] - 1, column[cut]] = True
        played = ~arrived.lost
        ids, where = arrived.env_ids[played], (turn[played], column[played])
        terminated, truncated = arrived.terminated[played], arrived.truncated[played]
        ended = terminated | truncated
        following = values[played]
        if truncated.any():
            last = arrived.final_obs[played][truncated]
            following[truncated] = self.actor.forward(self.actor.prepare(last))[1]
        rollout.rewards[where] = arrived.rewards[played] * self.reward_scale
        rollout.discounts[where] = np.where(terminated, 0, self.gamma)
        rollout.next_values[where] = following
        rollout.ended[where] = rollout.counted[where] = ended
        rollout.returns[where] = arrived.episode_returns[played]
        rollout.lengths[where] = arrived.episode_lengths[played]
        self.running[arrived.env_ids] += arrived.rewards
        self.running[arrived.env_ids[arrived.terminated | arrived.truncated]] = 0
        self._turn[ids] += 1
        full = ids[self._turn[ids] == self.turns]
        done: list[int] = self._column[full].tolist()
        if not self._in_step:
            self._column[full] = self._free + np.arange(len(full))
            self._free += len(full)
            self._turn[full] = 0
            rollout.versions[self._column[full]] = self.version
        return done

    def save(self) -> Arrays:
        """Nothing: environments cannot be saved in the middle of an episode."""
        return {}

    def load(self, arrays: Arrays) -> None:
        """Begin new episodes."""

    def close(self) -> None:
        self._closed.set()
        self.pool.close()


class Scale:
    """Turns what networks draw into what the environment takes."""

    def __init__(self, space: Any) -> None:
        self.space = space
        self.is_point = not isinstance(space, spaces.Discrete)
        self.example = np.zeros(int(np.prod(space.shape)), np.float32) if self.is_point else None
        if not self.is_point and space.n > 256:
            self.example = np.zeros((), np.int64)

    def __call__(self, actions: Array) -> Array:
        if not self.is_point:
            return actions + self.space.start
        low, high = self.space.low, self.space.high
        points = actions.reshape(len(actions), *self.space.shape)
        bounded = np.isfinite(low) & np.isfinite(high)
        with np.errstate(invalid="ignore"):
            scaled = np.where(bounded, low + (points + 1) / 2 * (high - low), points)
        return np.clip(scaled, low, high).astype(self.space.dtype)
