"""Checks of what users hand in, before any work: each error names the place and the remedy."""

import itertools
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    column_or_1d,
    validate_data,
)

from bochner.rows.scaling import rounding_alone

_MOST_NAMED = 5
_FEW_CLASSES, _ROWS_OF_A_CLASS, _MOST_CLASSES = 20, 4, 1000
_LARGEST, _SMALLEST = 1e100, 1e-100
_LARGEST_WEIGHT, _SMALLEST_WEIGHT = 1e12, 1e-12


def check_X(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    """Give X as a float64 matrix, with feature names noted at fit and compared later; then values may be missing."""
    X = check_not_empty(X)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        matrix = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )  # fmt: skip
    except ValueError as error:
        place = _first_text(X) if "could not convert" in str(error) else None
        if place is None:
            raise
        name, row, value = place
        raise ValueError(
            f"X must hold numbers, but {name} holds text ({value!r} in row {row}). The model was fitted to numbers."
        ) from error
    matrix = np.asarray(matrix)
    names = _column_names(estimator, matrix.shape[1])
    _check_finite(matrix, names, missing_allowed=not reset)
    check_units(matrix, names)
    return matrix


def check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Note names and number of columns of any type at fit, and compare an array's with them later."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if reset and len(X) < 2:
        raise ValueError("Found array with 1 sample(s) while a minimum of 2 is required.")


def check_not_empty(X: Any) -> Any:
    """Give X, lists as arrays, or raise `ValueError` where it has no rows."""
    if not hasattr(X, "dtype") and not hasattr(X, "columns") and hasattr(X, "__len__"):
        array = np.asarray(X) if len(X) else X
        X = np.asarray(X, dtype=object) if len(X) and array.dtype.kind in "US" else array
    shape = getattr(X, "shape", None)
    if shape is None and hasattr(X, "__len__"):
        shape = (len(X),)
    if shape and shape[0] == 0:
        raise ValueError(
            f"X is empty: it has no rows (shape {tuple(shape)}). Check how the data was read or filtered."
        )
    return X


def check_units(matrix: np.ndarray, names: Sequence[str], *, all_rows: bool = False) -> None:
    """Refuse numbers whose squares a float64 cannot hold, or of which none is large enough for that.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.inputs import check_units
        >>> check_units(np.array([[1.0], [1e200]]), ["mass"])
        Traceback (most recent call last):
        ValueError: mass holds 1e+200; numbers must lie within 1e+100. Give it in a larger unit.

    Args:
        matrix: finite numbers.
        names: of the columns.
        all_rows: whether what is tiny in all of these rows is refused, too.
    """
    largest = np.fmax.reduce(np.abs(matrix), axis=0, initial=0.0)
    if np.any(largest > _LARGEST):
        i = int(np.argmax(largest > _LARGEST))
        raise ValueError(
            f"{names[i]} holds {largest[i]:.6g}; numbers must lie within {_LARGEST:g}. Give it in a larger unit."
        )
    tiny = (largest > 0) & (largest < _SMALLEST)
    if all_rows and np.any(tiny):
        i = int(np.argmax(tiny))
        raise ValueError(
            f"{names[i]} holds nothing above {largest[i]:.6g}; some number must reach {_SMALLEST:g}. Give it in a "
            "smaller unit."
        )


def check_targets(y: Any, X: np.ndarray) -> np.ndarray:
    """Give regression targets as a finite float64 matrix, one column a target."""
    _check_given(y)
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(np.float64), np.nan)
    if np.asarray(y).dtype.kind in "mM":
        raise ValueError(
            "y must hold numbers, but holds times. Give them as numbers, such as days since a first one."
        )
    try:
        Y = check_array(
            y,
            dtype=np.float64,  # pyright: ignore[reportArgumentType]
            ensure_2d=False,
            allow_nd=False,
            ensure_all_finite=False,
            ensure_min_samples=0,
            input_name="y",
        )
    except ValueError as error:
        place = _first_text(_as_columns(y)) if "could not convert" in str(error) else None
        if place is None:
            raise
        _, row, value = place
        raise ValueError(
            f"y must hold numbers, but holds text ({value!r} in row {row}). Use DeepGPClassifier for classes."
        ) from error
    _check_lengths(X, Y)
    Y = Y.reshape(len(Y), -1)
    _check_finite(Y, target_names(Y.shape[1]), what="y")
    check_units(Y, target_names(Y.shape[1]))
    return Y


def check_labels(y: Any, X: np.ndarray) -> np.ndarray:
    """Give class labels as one column."""
    _check_given(y)
    if isinstance(y, np.ma.MaskedArray):
        labels = np.ma.getdata(y).astype(object)
        labels[np.ma.getmaskarray(y)] = None  # which `filled` would write as a question mark
        y = labels
    y = column_or_1d(y, warn=True)
    _check_lengths(X, y)
    if y.dtype == object:
        _check_none_missing(y)
        y = plain_labels(y)
    if np.issubdtype(y.dtype, np.floating):
        _check_finite(y[:, None].astype(np.float64), ["y"], what="y")
    return y


def check_number_of_classes(classes: Collection[Any], n_rows: int, place: str) -> None:
    """Refuse classes of which most would have next to no rows, as where numbers are written in a way that is not read.

    Example:
        >>> from bochner.fitting.inputs import check_number_of_classes
        >>> check_number_of_classes(["a", "b"], 10, "y")
    """
    n_classes = len(classes)
    if n_classes <= _MOST_CLASSES and (
        n_classes <= _FEW_CLASSES or n_classes * _ROWS_OF_A_CLASS <= n_rows
    ):
        return
    first = ", ".join(repr(label)[:60] for label in itertools.islice(classes, 3))
    raise ValueError(
        f"{place} has {n_classes} different values in {n_rows} rows, such as {first}: too many for classes, of which "
        f"there may be {_FEW_CLASSES}, or one for each {_ROWS_OF_A_CLASS} rows up to {_MOST_CLASSES}. Numbers need a "
        "regression; where they are not read as such, say how they are written: `--decimal`, `--thousands`, `--na`, in "
        "Python `open_table(path, decimal=...)`. Otherwise join rare classes into one."
    )


def plain_labels(y: Any) -> np.ndarray:
    """Give labels that came as Python's objects in the type that all of them have.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.inputs import plain_labels
        >>> plain_labels(np.array([1, 0], dtype=object)).dtype.kind
        'i'
        >>> plain_labels(np.array(["no", 0], dtype=object))
        Traceback (most recent call last):
        ValueError: y must hold labels of one type, text or numbers; got str and int. Give all of them as text.
    """
    y = np.asarray(y)
    if y.dtype != object or all(isinstance(label, str) for label in y.flat):
        return y
    if all(isinstance(label, bool | int | float | np.bool_ | np.number) for label in y.flat):
        return np.array(y.tolist())
    found = list(dict.fromkeys(type(label).__name__ for label in y.flat))
    raise ValueError(
        f"y must hold labels of one type, text or numbers; got {' and '.join(found[:3])}. Give all of them as text."
    )


def check_weights(sample_weight: Any, X: np.ndarray) -> np.ndarray:
    """Give row weights as a float64 vector, ones by default; none negative, not all zero."""
    if sample_weight is not None and not np.any(np.asarray(sample_weight)):
        raise ValueError("`sample_weight` must not be zero for all rows.")
    try:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(f"`sample_weight` must hold numbers ({error}).") from error
    if np.any(weights < 0):
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"`sample_weight` must not be negative; got {weights[row]:g} in row {row}."
        )
    check_size_of_weights(weights)
    return weights


def check_size_of_weights(weights: np.ndarray) -> None:
    """Refuse weights with which sums of float32 would overflow, or vanish.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.inputs import check_size_of_weights
        >>> check_size_of_weights(np.array([1.0, 1e300]))
        Traceback (most recent call last):
        ValueError: the largest weight of a row must lie between 1e-12 and 1e+12; got 1e+300. Divide all by one number.
    """
    largest = np.max(weights, initial=0.0)
    if not _SMALLEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise ValueError(
            f"the largest weight of a row must lie between {_SMALLEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}; got "
            f"{largest:g}. Divide all by one number."
        )


def check_no_weights(sample_weight: Any) -> None:
    """Raise `ValueError` for weights beside a table of named columns, whose rows are read in passes."""
    if sample_weight is not None:
        raise ValueError(
            "`sample_weight` goes with arrays X and y, not with a table and the name of its target."
        )


def warn_of_rounding(matrix: np.ndarray, names: Sequence[str]) -> None:
    """Warn of columns or targets that vary, and yet are treated as constant."""
    found = [name for name, alone in zip(names, rounding_alone(matrix), strict=True) if alone]
    if found:
        listed = ", ".join(map(repr, found[:_MOST_NAMED])) + (", …" if found[_MOST_NAMED:] else "")
        warnings.warn(
            f"{listed} treated as constant: the values differ only in the last of the 16 digits that a float64 has. If "
            "the differences matter, subtract an offset where the values are made, before they are rounded.",
            UserWarning,
            stacklevel=5,
        )


def target_names(n_targets: int) -> list[str]:
    """Names of the columns of y in messages."""
    return ["y"] if n_targets == 1 else [f"target {i} of y" for i in range(n_targets)]


def _check_given(y: Any) -> None:
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None.")


def _check_lengths(X: np.ndarray, y: np.ndarray) -> None:
    if len(X) != len(y):
        raise ValueError(
            f"X and y must have the same number of rows; got {len(X)} in X and {len(y)} in y. Check that both come "
            "from the same table."
        )


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # only NaN differs from itself
    except TypeError:  # NA of pandas is neither equal to itself nor different
        return True


def _check_none_missing(labels: np.ndarray) -> None:
    missing = [_is_missing(label) for label in labels]
    if any(missing):
        row = missing.index(True)
        raise ValueError(
            f"y contains a missing label ({labels[row]!r}, the first in row {row}). Drop these rows, or give them a "
            "class of their own."
        )


def _as_columns(y: Any) -> np.ndarray:
    values = np.asarray(y, dtype=object)
    return values[:, None] if values.ndim == 1 else values


def _column_names(estimator: Any, n_columns: int) -> list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"column {i}" for i in range(n_columns)]
    return [f"column {name!r}" for name in names]


def _check_finite(
    matrix: np.ndarray, names: list[str], what: str = "X", missing_allowed: bool = False
) -> None:
    if np.isfinite(matrix.sum()):  # one pass, no temporary array, in the usual case
        return
    wrong = np.isinf(matrix) if missing_allowed else ~np.isfinite(matrix)
    if not wrong.any():
        return
    row, column = np.argwhere(wrong)[0]
    kind = "NaN" if np.isnan(matrix[row, column]) else "infinity"
    raise ValueError(
        f"Input {what} contains {kind}: {names[column]} has {int(wrong[:, column].sum())}, the first in row {row}. "
        "Drop these rows, or correct them."
    )


def _first_text(X: Any) -> tuple[str, int, str] | None:
    """Find the first value that is text and no number: its column, row, and itself."""
    columns = getattr(X, "columns", None)
    values = np.asarray(X, dtype=object)
    if values.ndim != 2:
        return None
    for j in range(values.shape[1]):
        for i, value in enumerate(values[:, j]):
            if isinstance(value, str) and not _is_number(value):
                return (f"column {j}" if columns is None else f"column {columns[j]!r}"), i, value
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
