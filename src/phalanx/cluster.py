"""Ray, and only here: a cluster of our own on this machine, or one that is running; and tasks."""

import contextlib
import io
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from phalanx.cage2.settings import count_cores
from phalanx.errors import ConfigError, MissingError

CONNECT_S = 5.0  # to find out whether anybody listens at an address
STORE_BYTES = 1 << 30  # of the object store of our own cluster: a few rollouts of each sampler
LONGEST_TEMP = 30  # Ray's sockets lie below it, and a socket's path has at most 107 characters
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",  # the new one prints even where it is told to be silent
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # torch in a task sees the GPU
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # a run folder has all that they would write
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_WARN_THRESHOLD_S": "1e9",
}
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # off: Ray listens on 127.0.0.1 only
SOON = {"RAY_NUM_REDIS_GET_RETRIES": "4"}  # seconds in which a cluster must let us in


def import_ray() -> Any:
    """Ray, and Tune with it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
            import ray.tune
    except ImportError as error:
        raise MissingError(f"no Ray here ({error}): pip install 'phalanx[ray]'") from None
    return ray


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """`ray`, connected; nothing of it is left running, and its temporary files are removed.

    address: None (our own, on this machine), auto or HOST:PORT. A process that is connected already
    stays so.
    """
    with contextlib.ExitStack() as until_the_end:
        until_the_end.enter_context(_quiet_log())
        until_the_end.enter_context(
            _environment(QUIET | (ON_LOOPBACK if address is None else SOON))
        )
        if address is None:
            _ask_for_a_token()
        ray = import_ray()
        if not ray.is_initialized():
            temp = until_the_end.enter_context(_temporary_folder()) if address is None else None
            until_the_end.callback(ray.shutdown)
            _join(ray, address, temp)
        yield ray


def connect(address: str | None) -> Callable[[], None]:
    """The same until what is returned is called."""
    stack = contextlib.ExitStack()
    stack.enter_context(connected(address))
    return stack.close


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """What Ray's threads print to standard output whenever a process dies."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def run_tasks(
    function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], shared: Any
) -> list[Any]:
    """`function(shared, *job)` for each job, one CPU each, on whichever machines are free.

    shared: the same for all; it is sent once to each machine. What is lost with a machine is
    done again.
    """
    ray = import_ray()
    remote, reference = ray.remote(num_cpus=1)(function), ray.put(shared)
    return list(ray.get([remote.remote(reference, *job) for job in jobs]))


def count_cpus() -> int:
    """Of the whole cluster."""
    return max(1, int(import_ray().cluster_resources().get("CPU", 1)))


def most_cores() -> int:
    """Of the largest machine."""
    nodes = [node for node in import_ray().nodes() if node["Alive"]]
    return max(int(node["Resources"].get("CPU", 0)) for node in nodes)


def _join(ray: Any, address: str | None, temp: str | None) -> None:
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address is None:
        with _told_to_stay_on_loopback(ray):
            ray.init(
                address="local",
                num_cpus=count_cores(),
                object_store_memory=STORE_BYTES,
                include_dashboard=False,
                _temp_dir=temp,
                **how,
            )
        return
    check_that_somebody_listens(address)
    try:
        with warnings.catch_warnings(), _quiet_stderr():
            warnings.simplefilter("ignore")
            ray.init(address=address, **how)
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        if "InvalidAuthToken" in str(error.__cause__):
            raise ConfigError(
                f"--ray-address {address}: the cluster wants its token; set RAY_AUTH_MODE=token "
                "and RAY_AUTH_TOKEN to what `ray get-auth-token` says on its head"
            ) from None
        if "ersion mismatch" in reason:
            raise ConfigError(
                f"--ray-address {address}: {reason}; install the same on both"
            ) from None
        raise ConfigError(
            f"cannot join Ray at {address} ({reason[:200]}); start one with `ray start --head`, or "
            "leave out --ray-address"
        ) from None


@contextlib.contextmanager
def _told_to_stay_on_loopback(ray: Any) -> Iterator[None]:
    """What ON_LOOPBACK says, for a Ray that was imported before it was said."""
    constants = ray._private.ray_constants
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


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


def _ask_for_a_token() -> None:
    """Nobody else can talk to our own Ray, and its token is not left in the home folder.

    Ray reads this once, when it is imported. A process that has imported it before goes without.
    """
    if "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


@contextlib.contextmanager
def _temporary_folder() -> Iterator[str]:
    usual = tempfile.gettempdir()
    path = tempfile.mkdtemp(prefix="phalanx", dir=usual if len(usual) <= LONGEST_TEMP else "/tmp")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """What Ray's compiled part writes each time that it is turned away."""
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
    """Ray's own log and warnings."""
    log = logging.getLogger("ray")
    before = log.level
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="ray")
        log.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            log.setLevel(before)
