"""A listener that writes the training's course for TensorBoard; `tensorboardX` is the extra `tensorboard`."""

from pathlib import Path
from typing import Any

from bochner.training.progress import Record


class TensorBoardLogger:
    """Write each record's numbers as scalars to an event file in a folder, which `tensorboard --logdir` shows.

    The bound, the expected log-likelihood and the divergence are divided by `n_rows`, so that with the number of
    training rows they are means over rows; by default they are totals over the data.

    Args:
        folder: where the event files go; each training adds one.
        n_rows: what totals over the data are divided by.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from bochner.training.progress import Record
        >>> from bochner.training.tensorboard import TensorBoardLogger
        >>> folder = tempfile.mkdtemp()
        >>> logger = TensorBoardLogger(folder, n_rows=100)
        >>> logger.on_record(Record(10, 0.5, 0.1, "q(W)", 0.01, elbo=-120.0, ell=-100.0, kl=20.0))
        >>> logger.on_end()
        >>> len(list(Path(folder).glob("events.out.tfevents.*")))
        1
    """

    def __init__(self, folder: str | Path, n_rows: float = 1.0):
        self._folder = Path(folder)
        self._n_rows = n_rows
        self._open = _summary_writer()
        self._writer: Any = None

    def on_record(self, record: Record) -> None:
        """Write the numbers of a record at its step."""
        if self._writer is None:
            self._writer = self._open(str(self._folder))
        for name, value in self._scalars(record).items():
            self._writer.add_scalar(name, value, record.step)

    def on_end(self) -> None:
        """Close the event file; a training after this one starts another."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _scalars(self, record: Record) -> dict[str, float]:
        scalars = {
            "training/bound": record.elbo / self._n_rows,
            "training/expected_log_likelihood": record.ell / self._n_rows,
            "training/kl": record.kl / self._n_rows,
            "training/learning_rate": record.learning_rate,
        }
        if record.held_out_mnll is not None:
            scalars["held_out/mnll"] = record.held_out_mnll
        return scalars


def _summary_writer() -> Any:
    # Before any training, so that a missing package costs no time.
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ImportError(
            "`TensorBoardLogger` needs tensorboardX: install it with `pip install tensorboardX`."
        ) from error
    return SummaryWriter
