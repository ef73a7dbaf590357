"""What happens between chunks on the host: records of the training, and those who listen to them."""

import dataclasses
import reprlib
import sys
import time
from typing import Any, Protocol, runtime_checkable

from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bochner.system.saving import ModelFileError
from bochner.system.taking import taken
from bochner.system.terminal import PlainConsole, harmless


@dataclasses.dataclass(frozen=True)
class Record:
    """The training at one moment; the bound and its parts are means over the steps since the last record.

    Attributes:
        step: steps done.
        seconds: time since the start, compilation included.
        fraction: share of the budget used.
        stage: what is being learned, in words.
        learning_rate: the learning rate at this step.
        elbo: the bound, a total over the data.
        ell: expected log-likelihood, a total over the data.
        kl: divergence of the posterior from the prior.
        held_out_mnll: mean negative log-likelihood of held-out rows, where it was computed.
    """

    step: int
    seconds: float
    fraction: float
    stage: str
    learning_rate: float
    elbo: float
    ell: float
    kl: float
    held_out_mnll: float | None = None


def checked_record(record: Any) -> dict[str, Any]:
    """Check the fields of a record that comes from a file, or raise a `ModelFileError`."""
    fields = {field.name: field for field in dataclasses.fields(Record)}
    if not isinstance(record, dict) or not record.keys() <= fields.keys():
        raise ModelFileError(f"its history holds no record: {reprlib.repr(record)}.")
    for name, field in fields.items():
        if name in record or field.default is dataclasses.MISSING:
            taken(record, name, field.type)
    taken(record, "step", int, lambda step: 0 <= step < 2**63, "a count")
    return record


@runtime_checkable
class AbstractCallback(Protocol):
    """Something told of the training's progress; implement these two methods to listen.

    Example:
        >>> class Printer:
        ...     def on_record(self, record):
        ...         print(record.step)
        ...     def on_end(self):
        ...         print("done")
        >>> from bochner.training import AbstractCallback
        >>> listener: AbstractCallback = Printer()
    """

    def on_record(self, record: Record) -> None:
        """Take notice of a new record."""
        ...

    def on_end(self) -> None:
        """Take notice that training has ended, well or not."""
        ...


class ProgressBar:
    """A progress bar on the terminal; where there is none, a plain line every few seconds.

    Example:
        >>> from bochner.training import ProgressBar
        >>> ProgressBar("training").on_end()
    """

    def __init__(self, description: str, n_rows: float = 1.0, seconds_between_lines: float = 5.0):
        self._description = harmless(description)
        self._n_rows = n_rows
        self._seconds_between_lines = seconds_between_lines
        self._last_line = time.monotonic()
        self._console = PlainConsole(file=sys.stderr)
        self._progress: Progress | None = None

    def on_record(self, record: Record) -> None:
        """Move the bar, or print a line when it is time for one."""
        text = f"step {record.step:,}  bound/row {record.elbo / self._n_rows:.3f}"
        if record.held_out_mnll is not None:
            text += f"  held-out MNLL {record.held_out_mnll:.3f}"
        self.show(record.fraction, text)

    def show(self, fraction: float, text: str) -> None:
        """Move the bar to a share of the work, or print a line when it is time for one."""
        if self._console.is_terminal:
            self._bar().update(TaskID(0), completed=fraction, status=text)
        elif time.monotonic() - self._last_line > self._seconds_between_lines:
            self._last_line = time.monotonic()
            self._console.print(f"{self._description} {fraction:4.0%}  {text}", soft_wrap=True)

    def on_end(self) -> None:
        """Take the bar off the terminal."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _bar(self) -> Progress:
        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.percentage:3.0f}%"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[status]}", markup=False),
                console=self._console,
                transient=True,
            )
            self._progress.add_task(self._description, total=1.0, status="")
            self._progress.start()
        return self._progress
