"""A Ray of our own for the time of a sweep, or a connection to one that is running."""

import contextlib
import io
import logging
import os
import secrets
import shutil
import socket
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.cage2.settings import count_cores
from phalanx.errors import ConfigError, MissingError

OBJECT_STORE_BYTES = 100 * 2**20  # trials hand over settings and figures, nothing large
LONGEST_TEMP = 30  # Ray's sockets lie below it, and a socket's path has at most 107 characters
CONNECT_S = 5.0
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",  # the new one prints even where it is told to be silent
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # torch in a trial sees the GPU
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # a run folder has all that they would write
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_WARN_THRESHOLD_S": "1e9",
}
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # off: Ray listens on 127.0.0.1 only


@contextlib.contextmanager
def connected_ray(address: str, cpus_per_trial: int) -> Iterator[Any]:
    """`ray`, connected; nothing of it is left running, and its temporary files are removed.

    address: local (our own), auto or HOST:PORT. A process that is connected already stays so.
    """
    own = address == "local"
    with contextlib.ExitStack() as until_the_end:
        until_the_end.enter_context(_silence())
        until_the_end.enter_context(_environment(QUIET | (_private() if own else {})))
        ray = _import_ray()
        if not ray.is_initialized():
            temp = until_the_end.enter_context(_temporary_folder()) if own else None
            until_the_end.callback(ray.shutdown)
            _connect(ray, address, temp)
        _check_cores(ray, address, cpus_per_trial)
        yield ray


def _import_ray() -> Any:
    try:
        import ray
        import ray.tune
    except ImportError as error:
        raise MissingError(f"no Ray Tune here ({error}): pip install 'phalanx[ray]'") from None
    return ray


def _connect(ray: Any, address: str, temp: str | None) -> None:
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address == "local":
        ray.init(
            address="local",
            num_cpus=count_cores(),
            object_store_memory=OBJECT_STORE_BYTES,
            include_dashboard=False,
            _temp_dir=temp,
            **how,
        )
        return
    try:
        if address != "auto":
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), CONNECT_S).close()
        ray.init(address=address, **how)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"cannot join Ray at {address} ({reason}); start one with ray start --head, or leave "
            "out --ray-address"
        ) from None


def _check_cores(ray: Any, address: str, cpus_per_trial: int) -> None:
    largest = max(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"])
    if cpus_per_trial > largest:
        raise ConfigError(
            f"cpus_per_trial must be at most {largest}, the cores of the largest machine of the "
            f"Ray at {address}, got {cpus_per_trial}"
        )


def _private() -> dict[str, str]:
    """Nobody else can talk to our own Ray, and its token is not left in the home folder."""
    return {
        **ON_LOOPBACK,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }


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
def _silence() -> Iterator[None]:
    """Ray's own log and warnings, and what its threads print whenever a process dies."""
    log = logging.getLogger("ray")
    before = log.level
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.filterwarnings("ignore", module="ray")
        log.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            log.setLevel(before)
