"""The share of each column in what changes the mean predicted, when values are exchanged between rows.

With x_j exchanged for the value of another row, drawn at random, the mean predicted changes from f to f^(j), and

    variance_j = E[(f - f^(j))^2] / 2,    share_j = variance_j / sum_k variance_k

(Jansen, 1999; Sobol's total index where divided by Var f). Of a sum of functions of single columns, variance_j is the
variance of its function of column j, so that shares are of Var f itself where columns are independent. Where columns
act together, what they do together counts for each of them. Permutation importance by squared errors is twice
variance_j where the prediction is exact.

Where columns depend on each other, rows with exchanged values may be such as do not occur. Shares then tell what the
prediction makes of a column, which need not be what the column says of the target: of two that say the same, each may
have half, or one all. Dividing by the sum keeps them shares, since the variances of functions of columns that go
together do not add up to that of their sum.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from bochner.explaining.columns import TableColumn

MOST_PREDICTIONS = 10_000
"""Rows predicted at most, about, to find the shares of all columns."""

_ROWS_AT_ONCE = 4_000
_N_EXCHANGES, _FEWEST_ROWS = 2, 20  # of more exchanges, the error of few rows would stay
_LEAST = 1e-9  # deviations below this share of the values are rounding

Means = Callable[[np.ndarray], list[np.ndarray]]
"""From rows to the means of several predictors, each with a column an output."""


def n_rows_for(n_columns: int) -> int:
    """Say from how many rows the shares of so many columns are to be found.

    Example:
        >>> from bochner.explaining.shares import n_rows_for
        >>> n_rows_for(10), n_rows_for(800)
        (500, 20)
    """
    return max(MOST_PREDICTIONS // max(_N_EXCHANGES * n_columns, 1), _FEWEST_ROWS)


def variances_by_column(
    means: Means, X: Float[np.ndarray, "n d"], columns: Sequence[TableColumn], seed: int = 0
) -> list[Float[np.ndarray, "columns outputs"]]:
    """Estimate `E[(f - f')^2] / 2` for each predictor, column and output, from each row with several others.

    Example:
        >>> import numpy as np
        >>> from bochner.explaining.columns import TableColumn
        >>> from bochner.explaining.shares import variances_by_column
        >>> X = np.random.default_rng(0).normal(size=(2000, 2))
        >>> columns = [TableColumn("a", (0,)), TableColumn("b", (1,))]
        >>> found, = variances_by_column(lambda X: [X @ [[2.0], [1.0]]], X, columns)
        >>> np.abs(found[:, 0] - [4.0, 1.0]).max() < 0.3
        np.True_
    """
    rng, n = np.random.default_rng(seed), len(X)
    n_exchanges = min(_N_EXCHANGES, n - 1)
    order = rng.permutation(n)
    partners = np.empty((n_exchanges, n), np.int64)
    partners[:, order] = [np.roll(order, s) for s in 1 + rng.permutation(n - 1)[:n_exchanges]]
    before = [np.tile(f, (n_exchanges, 1)) for f in means(X)]
    found = [np.zeros((len(columns), f.shape[1])) for f in before]
    repeated, flat = np.tile(X, (n_exchanges, 1)), partners.reshape(-1)
    at_once = max(_ROWS_AT_ONCE // len(repeated), 1)
    # Several columns in one call: to encode a row of many columns takes longer than to predict it.
    varying = [place for place, one in enumerate(columns) if np.ptp(one.of(X), axis=0).any()]
    for start in range(0, len(varying), at_once):
        few = varying[start : start + at_once]
        exchanged = [columns[place].put(repeated, columns[place].of(X)[flat]) for place in few]
        for own, f, after in zip(found, before, means(np.concatenate(exchanged)), strict=True):
            changes = after.reshape(len(few), *f.shape) - f
            own[few] = np.mean(changes**2, axis=1) / 2
    return found


def variances(f: Float[np.ndarray, "n outputs"]) -> Float[np.ndarray, " outputs"]:
    """Compute the variance of each output over rows, zero where it is rounding."""
    found = np.var(f, axis=0, ddof=1)
    return np.where(found > (_LEAST * np.abs(f).max(axis=0, initial=0.0)) ** 2, found, 0.0)


def shares_of_columns(
    by_column: Float[np.ndarray, "columns outputs"], spread: Float[np.ndarray, " outputs"]
) -> Float[np.ndarray, " columns"]:
    """Sum over the outputs that vary, and divide by the sum over columns; zero where none varies.

    Example:
        >>> import numpy as np
        >>> from bochner.explaining.shares import shares_of_columns
        >>> shares_of_columns(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([2.0, 2.0])).tolist()
        [0.75, 0.25]
    """
    sums = np.sum(by_column * (spread > 0), axis=1)
    return sums / max(float(sums.sum()), np.finfo(float).tiny)
