"""The Laplace covariance, axis by axis, on ranks and categories: functions with steps along single columns."""

import dataclasses

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from bochner.exact.kernels.base import (
    AbstractKernel,
    PullBack,
    Start,
    deviation,
    n_axes,
    sums_by_axis,
)
from bochner.exact.rows import Layout, Rows

_BLOCK = 64


@dataclasses.dataclass(frozen=True)
class Laplace(AbstractKernel):
    """`k(x, x') = variance * exp(-sum_j |u_j - u_j'| / l_j)`, with u_j the rank of column j.

    For a category the distance is one where two values differ: a mismatch. It is the exponential kernel of Rahimi and
    Recht (2007), section 4, whose functions may be rough along one column and constant along others, as sums and
    products of steps are.

    Attributes:
        columns: the columns it sees, counted from zero; all where None.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Laplace
        >>> x = np.array([1.0, 2.0, 3.0, 4.0])
        >>> rows = Columns.learn([x])([x])
        >>> Laplace().covariance(np.log([2.0, 0.25]), rows[:1], rows).round(3).tolist()
        [[2.0, 0.736, 0.271, 0.1]]
    """

    columns: tuple[int, ...] | None = None

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        n = n_axes(layout, self.columns)
        values = np.append(np.log(variance), np.full(n, np.log(max(2.0, n / 3))))
        return Start(values, np.append(2.0, np.full(n, deviation(n))), np.arange(n + 1) > 0)

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        A, B = A.of_columns(self.columns), B.of_columns(self.columns)
        rates, layout = np.exp(-v[1:]), A.layout
        scale = rates[list(layout.rank_axes)]
        # Without ranks the distances are zero.
        D = cdist(A.ranks * scale, B.ranks * scale, "cityblock")
        for j, axis in enumerate(layout.code_axes):
            D += rates[axis] * np.not_equal.outer(A.codes[:, j], B.codes[:, j])
        np.subtract(v[0], D, out=D)
        return np.exp(D, out=D)

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        return np.full(len(A), np.exp(v[0]))

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        K = self.covariance(v, A, A)
        A, rates = A.of_columns(self.columns), np.exp(-v[1:])

        def pull_back(G):
            W = G * K
            by_rank = _weighted_distances(W, A.ranks)
            by_code = np.zeros(A.codes.shape[1])
            total = float(W.sum())
            for j in range(A.codes.shape[1]):
                onehot = (A.codes[:, [j]] == np.unique(A.codes[:, j])).astype(np.float64)
                by_code[j] = total - float(np.sum(onehot * (W @ onehot)))
            n, layout = len(rates), A.layout
            slopes = sums_by_axis(by_rank, layout.rank_axes, n)
            slopes += sums_by_axis(by_code, layout.code_axes, n)
            return np.append(total, slopes * rates)

        return K, pull_back


def _weighted_distances(W, U) -> Float[np.ndarray, " ranks"]:
    """`sum_ab W_ab |u_aj - u_bj|` for each column j, W symmetric: by blocks of rows that stay in the cache."""
    sums = np.zeros(U.shape[1])
    columns = np.ascontiguousarray(U.T)
    for start in range(0, len(U), _BLOCK):
        stop = min(start + _BLOCK, len(U))
        weights = W[start:stop, start:].copy()
        distances = np.empty(weights.shape)
        # What is beside the block on the diagonal counts twice, once for each triangle.
        weights[:, stop - start :] *= 2
        for j, u in enumerate(columns):
            np.subtract.outer(u[start:stop], u[start:], out=distances)
            np.abs(distances, out=distances)
            sums[j] += np.vdot(distances, weights)
    return sums
