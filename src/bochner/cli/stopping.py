"""Ctrl-C and SIGTERM during long calls of compiled programs, in which Python hears nothing."""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator

from bochner.cli.common import SIGNALED, stopped

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def ending_at_once(as_json: bool) -> Iterator[contextlib.ExitStack]:
    """End the process as soon as a signal comes; what is put on the stack given is done before.

    A signal's handler runs when the main thread comes back to Python, which a compiled program may keep it from for
    minutes. So another thread waits for signals, and handlers do nothing. It is for work that has written nothing yet.
    """
    with contextlib.ExitStack() as before_the_end:
        if threading.current_thread() is not threading.main_thread():
            yield before_the_end
            return
        receiver, sender = socket.socketpair()
        sender.setblocking(False)

        def watch() -> None:
            while number := receiver.recv(1):
                if number[0] in _SIGNALS:
                    before_the_end.close()
                    code = stopped("", SIGNALED + number[0], as_json)
                    sys.stdout.flush()
                    os._exit(code)

        watcher = threading.Thread(target=watch, daemon=True)
        descriptor = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        handlers = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
        watcher.start()
        try:
            yield before_the_end
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(descriptor)
            sender.close()
            watcher.join()
            receiver.close()
