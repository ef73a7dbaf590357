"""A Ray cluster: joined where there is one, started on this machine alone otherwise."""

import contextlib
import importlib
import ipaddress
import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from bochner.distributed.processes import parsed_address

_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


def imported_ray() -> Any:
    """Import Ray without its usage statistics, or say how to get it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "asynchronous training needs Ray: install it with `pip install ray`."
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
        if address is not None:
            warnings.warn(
                f"this program is connected to a Ray cluster already, which is used; address={address!r} is not.",
                RuntimeWarning,
                stacklevel=4,
            )
        yield ray
        return
    if address is not None:
        _check_reachable(address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    # Newer versions announce that a local cluster asks for a token, which they keep themselves.
    logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)
    with _handler_of_sigterm_kept():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                # Ray starts its processes by a fork that goes on to another program at once.
                warnings.filterwarnings("ignore", r".*fork\(\)")
                if address is None:
                    with _on_the_loopback(ray):
                        ray.init(address="local", num_cpus=n_cpus, include_dashboard=False, **quiet)
                else:
                    ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, TimeoutError) as error:
            where = "could not be started" if address is None else f"at {address} cannot be joined"
            raise ValueError(f"the Ray cluster {where}: {str(error).splitlines()[0]}") from error
        try:
            if address is None:
                _check_on_the_loopback(ray)
            yield ray
        finally:
            ray.shutdown()


@contextlib.contextmanager
def _handler_of_sigterm_kept() -> Iterator[None]:
    """Give the program its own answer to SIGTERM back, which Ray replaces and does not restore."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:  # a handler that is not Python's cannot be given back
            signal.signal(signal.SIGTERM, before)


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
def _on_the_loopback(ray: Any) -> Iterator[None]:
    """Make Ray start on the loopback.

    It replaces 127.0.0.1 by the machine's address, unless clusters are off, as they are by default where a firewall
    would ask about them: then it listens on the loopback. The switch is a variable for the processes it starts and a
    constant in this one.
    """
    constants = importlib.import_module("ray._private.ray_constants")
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False  # pyright: ignore[reportAttributeAccessIssue]
    environment = dict(os.environ)
    os.environ[_CLUSTERS] = "0"
    # Ray would take a running cluster from there, which nobody asked for.
    os.environ.pop("RAY_ADDRESS", None)
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before  # pyright: ignore[reportAttributeAccessIssue]
        for name in (_CLUSTERS, "RAY_ADDRESS"):
            os.environ.pop(name, None)
            if name in environment:
                os.environ[name] = environment[name]


def _check_on_the_loopback(ray: Any) -> None:
    found = ray.util.get_node_ip_address()
    if not ipaddress.ip_address(found).is_loopback:
        warnings.warn(
            f"Ray listens at {found}, where it asks for no password: keep that network private.",
            RuntimeWarning,
            stacklevel=4,
        )
