"""How the estimators take rows: arrays, frames and tables, with values of any type and missing ones."""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bochner.fitting.inputs import check_columns, check_not_empty, check_X
from bochner.fitting.raw_rows import array_table, as_table
from bochner.fitting.rows import Rows
from bochner.fitting.sources import Encoded, Reader, encoded_matrix, is_source, rows_with_targets
from bochner.members.fit import Form
from bochner.members.fitted import Fitted
from bochner.members.gaps import over_gaps
from bochner.tables.encoding import Encoder
from bochner.tables.source import open_table


class RowsInMixin:
    """Rows as users have them, given as a matrix of numbers."""

    fitted_: Fitted

    def _learned_inputs(self, X: Any) -> tuple[np.ndarray, Form]:
        """Give the rows of a fit as a finite matrix, with the encoder learned where they are no such matrix."""
        X = check_not_empty(X)
        table = as_table(X)
        if table is None:
            X = check_X(self, X, reset=True)
            names = getattr(self, "feature_names_in_", None)
            return X, Form(names=None if names is None else tuple(map(str, names)))
        check_columns(self, X, reset=True)
        source = open_table(table)
        rows = pa.Table.from_batches(list(source.batches()), source.schema)
        encoder = Encoder.learn(rows, source.reading)
        names = tuple(table.column_names) if hasattr(X, "columns") else None
        return encoder(rows), Form(encoder=encoder, names=names)

    def _matrix(self, X: Any, reader: Reader, *, gaps: bool) -> np.ndarray:
        """Give rows as a matrix of numbers; with `gaps`, what the fit saw no gaps in is NaN where it is missing."""
        if isinstance(X, Encoded):
            return _of_width(np.asarray(X), reader)
        if is_source(X, encoded=reader.encoder is not None):
            return np.asarray(encoded_matrix(reader, X, gaps=gaps))
        if reader.encoder is None:
            return check_X(self, X, reset=False)
        X = check_not_empty(X)
        array = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        if _is_encoded(array, reader):
            return array.astype(np.float64)
        check_columns(self, array, reset=False)
        table = array_table(array, reader.column_names)
        return np.asarray(encoded_matrix(reader, table, gaps=gaps))

    def _predictor_of(self, X: np.ndarray) -> Any:
        """Give what predicts a matrix of `_checked_inputs`."""
        return over_gaps(self.fitted_.predictor, X, self.fitted_.background)

    def _checked_inputs(self, X: Any) -> np.ndarray:
        """Give X as a matrix of numbers, NaN where something is missing that the fit always knew."""
        check_is_fitted(self)
        X = self._matrix(X, self.fitted_.reader, gaps=True)
        self._warn_of_gaps(X)
        self._warn_of_clipping(X)
        return X

    def _warn_of_gaps(self, X: np.ndarray) -> None:
        missing = np.isnan(X)
        n_rows = int(np.sum(missing.any(axis=1)))
        if n_rows == 0:
            return
        named = ", ".join(self.fitted_.columns_of(np.flatnonzero(missing.any(axis=0)))[:5])
        warnings.warn(
            f"{n_rows} of {len(X)} rows, the first being row {int(np.argmax(missing.any(axis=1))) + 1}, lack values "
            f"that no row of the fit lacked ({named}): these are averaged over training rows, so such predictions are "
            "wide.",
            UserWarning,
            stacklevel=4,
        )

    def _warn_unless_finite(self, *predicted: np.ndarray) -> None:
        wrong = np.zeros(len(predicted[0]), bool)
        for values in predicted:
            wrong |= ~np.isfinite(values.reshape(len(values), -1).sum(axis=1))
        if np.any(wrong):
            warnings.warn(
                f"predictions of {int(wrong.sum()):,} of {len(wrong):,} rows are not finite, the first in row "
                f"{int(wrong.argmax())}: do not use them. Check these rows, and that the model file is the one "
                "that was saved.",
                UserWarning,
                stacklevel=4,
            )

    def _warn_of_clipping(self, X: np.ndarray) -> None:
        n_clipped = max(
            (fit.input_scaling.n_clipped(X) for fit in self.fitted_.predictor.deep), default=0
        )
        if n_clipped:
            warnings.warn(
                f"{n_clipped} of {len(X)} rows hold values far outside those of the training data; they were clipped. "
                "Do not rely on their predictions.",
                UserWarning,
                stacklevel=4,
            )

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that values may be missing, and of any type."""
        tags = super().__sklearn_tags__()  # pyright: ignore[reportAttributeAccessIssue]
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def checked_rows(self, X: Any, y: Any) -> Rows:
        """Check rows with their targets, as fitted."""
        check_is_fitted(self)
        X, y = self._read_if_named(X, y)
        X = self._checked_inputs(X)
        return Rows(X, self.fitted_.task.targets(y, X), np.ones(len(X)))

    def _read_if_named(self, X: Any, y: Any, *, gaps: bool = True) -> tuple[Any, Any]:
        """Read a table of named columns, with the targets where y names their column; arrays stay as they are."""
        if isinstance(y, str):
            check_is_fitted(self)
            return rows_with_targets(self.fitted_.reader, X, y, gaps=gaps)
        if hasattr(self, "fitted_") and is_source(X, encoded=self.fitted_.encoder is not None):
            return encoded_matrix(self.fitted_.reader, X, gaps=gaps), y
        return X, y


def _is_encoded(X: np.ndarray, reader: Reader) -> bool:
    """Whether numbers can only be the encoded matrix, by how many columns there are."""
    encoded = X.ndim == 2 and X.dtype.kind in "biuf" and X.shape[1] == reader.d_in
    return encoded and reader.d_in != len(reader.column_names)


def _of_width(X: np.ndarray, reader: Reader) -> np.ndarray:
    if X.shape[1] != reader.d_in:
        raise ValueError(
            f"X has {X.shape[1]} encoded features, but the model is expecting {reader.d_in}."
        )
    return X
