"""Ctrl-C and SIGTERM during long calls of compiled programs, in which Python hears nothing."""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator

from bochner.cli.common import SIGNALED, fail

_SECONDS_FOR_PYTHON = 0.4


@contextlib.contextmanager
def ending_at_once(clean_up: Callable[[], None], as_json: bool) -> Iterator[None]:
    """End the process within a second of a signal.

    A signal's handler runs when the main thread comes back to Python, which a compiled program may keep it from for
    minutes. So another thread waits for signals, too, and ends the process where the main thread has not by then. It is
    for work that has written nothing yet.

    Args:
        clean_up: called before the end, to leave the terminal as it was.
        as_json: whether errors are told in JSON, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    is_over = threading.Event()

    def watch() -> None:
        while number := receiver.recv(1):
            if number[0] not in (signal.SIGINT, signal.SIGTERM):
                continue
            if is_over.wait(_SECONDS_FOR_PYTHON):
                return
            clean_up()
            code = fail("stopped.", SIGNALED + number[0], as_json)
            sys.stdout.flush()
            os._exit(code)

    watcher = threading.Thread(target=watch, daemon=True)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        signal.set_wakeup_fd(before)
        clean_up()
        sender.close()
        watcher.join()
        receiver.close()
