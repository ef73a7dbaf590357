"""One process at a time: locks that the system gives free when a process ends, however."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # only Unix has it
    fcntl = None


def lock_now(handle: int) -> bool:
    """Lock an open file for this process; False where another holds it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other holds a folder, and hold it for the block; nothing is left in it.

    Example:
        >>> import pathlib, tempfile
        >>> from bochner.system.locks import alone_in
        >>> with alone_in(pathlib.Path(tempfile.mkdtemp())):
        ...     pass
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
