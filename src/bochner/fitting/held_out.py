"""Which rows a training is judged by, and what its messages call columns and target."""

import dataclasses

import numpy as np

from bochner.fitting.config import Config
from bochner.fitting.rows import Rows
from bochner.fitting.splits import AbstractSplit

_MIN_ROWS_TO_VALIDATE = 200


@dataclasses.dataclass(frozen=True)
class Named:
    """What the columns of a matrix are called in messages, and the target, and which of them are no quantities.

    Attributes:
        columns: names of the columns.
        target: name of the target.
        coded: columns that number the values of a category of many.
    """

    columns: tuple[str, ...] = ()
    target: str | None = None
    coded: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class HeldOutRows:
    """Rows to judge a training by: given ones, or those of the training rows with certain numbers.

    Attributes:
        rows: given ones; None leaves the choice to the settings.
        numbers: of rows to hold out.
        split: which rows are held out together.
    """

    rows: Rows | None = None
    numbers: np.ndarray | None = None
    split: AbstractSplit | None = None

    def parts(self, config: Config, rows: Rows) -> tuple[Rows, Rows | None]:
        """Choose the rows to train on and those held out; none are below 200 rows."""
        if self.rows is not None:
            return rows, self.rows
        numbers = self.numbers
        if numbers is None:
            n_held_out = round(config.validation_fraction * len(rows))
            if len(rows) < _MIN_ROWS_TO_VALIDATE or n_held_out == 0:
                return rows, None
            numbers = self._chosen(n_held_out, len(rows), config.seed)
        kept = rows[np.setdiff1d(np.arange(len(rows)), numbers)]
        held_out = rows[np.sort(numbers)]
        if kept.weights.sum() == 0 or held_out.weights.sum() == 0:
            return rows, None
        return kept, held_out

    def _chosen(self, n_held_out: int, n_rows: int, seed: int) -> np.ndarray:
        if self.split is None:
            return np.random.default_rng(seed).permutation(n_rows)[:n_held_out]
        return self.split.held_out(n_held_out, seed)
