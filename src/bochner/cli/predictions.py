"""The columns that `bochner predict` writes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from bochner.estimators.predicted_columns import (
    Columns,
    columns_of_classes,
    columns_of_numbers,
)

ALL_DIGITS = 17
_DIGITS_OF_STD = 3
_ALL = "all"


def levels_of(text: str | None) -> list[float]:
    """Read levels of quantiles.

    Example:
        >>> from bochner.cli.predictions import levels_of
        >>> levels_of("0.1, 0.9")
        [0.1, 0.9]
    """
    try:
        levels = [float(part) for part in (text or "").split(",") if part.strip()]
    except ValueError as error:
        raise ValueError(f"--quantiles must be numbers such as 0.05,0.95; got {text!r}.") from error
    if not all(0 < level < 1 for level in levels):
        raise ValueError(f"--quantiles must lie strictly between 0 and 1; got {text!r}.")
    return levels


def columns_of(
    model: Any, coverage: float, levels: list[float], method: str = "model"
) -> Callable[[np.ndarray, list[Any] | None], Columns]:
    """Give what predicts the columns of encoded rows in groups, if there are some, for the task of the model."""
    if hasattr(model, "classes_"):
        if levels:
            raise ValueError("--quantiles is for regression; this model predicts classes.")
        if method != "model":
            raise ValueError("--method is for regression; this model predicts classes.")
        return lambda X, groups: columns_of_classes(model, X, coverage, groups)
    if model.n_targets_ > 1:
        raise ValueError("the model has several targets; predict with it in Python.")
    return lambda X, groups: columns_of_numbers(model, X, coverage, levels, groups)


def crossed(model: Any, X: np.ndarray, batch: pa.RecordBatch, coverage: float) -> Columns:
    """Predict intervals by fits without each fold, which encode the rows each in its own way."""
    rows = X if model.fitted_.encoder is None else pa.Table.from_batches([batch])
    ends = model.predict_interval(rows, coverage, method="cross")
    return {"lower": ends[:, 0], "upper": ends[:, 1]}


def drawn(model: Any, X: np.ndarray, n_samples: int, seed: int, first_row: int) -> Columns:
    """Draw from the predictive distribution of rows; no two parts of a table share their noise."""
    own = int(np.random.SeedSequence((seed, first_row)).generate_state(1)[0] >> 1)
    found = model.sample_y(X, n_samples, random_state=own)
    return {f"sample_{i}": found[..., i] for i in range(n_samples)}


def shortened(columns: Columns, digits: int) -> Columns:
    """Round numbers to so many significant digits, or to as many as show three of the row's deviation.

    Example:
        >>> import numpy as np
        >>> from bochner.cli.predictions import shortened
        >>> found = {"mean": np.array([141.80822, 1000000.5]), "std": np.array([56.6934145, 0.001])}
        >>> {name: values.tolist() for name, values in shortened(found, 6).items()}
        {'mean': [141.808, 1000000.5], 'std': [56.6934, 0.001]}
    """
    if digits == ALL_DIGITS:
        return columns
    finest = np.asarray(columns["std"], np.float64) if "std" in columns else None
    return {
        name: _rounded(values, finest, digits) if _are_real(values) else values
        for name, values in columns.items()
    }


def _are_real(values: Any) -> bool:
    return isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.floating)


def _rounded(values: np.ndarray, finest: np.ndarray | None, digits: int) -> np.ndarray:
    needed = np.full(len(values), float(digits))
    if finest is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.floor(np.log10(np.abs(values))) - np.floor(np.log10(finest))
        needed = np.fmax(needed, np.where(np.isfinite(above), above + _DIGITS_OF_STD, digits))
    needed = np.minimum(needed, ALL_DIGITS).astype(int)
    return np.array([float(f"{v:.{n}g}") for v, n in zip(values, needed, strict=True)])


def kept_columns(names: list[str], batch: pa.RecordBatch, table: str) -> Columns:
    """Give the columns of the table to copy, or all of them."""
    known = batch.schema.names
    if names == [_ALL] and _ALL not in known:
        names = known
    for name in names:
        if name not in known:
            raise ValueError(f"{table} has no column {name!r} to keep; its columns are {known}.")
    return {name: batch.column(name) for name in names}


def check_distinct(some: Columns, others: Columns) -> None:
    """Refuse two columns of one name."""
    both = some.keys() & others.keys()
    if both:
        raise ValueError(
            f"--keep {sorted(both)[0]}: a column that is written has this name; rename it in the table."
        )
