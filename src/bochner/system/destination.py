"""Where a file goes: it is written beside its place, which it takes when it is whole."""

import contextlib
import errno
import os
import re
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_PROBE = bytes(4096)
_HIDDEN = re.compile(r"\.[0-9a-f]{32}\.partial")


class Destination:
    """A place for a file that at any moment holds it whole, or what was there before.

    The file that a link points to is replaced, not the link, and its permissions stay. Devices and pipes, such as
    `/dev/stdout`, are written straight.

    Args:
        path: where the file goes; missing folders are made when it is opened.

    Example:
        >>> import os, tempfile
        >>> from bochner.system.destination import Destination
        >>> path = os.path.join(tempfile.mkdtemp(), "notes.txt")
        >>> place = Destination(path)
        >>> place.check()
        >>> with place.open() as file:
        ...     _ = file.write(b"something")
        ...     os.path.exists(path)
        False
        >>> open(path).read()
        'something'
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if os.path.isdir(path):
            raise IsADirectoryError(
                f"{path} is a folder; give the name of a file, such as {self.path / 'model.bochner'}."
            )
        self._real = Path(os.path.realpath(path))

    @property
    def is_special(self) -> bool:
        """Whether the place is a device or a pipe."""
        return os.path.exists(self.path) and not os.path.isfile(self.path)

    def check(self) -> None:
        """Notice now what would fail later."""
        self._check_permission()
        if self.is_special:
            return
        with contextlib.suppress(FileNotFoundError):
            self._real.lstat()  # a name may be too long
        try_writing(self._real.parent)

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Give a file to write to; it takes its place when the block ends without an error."""
        # An error of the block is its own affair; one before or after it is about this file.
        stack = contextlib.ExitStack()
        with self.errors_in_words():
            file = stack.enter_context(self._opened())
        try:
            yield file
        except BaseException as error:
            # A full disk fails once more when the file is closed; the first error tells more.
            with contextlib.suppress(OSError):
                stack.__exit__(type(error), error, error.__traceback__)
            raise
        with self.errors_in_words():
            stack.close()

    def errors_in_words(self) -> contextlib.AbstractContextManager[None]:
        """Say of a system's error which file could not be written, and that nothing was lost."""
        return errors_in_words(
            f"write {self.path}",
            "what was there before is unchanged. Make room, or choose another place",
        )

    @contextlib.contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        self._check_permission()
        if self.is_special:
            with self.path.open("wb") as file:
                yield file
            return
        self._real.parent.mkdir(parents=True, exist_ok=True)
        with _hidden_file(self._real.parent) as beside:
            with beside.open("xb") as file:
                self._keep_permissions(beside)
                yield file
                _flush(file)
            os.replace(beside, self._real)
        # Without this a power failure could undo the replacement; not every system can do it for a folder.
        with contextlib.suppress(OSError):
            folder = os.open(self._real.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _check_permission(self) -> None:
        # The system asks this of the folder only; but a file that is protected is so for a reason.
        if os.path.exists(self.path) and not os.access(self.path, os.W_OK):
            raise PermissionError(errno.EACCES, "it is write-protected")

    def _keep_permissions(self, beside: Path) -> None:
        # Not every file system knows them.
        with contextlib.suppress(OSError):
            beside.chmod(stat.S_IMODE(self._real.stat().st_mode))


@contextlib.contextmanager
def errors_in_words(what: str, advice: str) -> Iterator[None]:
    """Say of a system's error what could not be done, why, and what to do; a reader that left is no such error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise OSError(error.errno, f"cannot {what} ({reason}): {advice}") from error


def try_writing(folder: Path) -> None:
    """Write a little into a folder and remove it again; raises what a longer file would.

    Example:
        >>> import pathlib, tempfile
        >>> from bochner.system.destination import try_writing
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> try_writing(folder)
        >>> list(folder.iterdir())
        []
    """
    with _hidden_file(folder) as path:
        with path.open("xb") as file:
            file.write(_PROBE)
            _flush(file)
        path.unlink()


def remove_partial_files(folder: Path) -> None:
    """Remove what processes that were killed while they wrote have left in a folder that is nobody else's.

    Example:
        >>> import pathlib, tempfile, uuid
        >>> from bochner.system.destination import remove_partial_files
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> (folder / f".{uuid.uuid4().hex}.partial").touch()
        >>> remove_partial_files(folder)
        >>> list(folder.iterdir())
        []
    """
    for path in folder.glob(".*.partial"):
        if _HIDDEN.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _hidden_file(folder: Path) -> Iterator[Path]:
    """Name a hidden file, and remove it if the block fails."""
    path = folder / f".{uuid.uuid4().hex}.partial"
    try:
        yield path
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
