"""The effect of one column: the mean prediction over rows that all have the same value there (partial dependence)."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Shaped

from bochner.explaining.columns import TableColumn

_MOST_PREDICTIONS = 6_000
_ROWS_OF_DRAWS = 10
"""Rows over which drawn functions are averaged: these are dear, and deviations need no more."""

Mean = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Effect:
    """The mean prediction at each of some values of a column, all else in the rows as it is.

    Attributes:
        column: its name.
        values: of the column: numbers or moments in increasing order, or texts.
        mean: the average over rows of the mean predicted; a column for each class, or for each of several targets.
        low: lower end of the interval of that average, by functions drawn from the posterior.
        high: upper end.
        coverage: of the intervals, at each value.
        is_category: whether values have no order.
    """

    column: str
    values: Shaped[np.ndarray, " points"]
    mean: Float[np.ndarray, "points ..."]
    low: Float[np.ndarray, "points ..."]
    high: Float[np.ndarray, "points ..."]
    coverage: float
    is_category: bool


def effect_of(
    column: TableColumn,
    mean: Mean,
    functions: Sequence[Mean],
    X: Float[np.ndarray, "n d"],
    n_points: int,
    coverage: float,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> Effect:
    """Compute the effect of a column, with intervals from the deviations of drawn functions from their average.

    Intervals end at the bounds that a mean can have.

    Example:
        >>> import numpy as np
        >>> from bochner.explaining.columns import TableColumn
        >>> from bochner.explaining.effects import effect_of
        >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
        >>> drawn = [lambda X, slope=slope: slope * X[:, 0] for slope in (1.0, 3.0)]
        >>> found = effect_of(TableColumn("x", (0,)), lambda X: 2 * X[:, :1], drawn, X, 5, 0.8)
        >>> found.values.tolist(), found.mean.tolist(), found.low.round(6).tolist()
        ([0.0, 1.0, 2.0], [0.0, 2.0, 4.0], [0.0, 1.2, 2.4])
    """
    values, own = column.grid(X, n_points)
    X = _spread_out(X, _MOST_PREDICTIONS // max(len(own), 1))
    few = _spread_out(X, _ROWS_OF_DRAWS)
    found = _averages(mean, column, own, X)
    drawn = np.stack([_averages(function, column, own, few) for function in functions])
    ends = (1 - coverage) / 2, (1 + coverage) / 2
    deviations = np.quantile(drawn - drawn.mean(axis=0), ends, axis=0)
    low, high = np.clip(found + deviations, *within)
    if found.shape[1] == 1:
        found, low, high = found[:, 0], low[:, 0], high[:, 0]
    return Effect(column.name, values, found, low, high, coverage, column.is_category)


def _averages(
    function: Callable[[np.ndarray], np.ndarray],
    column: TableColumn,
    own: np.ndarray,
    X: np.ndarray,
) -> Float[np.ndarray, "points outputs"]:
    """Average over rows that have each value."""
    rows = column.put(np.tile(X, (len(own), 1)), np.repeat(own, len(X), axis=0))
    found = np.asarray(function(rows), np.float64)
    return found.reshape(len(own), len(X), -1).mean(axis=1)


def _spread_out(X: np.ndarray, n: int) -> np.ndarray:
    """Take so many rows, at equal distances."""
    return X[np.linspace(0, len(X) - 1, min(n, len(X))).round().astype(int)]
