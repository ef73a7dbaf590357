"""What each column contributes to the prediction of one row, by Shapley's values from random orders of columns.

From a row of the background to the row in question, columns are exchanged one after another in a random order; a
column contributes what its exchange changes of the mean predicted. Contributions are averages over all rows of the
background, each with an order of its own and with that order reversed. So they add up to the row's mean less the
average mean, whatever the orders; of a sum of functions of single columns they are those functions, less their
averages; and where columns act together, what they do together is shared out, with an error from the draw of orders.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from bochner.explaining.columns import TableColumn
from bochner.fitting.sources import encoded_matrix, is_source
from bochner.members.fitted import Fitted

_MOST_PREDICTIONS = 16_000
_ROWS_OF_DRAWS = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Contributions:
    """What columns contribute to the mean predicted for one row.

    Attributes:
        columns: their names.
        values: what the row holds in each.
        contributions: of each column, which add up to `mean - average`; by column and class, or target of several.
        deviations: of the contributions under the posterior, where functions were drawn for them.
        mean: of the row; one for each class, or target of several.
        average: mean predicted for the rows of the background.
    """

    columns: tuple[str, ...]
    values: tuple[Any, ...]
    contributions: Float[np.ndarray, "columns ..."]
    deviations: Float[np.ndarray, "columns ..."] | None
    mean: Float[np.ndarray, "..."]
    average: Float[np.ndarray, "..."]


def contributions_of(
    columns: Sequence[TableColumn],
    mean: Callable[[np.ndarray], np.ndarray],
    functions: Sequence[Callable[[np.ndarray], np.ndarray]],
    X: Float[np.ndarray, "n d"],
    row: Float[np.ndarray, "1 d"],
    seed: int = 0,
) -> Contributions:
    """Compute contributions to the mean of a row, and their deviations over drawn functions if there are such.

    Of many columns, fewer rows of the background are used.

    Example:
        >>> import numpy as np
        >>> from bochner.explaining.columns import TableColumn
        >>> from bochner.explaining.contributions import contributions_of
        >>> X, columns = np.array([[0.0, 0.0], [0.0, 2.0]]), [TableColumn("a", (0,)), TableColumn("b", (1,))]
        >>> mean = lambda X: X[:, :1] + X[:, 1:] + X[:, :1] * X[:, 1:]
        >>> found = contributions_of(columns, mean, [], X, np.array([[1.0, 3.0]]))
        >>> found.contributions.tolist(), float(found.mean), float(found.average)
        ([3.0, 3.0], 7.0, 1.0)
    """
    rng = np.random.default_rng(seed)
    n_rows = int(np.clip(_MOST_PREDICTIONS // (2 * len(columns) + 2), 1, len(X)))
    orders = rng.permuted(np.tile(np.arange(len(columns)), (n_rows, 1)), axis=1)
    # The first rows with their orders are those of drawn functions, which are dear.
    orders = np.stack([orders, orders[:, ::-1]], axis=1)
    background = X[:n_rows]
    found, last, first = _walked(mean, columns, background, orders, row)
    few = slice(0, _ROWS_OF_DRAWS)
    drawn = [_walked(f, columns, background[few], orders[few], row)[0] for f in functions]
    deviations = np.std(drawn, axis=0, ddof=1) if len(drawn) > 1 else None
    if found.shape[1] == 1:
        found, last, first = found[:, 0], last[0], first[0]
        deviations = None if deviations is None else deviations[:, 0]
    return Contributions(
        tuple(column.name for column in columns),
        tuple(column.values(row)[0] for column in columns),
        found,
        deviations,
        np.asarray(last),
        np.asarray(first),
    )


def _walked(
    function: Callable[[np.ndarray], np.ndarray],
    columns: Sequence[TableColumn],
    background: Float[np.ndarray, "n d"],
    orders: np.ndarray,
    row: Float[np.ndarray, "1 d"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Walk from each row of the background, in each of its orders; give mean steps by column, last and first mean."""
    n, n_orders, n_columns = orders.shape
    walks = np.repeat(background[:, None, None], n_columns + 1, axis=2).repeat(n_orders, axis=1)
    # The step at which each column is exchanged; from there on it has the value of the row.
    steps = np.argsort(orders, axis=2)
    for place, column in enumerate(columns):
        is_exchanged = np.arange(n_columns + 1) > steps[:, :, place, None]
        for own in column.places:
            walks[..., own] = np.where(is_exchanged, row[0, own], walks[..., own])
    values = np.asarray(function(walks.reshape(-1, background.shape[1])), np.float64)
    values = values.reshape(n, n_orders, n_columns + 1, -1)
    changes = np.take_along_axis(np.diff(values, axis=2), steps[..., None], axis=2)
    return changes.mean(axis=(0, 1)), values[0, 0, -1], values[:, :, 0].mean(axis=(0, 1))


def one_row(fitted: Fitted, row: Any) -> Float[np.ndarray, "1 d"]:
    """Give a row as a matrix of one: from its values, a dictionary of them by name, or a table of one row.

    Example:
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.explaining.contributions import one_row
        >>> model = DeepGPRegressor(Linear()).fit([[0.0, 1], [1, 1], [2, 0], [4, 3]], [0, 1, 2, 4])
        >>> one_row(model.fitted_, [5, 6]).tolist()
        [[5.0, 6.0]]
    """
    if hasattr(row, "to_dict") and getattr(row, "ndim", 2) == 1:
        row = row.to_dict()
    if isinstance(row, Mapping):
        row = pa.Table.from_pylist([dict(row)])
    if is_source(row, encoded=fitted.encoder is not None):
        X = encoded_matrix(fitted.reader, row)
    else:
        X = np.atleast_2d(np.asarray(row, np.float64))
    if X.shape != (1, fitted.d_in) or not np.all(np.isfinite(X)):
        raise ValueError(
            f"a row to explain must be one, of {fitted.d_in} finite numbers, or a table of one row like the one "
            f"fitted; got shape {X.shape}."
        )
    return X
