"""Fill rollouts of CAGE-2 with a policy: the compiled way; any torch module in `torch_sampler`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Arrays
from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.scoring import CONDUCT, NO_ORDERS, Orders
from phalanx.cage2.saved_games import check_conducts
from phalanx.compiled.rule import records
from phalanx.compiled.team import CACHE_LINE, LEADER
from phalanx.envs.faults import Fault
from phalanx.learn.cage2.collect import POLICY_TICKS, SIMULATOR_TICKS, collect_blocks
from phalanx.learn.cage2.foresight import make_foresight
from phalanx.learn.cage2.games import Games, Shaping, begin_following_everywhere, games_of
from phalanx.learn.compiled.mlp import Floats
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.rollout import Rollout, empty_rollout
from phalanx.stopwatch import POLICY, SIMULATOR, WAITING, Stopwatch


class Cage2Sampler:
    """Networks of CAGE-2 and the rollout that they fill; what both ways of playing share.

    It writes into its rollouts in turn: with two of them, one can be learnt from meanwhile.

    useful: bool [actions], those that the policy may choose from.
    actions: [A], those of the policy's outputs, all if not given; rollouts hold numbers of outputs.
    condition: float32 [N, C], put after every observation of network i: what it is told.
    orders: the orders of repair that are to be followed; their codes come after the condition.
    effective: leave out what by the belief that is shown can change and show nothing in a turn.
    """

    def __init__(
        self,
        batch: Batch,
        turns: int,
        *,
        truth_size: int,
        useful: npt.NDArray[np.bool_],
        condition: npt.NDArray[np.float32],
        actions: npt.NDArray[np.int64] | None = None,
        orders: Orders = NO_ORDERS,
        effective: bool = False,
        num_rollouts: int = 1,
    ) -> None:
        actions = np.arange(batch.num_actions) if actions is None else actions
        self.batch, self.useful, self.actions, self.orders = batch, useful, actions, orders
        self.effective = effective
        codes = np.zeros((batch.num_envs, orders.codes.shape[1]))
        self.condition = np.hstack([condition, codes]).astype(np.float32)
        self.conducts = records(batch.num_envs, CONDUCT)
        is_own = batch.reward is not None
        self.own_returns = np.zeros(batch.num_envs if is_own else 0)
        """of the episodes under way, under a reward of the user's own"""
        if len(orders.allowed):
            begin_following_everywhere(self.games)
        first = np.hstack([batch.shown.obs.astype(np.float32), self.condition])
        room = ((turns, batch.num_envs), CONDUCT)
        number = np.zeros((), np.uint8 if len(actions) <= 256 else np.uint16)
        rollouts = [
            empty_rollout(turns, first, truth_size, len(actions), number, records(*room), is_own)
            for _ in range(num_rollouts)
        ]
        next_obs = rollouts[0].next_obs  # one for all: where the games stand
        self.rollouts = [rollout._replace(next_obs=next_obs) for rollout in rollouts]
        self.version = 0
        self.stop: Callable[[], bool] = lambda: False  # a rollout takes less than a second
        self.watch = Stopwatch()

    @property
    def games(self) -> Games:
        return games_of(
            self.batch,
            self.orders,
            self.conducts,
            self.useful,
            self.actions,
            self.condition,
            self.own_returns,
            self.effective,
        )

    @property
    def rollout(self) -> Rollout:
        """The one that was filled last."""
        return self.rollouts[0]

    def next_rollout(self) -> Rollout:
        """The one to be filled now."""
        self.rollouts = self.rollouts[1:] + self.rollouts[:1]
        self.rollout.versions[:] = self.version
        return self.rollout

    @property
    def running(self) -> npt.NDArray[np.float64]:
        """Returns of the episodes under way."""
        return self.batch.nets["tenths"] / 10

    def listen(self, hook: Callable[[Fault], None]) -> None:
        """The compiled game has no failures to tell of."""

    def close(self) -> None:
        self.batch.close()

    def save(self) -> Arrays:
        """The games under way, as plain numbers."""
        arrays: Arrays = {"next_obs": self.rollout.next_obs, "condition": self.condition}
        arrays |= self.batch.save() | {"conducts": self.conducts}
        if self.batch.reward is not None:
            arrays["own_returns"] = self.own_returns
        # Records as bytes: files hold plain numbers only.
        return {k: a.view(np.uint8) if a.dtype.names else a for k, a in arrays.items()}

    def load(self, arrays: Arrays) -> None:
        """Go on from what `save` gave."""
        saved = dict(arrays)
        for name, own in self.batch.save().items():
            if own.dtype.names:
                saved[name] = saved[name].view(own.dtype).reshape(own.shape)
        conducts = arrays["conducts"].view(CONDUCT).reshape(self.conducts.shape)
        check_conducts(conducts)
        own_returns = arrays["own_returns"] if self.batch.reward is not None else self.own_returns
        if not np.isfinite(own_returns).all():
            raise ValueError("returns under your own reward that are no numbers")
        self.batch.restore(saved)
        self.rollout.next_obs[:] = arrays["next_obs"]
        self.condition[:] = arrays["condition"]
        self.conducts[:] = conducts
        self.own_returns[:] = own_returns


class CompiledSampler(Cage2Sampler):
    """Plays with compiled networks: a whole rollout is one call per thread.

    foresight: take the luck of the dice out of rewards, by the belief that is shown.
    """

    def __init__(
        self, batch: Batch, policy: Policy, turns: int, *, foresight: bool = False, **options: Any
    ) -> None:
        truth_size, actions = policy.truth_size, policy.actions
        self.foresight = make_foresight(batch) if foresight else None
        super().__init__(batch, turns, truth_size=truth_size, actions=actions, **options)
        self.policy = policy
        self._spent = np.zeros((batch.team.num_threads, CACHE_LINE), np.int64)  # in ticks

    @property
    def spent_s(self) -> dict[str, npt.NDArray[np.float64]]:
        """Seconds that each thread has spent on rollouts so far, by part."""
        seconds = np.multiply(self._spent, self.batch.team.tick_s, dtype=float)
        return {SIMULATOR: seconds[:, SIMULATOR_TICKS], POLICY: seconds[:, POLICY_TICKS]}

    def set_weights(self, weights: Floats, version: int) -> None:
        self.policy.theta[:] = weights
        self.version = version

    def collect(self, shaping: Shaping) -> Rollout:
        rollout, before = self.next_rollout(), self._spent[LEADER].copy()
        networks = self.policy.networks
        arguments = (self.games, shaping, networks, rollout, self.foresight, self._spent)
        self.watch.switch(POLICY)
        self.batch.team.run(collect_blocks, arguments)
        spent = ((self._spent[LEADER] - before) * self.batch.team.tick_s).tolist()
        known = {SIMULATOR: spent[SIMULATOR_TICKS], POLICY: spent[POLICY_TICKS]}
        self.watch.divide(known, rest=WAITING)
        return rollout
