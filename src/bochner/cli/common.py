"""What all commands share: the options, the output for people and for machines, errors and exit codes."""

import contextlib
import errno
import functools
import inspect
import json
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as RichTable

from bochner.system.terminal import PlainConsole, harmless

BAD_INPUT = 1
DIVERGED = 3
SIGNALED = 128

EXIT_CODES = (
    "Exit codes: 0 done; 1 something is wrong with the data, the model file or a setting, and the message says what; "
    "2 the command line is wrong; 3 training diverged; 130 stopped by Ctrl-C; 143 stopped by SIGTERM."
)

_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Make room there, or choose another place."),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Choose a place that you may use."),
}

AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, for other programs.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no warnings.")]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, made by `fit`.")]
TablePath = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV (also gzip), Parquet file or folder, .npz or .npy; - is standard input.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]


def command(function: Callable) -> Callable:
    """Turn the errors of a command into a line for people and an exit code, and warnings into plain lines."""

    @functools.wraps(function)
    def run(*args, **options):
        quiet, as_json = options.get("quiet", False), options.get("as_json", False)
        # Before signals become errors: one in the middle of an import can be lost, or end in a crash.
        import bochner.estimators  # noqa: F401

        with warnings.catch_warnings(), _ending_in_order() as heard, _showing_errors():
            if quiet:
                warnings.simplefilter("ignore")
            warnings.showwarning = _show_warning
            try:
                return function(*args, **options)
            except BrokenPipeError:
                # The reader of standard output has seen enough, as `head` has.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(SIGNALED + 13) from None
            except KeyboardInterrupt:
                raise typer.Exit(_stopped_by(heard, as_json)) from None
            except Exception as error:
                if heard:  # compiled code makes other errors of what a signal raises
                    raise typer.Exit(_stopped_by(heard, as_json)) from None
                code = _exit_code(error)
                if code is None:
                    raise
                if code > SIGNALED:
                    raise typer.Exit(stopped(str(error), code, as_json)) from error
                raise typer.Exit(fail(_in_words(error), code, as_json)) from error

    run.__doc__ = _flowing(function.__doc__ or "")
    return run


def _flowing(text: str) -> str:
    """Give each paragraph as one line, which breaks where the terminal ends."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


@contextlib.contextmanager
def _ending_in_order() -> Iterator[list[int]]:
    """Let SIGTERM and Ctrl-C end the command like an error does, so that what is half written is removed.

    The list given holds the signals that came.
    """
    heard: list[int] = []

    def end(number, _):
        heard.append(number)
        raise KeyboardInterrupt

    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # A handler that is not Python's could not be given back; who ignores Ctrl-C wants it so.
    ours = {
        number: handler
        for number, handler in found.items()
        if handler is not None and (number, handler) != (signal.SIGINT, signal.SIG_IGN)
    }
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    for number in ours:
        signal.signal(number, end)
    try:
        yield heard
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _showing_errors() -> Iterator[None]:
    """Show what the library logs as an error, though the command goes on."""

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            _show_error(record.getMessage())

    handler, logger = Shown(logging.ERROR), logging.getLogger("bochner")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _show_error(message: str) -> None:
    PlainConsole(stderr=True).print(f"Error: {message}", style="red", soft_wrap=True)


def fail(message: str, code: int, as_json: bool = False) -> int:
    """Say what went wrong, and give the exit code."""
    if as_json:
        print(json.dumps({"error": message}))
    _show_error(message)
    return code


def _stopped_by(heard: list[int], as_json: bool) -> int:
    return stopped("", SIGNALED + (heard or [signal.SIGINT])[-1], as_json)


def stopped(message: str, code: int, as_json: bool) -> int:
    """Say that a signal has ended the command, which is no error, and give the exit code."""
    if as_json:
        print(json.dumps({"error": message or "stopped"}))
    PlainConsole(stderr=True).print(f"Stopped. {message}".strip(), soft_wrap=True)
    return code


def _in_words(error: Exception) -> str:
    # The number of a system's error tells users nothing.
    if not (isinstance(error, OSError) and error.strerror):
        return str(error)
    if error.filename is None:
        return error.strerror
    remedy = _REMEDIES.get(error.errno or 0, "Check the path.")
    return f"{error.filename}: {error.strerror}. {remedy}"


def _exit_code(error: Exception) -> int | None:
    from bochner.training import TrainingDivergedError, TrainingStoppedError

    if isinstance(error, TrainingDivergedError):
        return DIVERGED
    if isinstance(error, TrainingStoppedError):
        return SIGNALED + error.signal
    # A missing optional package comes with a message that names the extra.
    return BAD_INPUT if isinstance(error, ValueError | OSError | ImportError) else None


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    if getattr(category, "logged", False):
        return  # shown as an error
    PlainConsole(stderr=True).print(f"Warning: {message}", style="yellow", soft_wrap=True)


def show(values: Mapping[str, Any], *, as_json: bool, quiet: bool = False, title: str = "") -> None:
    """Print a result: JSON, or a table of two columns."""
    if as_json:
        print(json.dumps(plain(values), indent=2))
        return
    if quiet:
        return
    table = RichTable(title=title or None, show_header=False, title_justify="left")
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(harmless(name.replace("_", " ")), in_words(value))
    PlainConsole().print(table)


def in_words(value: Any) -> str:
    """Write a value as a person would.

    Example:
        >>> from bochner.cli.common import in_words
        >>> in_words(1234567), in_words(0.123456789), in_words(None)
        ('1,234,567', '0.1235', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return "\n".join(f"{harmless(name)}: {in_words(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    return harmless(value)


def plain(value: Any) -> Any:
    """Give a value as JSON knows it; numbers that are not finite become null.

    Example:
        >>> from bochner.cli.common import plain
        >>> plain({"a": (1, float("nan"))})
        {'a': [1, None]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not (float("-inf") < value < float("inf")):
        return None
    return str(value) if isinstance(value, Path) else value


def load_model(path: Path) -> Any:
    """Open a model file."""
    from bochner import load

    return load(path)


def note(text: str, quiet: bool) -> None:
    """Tell something on the way."""
    if not quiet:
        PlainConsole(stderr=True).print(text, soft_wrap=True, style="dim")
