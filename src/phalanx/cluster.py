"""Ray, and only here: join a cluster or start one, and run tasks on it."""

import logging
import os
import socket
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.errors import ConfigError, MissingError

CONNECT_S = 5.0  # to find out whether anybody listens at an address


def import_ray() -> Any:
    """Ray, quiet and without a message home."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError:
        raise MissingError("--runner ray needs Ray: pip install 'phalanx[ray]'") from None
    return ray


def connect(address: str | None) -> Callable[[], None]:
    """Join the cluster at an address, or start one on this machine; returns what leaves it."""
    ray = import_ray()
    if ray.is_initialized():
        return lambda: None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    else:
        _check_that_somebody_listens(address)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        text = " ".join(str(error).split())
        if "ersion mismatch" in text:
            raise ConfigError(
                f"--ray-address {address}: {text}; install the same on both"
            ) from None
        raise ConfigError(
            f"--ray-address {address}: no Ray cluster there ({text[:200]}); start one with "
            "`ray start --head`, or leave the address out"
        ) from None
    return lambda: ray.shutdown()


def _check_that_somebody_listens(address: str) -> None:
    """Ray itself would try for half a minute."""
    if address == "auto" or "://" in address:
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"--ray-address {address!r} is none; give auto or HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except OSError as error:
        raise ConfigError(
            f"--ray-address {address}: nobody listens there ({error}); start a cluster with "
            "`ray start --head`, or leave the address out"
        ) from None


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
