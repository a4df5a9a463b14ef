"""Ray, and only here: a cluster of our own on this machine, or one that is running; and tasks.

When the raylet that a process talks to is gone, Ray ends the process at its next word to it, from
compiled code and without a word to anybody. So whoever calls Ray asks `living_ray` for it, each
time: that raises an error while there is still time to save things.
"""

import contextlib
import logging
import os
import secrets
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

from phalanx.cluster.lifeline import Lifeline
from phalanx.cluster.own_ray import MARK, cleaned_up
from phalanx.errors import ConfigError, MissingError, PhalanxError, WorkerError
from phalanx.machine import count_cores
from phalanx.system import LINUX

CONNECT_S = 5.0  # to find out whether anybody listens at an address
POLL_S = 0.2  # between looks at whether Ray still lives
HEAD_AWAY_S = 5.0  # a head may be away for as long, if something starts it again
STORE_BYTES = 1 << 30  # of the object store of our own cluster: a few rollouts of each sampler
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",  # the new one prints even where it is told to be silent
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # torch in a task sees the GPU
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # a run folder has all that they would write
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_WARN_THRESHOLD_S": "1e9",
}
OWN = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # off: Ray listens on 127.0.0.1 only
    "RAY_health_check_failure_threshold": "1000",  # we see ourselves that its only raylet is gone
}
SOON = {"RAY_NUM_REDIS_GET_RETRIES": "4"}  # seconds in which a cluster must let us in

T = TypeVar("T")


def import_ray(with_tune: bool = False) -> ModuleType:
    """Ray, and Tune with it where it is needed: pandas and pyarrow come along."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray

            if with_tune:
                import ray.tune
    except ImportError as error:
        raise MissingError(f"no Ray here ({error}): pip install 'phalanx[ray]'") from None
    return ray


@contextlib.contextmanager
def connected(address: str | None, with_tune: bool = False) -> Iterator[ModuleType]:
    """`ray`, connected; nothing of it is left running, and its temporary files are removed.

    address: None (our own, on this machine), auto or HOST:PORT. A process that is connected already
    stays so.
    """
    with contextlib.ExitStack() as until_the_end:
        until_the_end.enter_context(_quiet_log())
        if address is None and not LINUX:
            raise ConfigError("phalanx starts Ray only on Linux: give --ray-address HOST:PORT")
        settings = QUIET | (OWN | _own_token() if address is None else SOON)
        until_the_end.enter_context(_changed(os.environ, settings))
        ray = import_ray(with_tune)
        folder = None
        if not ray.is_initialized():
            if address is None:
                folder = until_the_end.enter_context(cleaned_up())
            until_the_end.callback(ray.shutdown)
            _join(ray, address, folder)
        with _watched(ray, head_away_s=0.0 if folder else HEAD_AWAY_S):
            yield ray


@contextlib.contextmanager
def living_ray() -> Iterator[ModuleType]:
    """Ray, for a few calls; an error if what it runs on is gone.

    with living_ray() as ray:
        ray.put(weights)
    """
    check_ray_lives()
    try:
        yield import_ray()
    except OSError:
        time.sleep(POLL_S)
        check_ray_lives()
        raise


def check_ray_lives() -> None:
    for lifeline in _lifelines:
        if lifeline.is_cut():
            raise WorkerError(
                f"Ray is lost: {lifeline.name} was killed or has crashed, perhaps for want of "
                "memory; what is saved can be continued with --resume"
            ) from None


def fetch(references: Sequence[object]) -> list[Any]:
    """The results of tasks, of whatever kind, when all are done."""
    waiting = list(references)
    while waiting:
        with living_ray() as ray:
            _done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=POLL_S)
    with living_ray() as ray:
        return list(ray.get(list(references)))


def run_tasks(
    function: Callable[..., T], jobs: Sequence[tuple[object, ...]], shared: object
) -> list[T]:
    """`function(shared, *job)` for each job, one CPU each, on whichever machines are free.

    shared: the same for all; it is sent once to each machine. What is lost with a machine is
    done again.
    """
    with living_ray() as ray:
        remote, reference = ray.remote(num_cpus=1)(_run_task), ray.put(shared)
        asked = [remote.remote(workplace(), function, reference, *job) for job in jobs]
    try:
        return fetch(asked)
    except ray.exceptions.RayError as error:
        if isinstance(error, PhalanxError):  # a task's own, which Ray has made one of its own too
            raise
        raise WorkerError(f"a task on Ray failed: {lines_of(error)[-1]}") from None


Workplace = tuple[str, list[str]]  # where a process works, and where it imports from


def workplace() -> Workplace:
    """That of this process, for one elsewhere to `move_to`."""
    return os.getcwd(), [place or os.getcwd() for place in sys.path]


def move_to(place: Workplace) -> None:
    """Work there too, if there is such a folder here; what only that place has can be imported."""
    folder, imports = place
    sys.path.extend(path for path in imports if path not in sys.path)
    with contextlib.suppress(OSError):
        os.chdir(folder)


def _run_task(place: Workplace, function: Callable[..., T], *arguments: object) -> T:
    move_to(place)
    return function(*arguments)


def count_cpus() -> int:
    """Of the whole cluster."""
    return max(1, int(import_ray().cluster_resources().get("CPU", 1)))


def most_cores() -> int:
    """Of the largest machine."""
    nodes = [node for node in import_ray().nodes() if node["Alive"]]
    return max(int(node["Resources"].get("CPU", 0)) for node in nodes)


def _join(ray: ModuleType, address: str | None, folder: str | None) -> None:
    how = {
        "log_to_driver": False,
        "logging_level": logging.CRITICAL,
        "job_config": _job_config(ray),
    }
    # It prints pages of a raylet's log for each process that dies.
    silent = {"listen_error_messages": lambda *_unused: None}
    with _changed(vars(ray._private.worker), silent):
        if folder is None:
            _join_at(ray, str(address), how)
            return
        # For a Ray that was imported before OWN said the same.
        loopback = _changed(vars(ray._private.ray_constants), {"ENABLE_RAY_CLUSTER": False})
        with loopback, _changed(os.environ, {MARK: folder, "TMPDIR": folder}):
            ray.init(
                address="local",
                num_cpus=count_cores(),
                object_store_memory=STORE_BYTES,
                include_dashboard=False,
                _temp_dir=os.path.join(folder, "r"),  # Ray lets all the world into it
                **how,
            )


def _job_config(ray: ModuleType) -> object:
    """Ray's own lets all workers import from the current folder before all others."""
    config = ray.job_config.JobConfig()
    config._runtime_env_has_working_dir = lambda: True
    return config


def _join_at(ray: ModuleType, address: str, how: Mapping[str, object]) -> None:
    check_that_somebody_listens(address)
    try:
        with warnings.catch_warnings(), _quiet_stderr():
            warnings.simplefilter("ignore")
            ray.init(address=address, **how)
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        what = (
            f"cannot join Ray at {address} ({reason[:200]}); start one with `ray start --head`, or "
            "leave out --ray-address"
        )
        if "InvalidAuthToken" in str(error.__cause__):
            what = (
                f"--ray-address {address}: the cluster wants its token; set RAY_AUTH_MODE=token "
                "and RAY_AUTH_TOKEN to what `ray get-auth-token` says on its head"
            )
        elif "ersion mismatch" in reason:
            what = f"--ray-address {address}: {reason}; install the same on both"
        raise ConfigError(what) from None


@contextlib.contextmanager
def _watched(ray: ModuleType, head_away_s: float) -> Iterator[None]:
    """Let `living_ray` know what our connection depends on."""
    node, before = ray._private.worker._global_node, list(_lifelines)
    if node is not None:  # a client of Ray's, ray://, has none
        _lifelines[:] = [
            Lifeline("its raylet on this machine", node.raylet_socket_name),
            Lifeline("its head", node.gcs_address, head_away_s),
        ]
    try:
        yield
    finally:
        for lifeline in _lifelines:
            lifeline.close()
        _lifelines[:] = before


_lifelines: list[Lifeline] = []


def check_that_somebody_listens(address: str) -> None:
    """Ray itself would try for half a minute."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"--ray-address {address!r} is none; give auto or HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"--ray-address {address}: nobody listens there ({error}); start a cluster with "
            "`ray start --head`, or leave the address out"
        ) from None


def _own_token() -> dict[str, str]:
    """Nobody else can talk to our own Ray, and its token is not left in the home folder.

    Ray reads this once, when it is imported: one that is started again has the same. A process
    that has imported it before us has Ray's own token, which lies there.
    """
    if "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        _token.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    return _token


_token: dict[str, str] = {}


@contextlib.contextmanager
def _changed(values: MutableMapping[str, T], changes: Mapping[str, T]) -> Iterator[None]:
    """Other values for some names, such as of os.environ or of a module, until the end."""
    before = {name: values[name] for name in changes if name in values}
    values.update(changes)
    try:
        yield
    finally:
        for name in changes:
            values.pop(name, None)
        values.update(before)


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Silence what Ray's compiled part writes each time that a cluster refuses it."""
    sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


@contextlib.contextmanager
def _quiet_log() -> Iterator[None]:
    """Silence Ray's own log and warnings."""
    log = logging.getLogger("ray")
    before = log.level
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="ray")
        log.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            log.setLevel(before)


def lines_of(error: BaseException) -> list[str]:
    """What an error says; at least its name."""
    lines = [line.strip() for line in str(error).splitlines()]
    return [line for line in lines if line] or [type(error).__name__]


def in_one_line(error: BaseException) -> str:
    """What an error says, and what it is if it is none of ours."""
    kind = "" if isinstance(error, PhalanxError) else f"{type(error).__name__}: "
    return kind + " ".join(str(error).split())
