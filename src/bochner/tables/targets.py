"""Target columns: which task they pose, and their values."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from bochner.tables.casting import Kind, TableError, compute, convert, find_kind


def find_task(column: pa.ChunkedArray | pa.Array) -> tuple[str, str]:
    """Tell "classification" or "regression" for a target column, and why, in words.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.targets import find_task
        >>> find_task(pa.array(["yes", "no"]))
        ('classification', 'it holds text or categories')
        >>> find_task(pa.array([1.5, 2.5, 0.0]))
        ('regression', 'it holds numbers with more than two values')
    """
    kind = find_kind(column.type)
    if kind is Kind.TEXT:
        return "classification", "it holds text or categories"
    if kind is Kind.BOOLEAN:
        return "classification", "it holds true and false"
    if kind is Kind.NUMBER:
        n_values = len(_numbers(column, "the target").drop_null().unique())
        if n_values == 2:
            return "classification", "it holds two different numbers only"
        return "regression", f"it holds numbers with {_more_than_two(n_values)}"
    raise TableError(
        f"the target must be numbers, text, categories or booleans; got {column.type}."
    )


def target_values(
    batch: pa.RecordBatch | pa.Table,
    name: str,
    *,
    classification: bool | None = None,
    row: int = 0,
) -> np.ndarray:
    """Give the targets of a batch: finite float64 for regression, labels for classification.

    Labels are Python's texts, or booleans, integers or numbers as they are in the table. Where `classification` is not
    said, numbers are numbers and anything else is labels. `row` is the number of rows before the batch, for messages.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.targets import target_values
        >>> target_values(pa.table({"y": [1, 2]}), "y").tolist()
        [1.0, 2.0]
        >>> target_values(pa.table({"y": [1, 2]}), "y", classification=True).tolist()
        [1, 2]
        >>> target_values(pa.table({"y": ["a", "b"]}), "y").tolist()
        ['a', 'b']
    """
    if name not in batch.schema.names:
        raise TableError(
            f"there is no target column {name!r}. The columns are {', '.join(map(repr, batch.schema.names))}."
        )
    column = batch.column(name)
    kind = find_kind(column.type)
    if kind is Kind.NOTHING:
        _check_none_missing(column, name, row)
    if classification is None:
        classification = kind is not Kind.NUMBER
    return _labels(column, name, row) if classification else _targets(column, name, row)


def are_whole(column: pa.ChunkedArray | pa.Array) -> bool:
    """Tell whether numbers of a target have no decimals.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.targets import are_whole
        >>> are_whole(pa.array([1.0, 2.0])), are_whole(pa.array([1.5]))
        (True, False)
    """
    numbers = _numbers(column, "the target").drop_null()
    return bool(compute.all(compute.equal(compute.floor(numbers), numbers)).as_py())


def known_targets(
    batch: pa.RecordBatch | pa.Table, name: str, *, classification: bool, row: int = 0
) -> np.ndarray:
    """Tell which rows of a batch have a target, after a check that none is infinite.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.targets import known_targets
        >>> known_targets(pa.table({"y": [1.5, None]}), "y", classification=False).tolist()
        [True, False]
    """
    column = batch.column(name)
    if not classification:
        column = _numbers(column, f"target {name!r}", row)
    if is_.is_floating(column.type):
        infinite = compute.is_inf(column).fill_null(False)
        if compute.any(infinite).as_py():
            first = compute.index(infinite, True).as_py()
            raise TableError(
                f"target {name!r} is infinite in row {row + first + 1}. Correct it, or leave the row out of the table."
            )
    known = compute.invert(compute.is_null(column, nan_is_null=True))
    return np.asarray(
        known.to_numpy(zero_copy_only=False) if isinstance(known, pa.Array) else known.to_numpy()
    )


def number_column(column: Any, name: str, row: int = 0) -> np.ndarray:
    """Give a column as float64, NaN where values are missing.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.targets import number_column
        >>> number_column(pa.array([1, None]), "a").tolist()
        [1.0, nan]
    """
    numbers = _numbers(column, f"column {name!r}", row).fill_null(float("nan"))
    return np.asarray(numbers.to_numpy(), np.float64)


def _targets(column: Any, name: str, row: int) -> np.ndarray:
    numbers = _numbers(column, f"target {name!r}", row)
    _check_none_missing(numbers, name, row)
    values = np.asarray(numbers.to_numpy(), np.float64)
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise TableError(
            f"target {name!r} has {int(wrong.sum())} values that are not finite, the first in row "
            f"{row + int(np.argmax(wrong)) + 1}. Correct these rows, or leave them out of the table."
        )
    return values


def _labels(column: Any, name: str, row: int) -> np.ndarray:
    kind = find_kind(column.type)
    if kind is Kind.NUMBER and not is_.is_integer(column.type):
        return _targets(column, name, row)
    if kind is Kind.TEXT:
        texts = convert(column, pa.string(), place=f"target {name!r}", first_row=row)
        _check_none_missing(texts, name, row)
        return np.array([*texts.to_pylist(), None], dtype=object)[:-1]
    if kind not in (Kind.NUMBER, Kind.BOOLEAN):
        raise TableError(
            f"target {name!r} must be text, categories, booleans or numbers; got {column.type}."
        )
    _check_none_missing(column, name, row)
    chunked = isinstance(column, pa.ChunkedArray)
    return column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False)


def _numbers(column: Any, place: str, row: int = 0) -> Any:
    return convert(column, pa.float64(), place=place, first_row=row)


def _more_than_two(n_values: int) -> str:
    return "more than two values" if n_values > 2 else "fewer than two values"


def _check_none_missing(column: Any, name: str, row: int) -> None:
    if column.null_count:
        first = compute.index(column.is_null(), True).as_py()
        raise TableError(
            f"target {name!r} is missing in {column.null_count} rows, the first being row {row + first + 1}. Leave "
            "these rows out of the table."
        )
