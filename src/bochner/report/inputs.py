"""What the report shows of the inputs: what each column holds, and how much of the prediction it decides."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from bochner.explaining import TableColumn, table_columns

Summaries = list[dict[str, Any]]


def inputs_of(model: Any, X: np.ndarray, names: Sequence[str] | None) -> Summaries:
    """Summarize the columns of the table, in their order, by the rows of a matrix.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.report.inputs import inputs_of
        >>> X = np.array([[0.0, 1], [1, 1], [2, 1], [4, 1]])
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit(X, [0, 1, 2, 4])
        >>> [(found["name"], found["share"], found["max"]) for found in inputs_of(model, X, ["a", "b"])]
        [('a', 1.0, 4.0), ('b', 0.0, 1.0)]
    """
    columns = table_columns(model.fitted_)
    if names is None:
        names = [column.name for column in columns]
    if len(names) != len(columns):
        raise ValueError(
            f"`columns` must name the {len(columns)} columns of X; got {len(names)} names."
        )
    # Models of former versions have kept no rows.
    shares = model.explain(X if len(model.fitted_.background) < 2 else None).columns
    return [
        {"name": str(name), "share": shares[column.name], **_summary(column, column.values(X))}
        for name, column in zip(names, columns, strict=True)
    ]


def values_of_rows(model: Any, X: np.ndarray) -> list[list[Any]]:
    """Give the values of rows, as texts, numbers and truth values; None where they are missing."""
    columns = [map(_plain, column.values(X)) for column in table_columns(model.fitted_)]
    return [list(row) for row in zip(*columns, strict=True)]


def _summary(column: TableColumn, values: np.ndarray) -> dict[str, Any]:
    """Describe values; the most frequent one stands in the place of the median where they have no order."""
    missing = [
        value is None or value != value for value in values
    ]  # only NaN and NaT differ from themselves
    present = values[~np.array(missing, bool)]
    found: dict[str, Any] = dict.fromkeys(("min", "median", "mean", "max", "std"))
    found["missing"] = float(np.mean(missing))
    if not len(present):
        return found
    if column.is_category:
        return found | {"median": _plain(Counter(present.tolist()).most_common(1)[0][0])}
    ordered = np.sort(present)
    ends = {"min": _plain(ordered[0]), "max": _plain(ordered[-1])}
    if present.dtype.kind == "M":
        return found | ends | {"median": _plain(ordered[len(ordered) // 2])}
    moments = {"median": np.median(present), "mean": np.mean(present), "std": np.std(present)}
    return found | ends | {name: float(value) for name, value in moments.items()}


def _plain(value: Any) -> Any:
    """Give a value as JSON knows it; a moment is its date, and its time where it has one."""
    if isinstance(value, np.datetime64):
        text = str(value.astype("datetime64[s]")).replace("T00:00:00", "").replace("T", " ")
        return None if text == "NaT" else text
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if value is None or isinstance(value, str):
        return value
    return float(value) if np.isfinite(value) else None
