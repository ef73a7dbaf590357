"""A Ray cluster: joined where there is one, started on this machine alone otherwise."""

import contextlib
import os
import socket
import warnings
from collections.abc import Iterator
from typing import Any

from bochner.distributed.processes import parsed_address

LOOPBACK = "127.0.0.1"


def imported_ray() -> Any:
    """Import Ray without its usage statistics, or say how to get it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "asynchronous training needs Ray: pip install 'bochner[distributed]'."
        ) from error
    return ray


@contextlib.contextmanager
def connected(address: str | None, n_cpus: int) -> Iterator[Any]:
    """Be connected to a cluster, and give Ray.

    A cluster started here listens on the loopback only, has no dashboard and ends with the block. One that the program
    is connected to already is used and left as it is.

    Args:
        address: `HOST:PORT` of a running cluster, or "auto" for one on this machine; None starts one.
        n_cpus: how many processes of one core each a new cluster must hold.
    """
    ray = imported_ray()
    if ray.is_initialized():
        yield ray
        return
    if address is not None:
        _check_reachable(address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            if address is None:
                # Ray takes a running cluster from the environment otherwise, which nobody asked for.
                with _without("RAY_ADDRESS"):
                    ray.init(
                        address="local",
                        num_cpus=n_cpus,
                        include_dashboard=False,
                        _node_ip_address=LOOPBACK,
                        **quiet,
                    )
            else:
                ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, TimeoutError) as error:
        where = "could not be started" if address is None else f"at {address} cannot be joined"
        raise ValueError(f"the Ray cluster {where}: {str(error).splitlines()[0]}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    if address == "auto":
        return
    if address.startswith("ray://"):
        raise ValueError(
            f"Ray's client protocol is not supported; give the HOST:PORT of the cluster itself. Got {address!r}."
        )
    host, port = parsed_address(address)
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        raise ValueError(
            f"no Ray cluster answers at {address} ({error.strerror or error}). Start one with `ray start --head`, or "
            "give no address, and one is started here."
        ) from error


@contextlib.contextmanager
def _without(name: str) -> Iterator[None]:
    before = os.environ.pop(name, None)
    try:
        yield
    finally:
        if before is not None:
            os.environ[name] = before
