"""Where a command writes; the one place that sees to it, before any work, that neither input nor result is lost."""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from bochner.system.destination import Destination, errors_in_words, try_writing

Inputs = Mapping[str, str | Path | None]
"""What a command reads, by the name of its argument or option; None where it is not given."""

_STANDARD_INPUT, _STANDARD_OUTPUT = 0, 1


class Output:
    """The file that an option names, after checks that it is none of the inputs and can be written.

    Args:
        option: the option, for messages.
        path: the file; "-" is standard output.
        inputs: what must not be overwritten.

    Example:
        >>> import os, tempfile
        >>> from bochner.cli.output import Output
        >>> path = os.path.join(tempfile.mkdtemp(), "page.html")
        >>> Output("--output", path, {"TABLE": "table.csv"}).write(b"<!doctype html>")
        >>> open(path).read()
        '<!doctype html>'
    """

    def __init__(self, option: str, path: str | Path, inputs: Inputs):
        if not str(path):
            raise ValueError(f"{option} must name a file; got an empty name.")
        refuse_inputs(option, path, inputs)
        self.option, self.path = option, Path(path)
        self.is_standard_output = str(path) == "-" or _is_standard_output(path)
        self._destination = None if self.is_standard_output else _checked(option, path)

    @property
    def is_special(self) -> bool:
        """Whether it is no file but standard output, a device or a pipe."""
        return self._destination is None or self._destination.is_special

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Give a file to write to; it appears whole when the block ends without an error, and not before."""
        if self._destination is None:
            yield sys.stdout.buffer
            with self.errors_in_words():
                sys.stdout.flush()
            return
        with self._destination.open() as file:
            yield file

    def errors_in_words(self) -> contextlib.AbstractContextManager[None]:
        """Say of a system's error which file could not be written."""
        if self._destination is None:
            return errors_in_words(
                "write to standard output",
                "what it holds is not whole. Make room, or name a file in another place by --output",
            )
        return self._destination.errors_in_words()

    def write(self, content: bytes) -> None:
        """Write the whole file."""
        with self.open() as file, self.errors_in_words():
            file.write(content)

    def write_or_rescue(self, content: bytes) -> None:
        """Write the whole file; where that fails, another one in the current or the temporary folder.

        Raises:
            OSError: the place failed; it says where the content is instead.
        """
        try:
            self.write(content)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            place = _second_place(self.path, content)
            ending = (
                "No other place could be written either, so it is lost. Make room before the next try."
                if place is None
                else f"What belongs there is in {place} instead: move it from there."
            )
            raise OSError(
                f"{self.option} {self.path} could not be written ({reason}). {ending}"
            ) from error


def refuse_inputs(option: str, path: str | Path, inputs: Inputs) -> None:
    """Refuse an output that is an input, by whatever name, or that lies in a folder read as one table.

    Example:
        >>> from bochner.cli.output import refuse_inputs
        >>> refuse_inputs("--model", "prices", {"TABLE": "flats.csv", "--validation": None})
        >>> refuse_inputs("--model", "flats.csv", {"TABLE": "flats.csv", "--validation": None})
        Traceback (most recent call last):
        ValueError: --model flats.csv would overwrite TABLE, which is the same file. Give --model another name.
    """
    status, real = _status(path, _STANDARD_OUTPUT), _real(path)
    if status is not None and not _holds_data(status):
        return
    for name, given in inputs.items():
        if given is None:
            continue
        other, folder = _status(given, _STANDARD_INPUT), _real(given)
        same = status is not None and other is not None and os.path.samestat(status, other)
        if same or (real is not None and real == folder):
            called = name if str(given) == str(path) else f"{name} ({given})"
            raise ValueError(
                f"{option} {path} would overwrite {called}, which is the same file. Give {option} another name."
            )
        if real is not None and folder in real.parents and os.path.isdir(given):
            raise ValueError(
                f"{option} {path} lies in {name} ({given}), a folder whose files are all read as one table. Give "
                f"{option} a place outside."
            )


def check_folder(option: str, path: str | Path, inputs: Inputs) -> None:
    """Check that a folder to write to is none of the inputs, and that it can be made and written.

    Example:
        >>> from bochner.cli.output import check_folder
        >>> check_folder("--checkpoint", "run", {"TABLE": "flats.csv"})
    """
    refuse_inputs(option, path, inputs)
    folder = Path(os.path.realpath(path))
    while not os.path.lexists(folder):
        folder = folder.parent
    if not os.path.isdir(folder):
        raise ValueError(f"{option} must name a folder; {folder} is a file.")
    with _told_of(option, path):
        try_writing(folder)


def _checked(option: str, path: str | Path) -> Destination:
    if os.path.isdir(path):
        raise ValueError(f"{option} must name a file; {path} is a folder.")
    destination = Destination(path)
    if not destination.is_special and not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise ValueError(f"the folder of {option} {path} does not exist. Make it first.")
    with _told_of(option, path):
        destination.check()
    return destination


@contextlib.contextmanager
def _told_of(option: str, path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"{option} {path} cannot be written ({error.strerror or error}). Make room, or choose another place."
        ) from error


def _is_standard_output(path: str | Path) -> bool:
    found, standard = _status(path, _STANDARD_OUTPUT), _status("-", _STANDARD_OUTPUT)
    return found is not None and standard is not None and os.path.samestat(found, standard)


def _status(path: str | Path, standard: int) -> os.stat_result | None:
    """What the system knows of a file; None where there is none."""
    try:
        return os.fstat(standard) if str(path) == "-" else os.stat(path)
    except (OSError, ValueError):
        return None


def _real(path: str | Path) -> Path | None:
    """The path without links; None for standard input and output."""
    return None if str(path) == "-" else Path(os.path.realpath(path))


def _holds_data(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)


def _second_place(path: Path, content: bytes) -> Path | None:
    for folder in (os.getcwd, tempfile.gettempdir):
        with contextlib.suppress(OSError):
            return _written_in(folder(), path, content)
    return None


def _written_in(folder: str, path: Path, content: bytes) -> Path:
    """Write a file of a new name like that of the path; only its owner may read it."""
    name = path.stem.strip("-")[:40] or "model"  # with room for what makes it new
    handle, made = tempfile.mkstemp(path.suffix[:20], f"{name}-", folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(made)
        raise
    return Path(made)
