"""Samplers on other machines.

A sampler is a Ray actor that holds environments and a copy of the policy. It is asked for whole
rollouts; they come back as arrays through the object store, and weights go out once per version, as
one reference. To the loops of training a remote sampler is a sampler like any other.
"""

import contextlib
import copy
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

import phalanx
from phalanx.arrays import Array, Arrays
from phalanx.cage2.rules.scoring import Orders
from phalanx.cluster.ray import (
    Workplace,
    connected,
    fetch,
    import_ray,
    in_one_line,
    lines_of,
    living_ray,
    move_to,
    workplace,
)
from phalanx.envs.faults import Fault, FaultLog
from phalanx.errors import ConfigError, WorkerError
from phalanx.files import Facts
from phalanx.learn.cage2.games import Shaping
from phalanx.learn.ppo import Stepper
from phalanx.learn.rollout import Rollout, Stopped, side_by_side
from phalanx.stopwatch import COPYING, WAITING, Stopwatch
from phalanx.training.config import TrainConfig
from phalanx.training.on_cage2 import open_stepper, orders_of
from phalanx.training.on_pool import open_networks
from phalanx.training.recipe import Network, Recipe, open_recipe, recipe_of

START_S = 120.0  # in which samplers must have opened their environments, or be back
POLL_S = 0.2  # between looks at whether the run is to stop

Prices = tuple[npt.NDArray[np.float64], ...]  # of orders: gains, costs, what defiance costs


# --- on the other side ----------------------------------------------------------------------------


class Player:
    """What runs in a Ray actor: environments, and a copy of the policy."""

    def __init__(
        self, config: TrainConfig, first_index: int, place: Workplace | None = None
    ) -> None:
        self.error, self.played, self._faults_told = "", 0, 0
        if place is not None:
            move_to(place)
        try:
            warnings.simplefilter("ignore")
            self.recipe = open_recipe(config, first_index=first_index)
            self.sampler = self.recipe.sampler
        except Exception as error:  # it would arrive as pages of Ray's
            self.error = in_one_line(error)

    def describe(self) -> dict[str, object]:
        """Who and where it is, and what its environments take and give."""
        facts: dict[str, object] = {
            "error": self.error,
            "version": phalanx.__version__,
            "node": import_ray().get_runtime_context().get_node_id(),
            "pid": os.getpid(),
            "played": self.played,
        }
        pool = None if self.error else getattr(self.sampler, "pool", None)
        if pool is not None:
            facts["spaces"] = pool.single_observation_space, pool.single_action_space
        return facts

    def collect(
        self, weights: object, version: int, shaping: Shaping | None, prices: Prices | None
    ) -> tuple[Rollout, Array, list[Fault]]:
        """One rollout with these weights, the returns of the episodes under way, what failed."""
        if prices is not None:
            orders = self.sampler.orders
            orders.gains[:], orders.costs[:], orders.defied[:] = prices
        self.sampler.set_weights(weights, version)
        self.played += 1
        # What lies in the object store is read-only: the game would be compiled once more for that.
        if shaping is not None:
            shaping = shaping._replace(weights=shaping.weights.copy())
        return self.sampler.collect(shaping), np.array(self.sampler.running), self.new_faults()

    def new_faults(self) -> list[Fault]:
        """What has failed in the environments since this was asked before."""
        new = getattr(self.sampler, "faults", [])[self._faults_told :]
        self._faults_told += len(new)
        return new

    def save(self) -> Arrays:
        return self.sampler.save()

    def load(self, arrays: Arrays) -> None:
        self.sampler.load({name: array.copy() for name, array in arrays.items()})


# --- on this side ---------------------------------------------------------------------------------


class RemoteSampler:
    """A `Player` from here: asked for rollouts, and for its games.

    What it has lost with its node is logged, and it begins again.
    references: of the newest weights in the object store, by version; all samplers share them.
    """

    def __init__(
        self, actor: object, index: int, envs: range, references: dict[int, object], log: FaultLog
    ) -> None:
        self.actor, self.index, self.envs = actor, index, envs
        self._references, self._log = references, log
        self.version = 0
        self.running: Array = np.zeros(0)
        self.facts: Facts = {}  # what it says of itself
        self._down_since: float | None = None
        self._reference: object = None
        self._pending: object = None

    @property
    def is_down(self) -> bool:
        """Whether it was lost and has not played since."""
        return self._down_since is not None

    def wait_until_open(self, deadline: float) -> None:
        """Hear of it once it has opened its environments, however often it is lost."""
        asked = None
        while time.monotonic() < deadline:
            asked = asked or self._call("describe")
            with living_ray() as ray:
                if not ray.wait([asked], timeout=POLL_S)[0]:
                    continue
                try:
                    self.facts = dict(ray.get(asked))
                except ray.exceptions.RayActorError as error:
                    asked = None
                    self._lose(error)
                    time.sleep(POLL_S)
                else:
                    self._down_since = None
                    return
        what = f"sampler {self.index} did not start in {START_S:.0f} s; see `ray status`"
        raise WorkerError(what)

    def set_weights(self, weights: object, version: int) -> None:
        """The weights of a version go to the object store once, whoever needs them first."""
        reference = self._references.get(version)
        if reference is None:
            with living_ray() as ray:
                reference = ray.put(weights)
            self._references.clear()
            self._references[version] = reference
        self._reference, self.version = reference, version

    def ask(self, shaping: object, prices: Prices | None) -> None:
        """Let it play a rollout, unless it does already."""
        if self._pending is None:
            self._pending = self._call("collect", self._reference, self.version, shaping, prices)

    def answer(self, wait_s: float) -> Rollout | None:
        """Its rollout if it is there in time; None if not, or if the sampler was lost."""
        with living_ray() as ray:
            ready, _ = ray.wait([self._pending], timeout=wait_s)
        if not ready:
            return None
        reference, self._pending = self._pending, None
        with living_ray() as ray:
            try:
                rollout, running, faults = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                self._log_faults(*fetch([self._call("new_faults")]))  # perhaps they were too many
                raise WorkerError(f"sampler {self.index} failed: {lines_of(error)[-1]}") from None
            except ray.exceptions.RayError as error:
                self._lose(error)
                return None
        self._down_since = None
        # Copies, all of them: a view of any part would keep the whole in the object store.
        self._log_faults(faults)
        self.running = running.copy()
        return Rollout(*(array.copy() for array in rollout))

    def _log_faults(self, faults: list[Fault]) -> None:
        """What failed there; environments have the numbers that they have in the whole run."""
        for fault in copy.deepcopy(faults):
            env = None if fault.env_id is None else self.envs[fault.env_id]
            lost, what = tuple(self.envs[i] for i in fault.lost), f"sampler {self.index}: "
            self._log(replace(fault, env_id=env, lost=lost, what=what + fault.what))

    def _call(self, method: str, *arguments: object) -> object:
        with living_ray():
            return getattr(self.actor, method).remote(*arguments)

    def _lose(self, error: BaseException) -> None:
        """One loss is logged once, however often it is asked for while it starts again."""
        why, envs = lines_of(error)[0], tuple(self.envs)
        if self._down_since is None:
            self._down_since = time.monotonic()
            what = f"sampler {self.index} was lost ({why})"
            what += f"; its {len(envs)} environments begin again"
            self._log(Fault(what=what, env_id=None, worker=self.index, lost=envs))
        elif time.monotonic() - self._down_since > START_S:
            raise WorkerError(
                f"sampler {self.index} was lost and is not back after {START_S:.0f} s ({why}); "
                "see `ray status`"
            )

    def save(self) -> Arrays:
        """Its games; nothing if it has just been lost: then it begins new ones on resume."""
        if self.is_down:
            return {}
        try:
            (arrays,) = fetch([self._call("save")])
            return dict(arrays)
        except import_ray().exceptions.RayActorError as error:
            self._lose(error)
            return {}
        except WorkerError:  # all of Ray is lost
            return {}

    def load(self, arrays: Arrays) -> None:
        if arrays:
            fetch([self._call("load", dict(arrays))])

    def close(self) -> None:
        with contextlib.suppress(WorkerError), living_ray() as ray:
            ray.kill(self.actor)


class Together:
    """Samplers on Ray as one: their rollouts side by side, in the order of their networks.

    One that is lost is not waited for, unless all are; its columns are missing until it is back.
    """

    def __init__(self, parts: Sequence[RemoteSampler], orders: Orders, log: FaultLog) -> None:
        self.parts, self.orders = parts, orders
        self.faults, self.listen = log.faults, log.listen
        self.stop: Callable[[], bool] = lambda: False
        self.watch = Stopwatch()

    @property
    def running(self) -> Array:
        return np.concatenate([part.running for part in self.parts])

    def set_weights(self, weights: object, version: int) -> None:
        for part in self.parts:
            part.set_weights(weights, version)

    def collect(self, shaping: object) -> Rollout:
        told = self.orders.gains.copy(), self.orders.costs.copy(), self.orders.defied.copy()
        prices = told if len(self.orders.allowed) else None
        gathered: dict[int, Rollout] = {}
        for part in self.parts:
            part.ask(shaping, prices)
        self.watch.switch(WAITING)
        while not gathered or any(
            part.index not in gathered and not part.is_down for part in self.parts
        ):
            for part in self.parts:
                if part.index not in gathered:
                    part.ask(shaping, prices)  # again, if it was lost
                    rollout = part.answer(0.0 if part.is_down and gathered else POLL_S)
                    if rollout is not None:
                        gathered[part.index] = rollout
            if self.stop():
                raise Stopped
            if all(part.is_down for part in self.parts):
                time.sleep(POLL_S)
        self.watch.switch(COPYING)
        return side_by_side([gathered[index] for index in sorted(gathered)])

    def save(self) -> Arrays:
        saved: Arrays = {}
        for part in self.parts:
            saved |= {f"{part.index}_{name}": array for name, array in part.save().items()}
        return saved

    def load(self, arrays: Arrays) -> None:
        for part in self.parts:
            prefix = f"{part.index}_"
            mine = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
            part.load(mine)

    def close(self) -> None:
        for part in self.parts:
            part.close()


# --- from settings to samplers --------------------------------------------------------------------


def cpus_for_each(config: TrainConfig, count: int) -> float:
    """CPUs that a sampler reserves: as asked for, else an even share of what there is."""
    with living_ray() as ray:
        there = float(ray.cluster_resources().get("CPU", 0.0))
    wanted = config.cpus_per_sampler
    if wanted is None:
        return min(1.0, there / count)
    if wanted * count > there:
        raise ConfigError(
            f"{count} samplers with {wanted:g} CPUs each need {wanted * count:g}, but the cluster "
            f"has {there:g}; give fewer --num-samplers or --cpus-per-sampler"
        )
    return wanted


def on_ray(config: TrainConfig, network: Network | None, _first_index: int = 0) -> Recipe:
    """Samplers as Ray actors; the learner stays here."""
    if network is not None and config.network is None:
        raise ConfigError(
            "--runner ray needs the network by name, so that other machines can import it: give "
            "--network module:factory"
        )
    with contextlib.ExitStack() as unless_open:
        unless_open.enter_context(connected(config.ray_address))
        log, orders = FaultLog(config.max_restarts, None), orders_of(config)
        samplers = open_samplers(config, log)
        stepper: Stepper
        if config.env == "cage2":
            stepper, device = open_stepper(config, network)
        else:
            seen, done = samplers[0].facts["spaces"]
            _, stepper, device = open_networks(config, seen, done, network)
        groups = [[sampler] for sampler in samplers] if config.algo == "impala" else [samplers]
        parts = [Together(group, orders, log) for group in groups]
        nodes = len({sampler.facts["node"] for sampler in samplers})
        envs = sum(len(sampler.envs) for sampler in samplers)
        note = (
            f"{envs} environments in {len(samplers)} samplers on {nodes} node"
            f"{'s' if nodes > 1 else ''} of Ray"
        )
        recipe = recipe_of(config, parts, stepper, device, note=note)
        return replace(recipe, leave=unless_open.pop_all().close)


def open_samplers(config: TrainConfig, log: FaultLog) -> list[RemoteSampler]:
    """The actors, ready to play."""
    ray = import_ray()
    size, count = int(config.num_envs), min(config.num_samplers, int(config.num_envs))
    cpus = cpus_for_each(config, count)
    remote = ray.remote(num_cpus=cpus, max_restarts=-1, max_task_retries=0)(Player)
    samplers, references = [], dict[int, object]()
    for index in range(count):
        low, high = size * index // count, size * (index + 1) // count
        part = replace(
            config,
            runner="local",
            ray_address=None,
            num_envs=high - low,
            num_threads=1,
            num_samplers=1,
            num_envs_per_worker=None,
            resume=None,
            config=None,
            start_from=None,
            seed=config.seed if config.env == "cage2" else config.seed + 1_000_003 * index,
            device="cpu",
            overlap=False,
            algo="ppo" if config.env == "cage2" else config.algo,
        )
        actor = remote.remote(part, low, workplace())
        samplers.append(RemoteSampler(actor, index, range(low, high), references, log))
    deadline = time.monotonic() + START_S
    for sampler in samplers:
        sampler.wait_until_open(deadline)
        error, version = sampler.facts["error"], sampler.facts["version"]
        where = f"sampler {sampler.index} on node {sampler.facts['node'][:8]}"
        if error:
            raise WorkerError(f"{where}: {error}")
        if version != phalanx.__version__:
            raise ConfigError(
                f"{where} has phalanx {version}, this is {phalanx.__version__}; install the same "
                "on all machines"
            )
    return samplers
