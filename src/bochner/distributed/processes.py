"""Processes that train in step: how they find each other, and what happens when one of them is lost."""

import atexit
import contextlib
import ipaddress
import itertools
import math
import os
import socket
import subprocess
import sys
import time
import warnings

import jax
from jax._src import distributed  # JAX itself offers no way to wait without exchanging arrays

_HEARTBEAT_SECONDS = 8
_SHUTDOWN_SECONDS = 10
_MEETING_SECONDS = 3600
_SILENT_SECONDS = 10
_meetings = itertools.count()

_LOST = (
    "a process of the training was lost, so all of them stop. Start them all again; with the folder of the checkpoints "
    "and `resume` they go on from the last one."
)

# JAX ends a process whose coordinator is gone in the middle of whatever it does, and takes no function to call then.
_LAST_WORDS = """
import sys
if sys.stdin.buffer.read() != b"done":
    sys.stderr.write("Error: " + sys.argv[1] + "\\n")
"""


class ProcessLostError(ConnectionError):
    """Another process of a synchronous training was lost."""

    def __init__(self, cause: BaseException):
        super().__init__(f"{_LOST} ({str(cause).splitlines()[0]})")


def join_processes(
    coordinator: str | None = None,
    processes: int | None = None,
    process_id: int | None = None,
    *,
    wait_seconds: int = 300,
) -> None:
    """Become one of several processes that train in step; call it before anything else is computed.

    Every process then runs the same program. What is not given is found as JAX does, from Slurm, Open MPI or
    Kubernetes. The coordinator listens on the named address only; nothing asks for a password, so keep it on a private
    network.

    Args:
        coordinator: `HOST:PORT` where process 0 listens and the others look for it.
        processes: how many there are.
        process_id: which one this is, from 0 on.
        wait_seconds: how long to wait for the others.
    """
    if coordinator is not None:
        host, port = parsed_address(coordinator)
        _check_number(processes, process_id)
        if process_id == 0:
            _check_free(host, port)
        elif process_id is not None:
            _wait_for(host, port, wait_seconds)
        _warn_of_open_sockets(host)
    with _clear_errors():
        jax.distributed.initialize(
            coordinator,
            processes,
            process_id,
            # Without it JAX would listen on every network of the machine.
            coordinator_bind_address=coordinator,
            initialization_timeout=wait_seconds,
            heartbeat_timeout_seconds=_HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=_SHUTDOWN_SECONDS,
        )
    _leave_last_words()


def meet() -> None:
    """Wait until all processes are here.

    Gloo, by which CPU processes exchange sums, gives up on one that comes 30 seconds late: what takes a while, such as
    compilation or the writing of files, must be waited for before a sum.
    """
    number = next(_meetings)
    client = distributed.global_state.client
    assert client is not None
    client.wait_at_barrier(f"bochner-{number}", _MEETING_SECONDS * 1000)


def leave_at_once() -> None:
    """Make the end of this process wait for no other; for when one of them is gone."""
    # Runs before JAX's own, which would wait for all processes and then abort.
    atexit.register(_exit_at_once)


def _exit_at_once() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def parsed_address(address: str) -> tuple[str, int]:
    """Take `HOST:PORT` apart.

    Example:
        >>> from bochner.distributed.processes import parsed_address
        >>> parsed_address("127.0.0.1:1234")
        ('127.0.0.1', 1234)
        >>> parsed_address("somewhere")
        Traceback (most recent call last):
        ValueError: an address must be HOST:PORT, such as 127.0.0.1:1234; got 'somewhere'.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise ValueError(f"an address must be HOST:PORT, such as 127.0.0.1:1234; got {address!r}.")
    return host.strip("[]"), int(port)


def _check_number(processes: int | None, process_id: int | None) -> None:
    if processes is not None and processes < 1:
        raise ValueError(f"the number of processes must be at least 1; got {processes}.")
    if process_id is not None and processes is not None and not 0 <= process_id < processes:
        raise ValueError(
            f"the processes are numbered from 0 to {processes - 1}; got process {process_id}."
        )


def _check_free(host: str, port: int) -> None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise ValueError(
            f"process 0 cannot listen at {host}:{port} ({error.strerror or error}). Choose a free port and an address "
            "of this machine as coordinator."
        ) from error


def _wait_for(host: str, port: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    said = time.monotonic() + min(_SILENT_SECONDS, seconds)
    while True:
        try:
            socket.create_connection((host, port), timeout=5).close()
            return
        except OSError as error:
            if isinstance(error, socket.gaierror) or time.monotonic() > deadline:
                raise ValueError(
                    f"no coordinator answers at {host}:{port} ({error.strerror or error}). Start process 0 there, and "
                    "give all processes the same address."
                ) from error
            if time.monotonic() > said:
                said = math.inf
                warnings.warn(
                    f"process 0 does not answer at {host}:{port} yet; waiting for up to {seconds:g} seconds.",
                    RuntimeWarning,
                    stacklevel=3,
                )
            time.sleep(0.2)


def _warn_of_open_sockets(host: str) -> None:
    """Tell where the sums of CPU processes are exchanged, where that is not on the loopback as the coordinator is."""
    if not _is_loopback(host) or jax.config.values["jax_platforms"] not in (None, "cpu"):
        return
    with contextlib.suppress(OSError):
        own = socket.gethostbyname(socket.gethostname())
        if not _is_loopback(own):
            warnings.warn(
                f"the coordinator is on this machine alone, but Gloo, by which CPU processes exchange sums, listens at "
                f"{own}, the address of this machine's name. Let the name stand for 127.0.0.1 to close it.",
                RuntimeWarning,
                stacklevel=3,
            )


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


@contextlib.contextmanager
def _clear_errors():
    try:
        yield
    except (RuntimeError, ValueError) as error:
        text = str(error)
        if "must be called before" in text:
            raise RuntimeError(
                "processes must join before anything is computed: call `join_processes` first in the program."
            ) from error
        if "should be defined" in text or "must be defined" in text:
            raise ValueError(
                "which processes train together is neither given nor found from Slurm, Open MPI or Kubernetes: give "
                "the coordinator's HOST:PORT, the number of processes, and the number of this one."
            ) from error
        raise ValueError(
            f"the processes could not find each other: {text.splitlines()[0]}. Check that all were started with the "
            "same coordinator and number of processes."
        ) from error


def _leave_last_words() -> None:
    watcher = subprocess.Popen(
        [sys.executable, "-S", "-c", _LAST_WORDS, _LOST],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )

    def orderly_end() -> None:
        with contextlib.suppress(OSError):
            watcher.communicate(b"done")

    atexit.register(orderly_end)
