"""Signals that ask a training to stop, heard between chunks."""

import contextlib
import signal
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Whether a signal came, and which."""

    signal: int | None = None


@contextlib.contextmanager
def listen_for_stop() -> Iterator[StopRequest]:
    """Note SIGINT (Ctrl-C) and SIGTERM instead of ending at once; a second one ends at once.

    Only the main thread hears signals; elsewhere none is noted. Nor is one that a program around Python (R, Julia,
    uWSGI) handles itself: Python could not give it back.

    Example:
        >>> import os, signal
        >>> from bochner.training.interruption import listen_for_stop
        >>> with listen_for_stop() as request:
        ...     os.kill(os.getpid(), signal.SIGTERM)
        ...     request.signal == signal.SIGTERM
        True
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    found = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in found.items() if handler is not None}

    def note(number, _):
        request.signal = number
        for known, handler in before.items():
            signal.signal(known, handler)

    try:
        for number in before:
            signal.signal(number, note)
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
