"""Rows as users hand them in beside targets: a matrix of numbers, or columns of any type."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bochner.tables.casting import Kind, compute, find_kind
from bochner.tables.memory_reader import frame_to_arrow


def as_table(X: Any, names: Sequence[str] | None = None) -> pa.Table | None:
    """Give rows as a table of columns where they are more than numbers that are all known; None where they are not.

    Args:
        X: a frame, or an array of rows by columns.
        names: of the columns of an array; x0, x1, ... by default.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.raw_rows import as_table
        >>> as_table(np.array([[1.0, 2.0]])) is None
        True
        >>> as_table(np.array([[1.0, np.nan]])).to_pydict()
        {'x0': [1.0], 'x1': [None]}
        >>> as_table(np.array([[1, "red"], [None, "blue"]], dtype=object)).to_pydict()
        {'x0': [1.0, None], 'x1': ['red', 'blue']}
    """
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        table = frame_to_arrow(X)
        return None if all(_is_plain(column) for column in table.columns) else table
    values = np.ma.asanyarray(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    if values.dtype.kind in "US":  # where one column is text, NumPy makes the others so
        values = values.astype(object)
        for column in values.T if values.ndim == 2 else ():
            with contextlib.suppress(ValueError):
                column[:] = column.astype(np.float64)
    if values.ndim != 2 or values.dtype.kind not in "biufOmM":
        return None
    if values.dtype.kind in "biuf" and not np.isnan(_numbers(values)).any():
        return None
    if values.dtype.kind == "O" and _all_numbers(values) and not np.isnan(_numbers(values)).any():
        return None
    return array_table(values, names)


def array_table(values: Any, names: Sequence[str] | None = None) -> pa.Table:
    """Give a matrix as an Arrow table, masked entries and NaN as missing."""
    names = [f"x{j}" for j in range(values.shape[1])] if names is None else names
    columns = [_column(values[:, j]) for j in range(values.shape[1])]
    return pa.Table.from_arrays(columns, names=list(names))


def _column(values: np.ndarray) -> pa.Array:
    mask = np.ma.getmaskarray(values)
    values = np.ma.getdata(values)
    if values.dtype.kind in "biufmM":
        if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] not in (
            "D",
            "s",
            "ms",
            "us",
            "ns",
        ):
            values = values.astype(f"{values.dtype.kind}8[s]")
        if values.dtype.kind == "f":
            values = values.astype(np.float64)
            mask = mask | np.isnan(values)
        return pa.array(values, mask=mask)
    cells = [
        None if hidden or _is_missing(v) else v
        for v, hidden in zip(values.tolist(), mask, strict=True)
    ]
    if all(isinstance(cell, int | float | np.number) or cell is None for cell in cells):
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _is_plain(column: pa.ChunkedArray) -> bool:
    return (
        find_kind(column.type) is Kind.NUMBER
        and not compute.any(compute.is_null(column, nan_is_null=True)).as_py()
    )


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _all_numbers(values: np.ndarray) -> bool:
    return all(
        isinstance(v, int | float | np.number) or _is_missing(v) for v in values.ravel().tolist()
    )


def _numbers(values: Any) -> np.ndarray:
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    if values.dtype == object:
        values = np.array([np.nan if _is_missing(v) else v for v in values.ravel()], np.float64)
    return np.asarray(values, np.float64)
