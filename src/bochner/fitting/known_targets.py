"""Which rows of a table have a target, and whether the last is one of totals, a batch at a time."""

import warnings

import numpy as np
import pyarrow as pa

from bochner.tables.casting import TableError
from bochner.tables.targets import known_targets, number_column

_FEWEST_ADDED = 5
_ROUNDING = 1e-6


class KnownTargets:
    """The rows of a table that have a target, a batch at a time."""

    def __init__(self, target: str, classification: bool):
        self._target, self._classification = target, classification
        self.n_rows = self._n_unknown = self._first = 0
        self._n_added = self._last_row = 0
        self._sum = self._sum_of_sizes = self._last = 0.0

    def rows(self, batch: pa.RecordBatch) -> np.ndarray:
        """Tell which rows of the next batch have a target."""
        known = known_targets(
            batch, self._target, classification=self._classification, row=self.n_rows
        )
        if not self._n_unknown and not known.all():
            self._first = self.n_rows + int(np.argmin(known)) + 1
        self._n_unknown += int(np.sum(~known))
        if not self._classification and known.any():
            values = number_column(batch.column(self._target), self._target)[known]
            self._n_added += int(np.count_nonzero(values))
            self._sum += values.sum()
            self._sum_of_sizes += np.abs(values).sum()
            self._last, self._last_row = (
                values[-1],
                self.n_rows + int(np.flatnonzero(known)[-1]) + 1,
            )
        self.n_rows += len(known)
        return known

    def check(self) -> None:
        """Refuse rows none of which has a target."""
        if self.n_rows and self._n_unknown == self.n_rows:
            raise TableError(
                f"no row has a value of the target {self._target!r}. Check how the table was written or filtered."
            )

    def warn(self) -> None:
        """Say how many rows are left out, and whether the last one is a sum of the others."""
        if self._n_unknown:
            warnings.warn(
                f"target {self._target!r} is missing in {self._n_unknown} of {self.n_rows} rows, the first being row "
                f"{self._first}; they are left out.",
                UserWarning,
                stacklevel=3,
            )
        if self._last_is_a_sum():
            warnings.warn(
                f"target {self._target!r}: the value in row {self._last_row}, the last one, is the sum of all others. "
                "If it is a row of totals, as spreadsheets have, remove it: it is taken for a row like the others.",
                UserWarning,
                stacklevel=3,
            )

    def _last_is_a_sum(self) -> bool:
        # Of numbers with one sign, for which it is no chance.
        sizes = (abs(self._sum), 2 * abs(self._last))
        return self._n_added > _FEWEST_ADDED and bool(
            np.allclose(sizes, self._sum_of_sizes, rtol=_ROUNDING, atol=0)
        )
