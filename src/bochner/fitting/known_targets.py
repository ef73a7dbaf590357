"""Which rows of a table have a target, a batch at a time."""

import warnings

import numpy as np
import pyarrow as pa

from bochner.tables.targets import known_targets


class KnownTargets:
    """The rows of a table that have a target, a batch at a time."""

    def __init__(self, target: str, classification: bool):
        self._target, self._classification = target, classification
        self.n_rows = self._n_unknown = self._first = 0

    def rows(self, batch: pa.RecordBatch) -> np.ndarray:
        """Tell which rows of the next batch have a target."""
        known = known_targets(
            batch, self._target, classification=self._classification, row=self.n_rows
        )
        if not self._n_unknown and not known.all():
            self._first = self.n_rows + int(np.argmin(known)) + 1
        self._n_unknown += int(np.sum(~known))
        self.n_rows += len(known)
        return known

    def warn(self) -> None:
        """Say how many rows are left out."""
        if self._n_unknown:
            warnings.warn(
                f"target {self._target!r} is missing in {self._n_unknown} of {self.n_rows} rows, the first being row "
                f"{self._first}; they are left out.",
                UserWarning,
                stacklevel=3,
            )
