"""The RBF covariance with a lengthscale a column: smooth functions."""

import dataclasses

import numpy as np
from jaxtyping import Float

from bochner.exact.kernels.base import (
    AbstractKernel,
    PullBack,
    Start,
    deviation,
    n_axes,
    sums_by_axis,
)
from bochner.exact.rows import Layout, Rows


@dataclasses.dataclass(frozen=True)
class RBF(AbstractKernel):
    """`k(x, x') = variance * exp(-sum_j (z_j - z_j')^2 / (2 l_j^2))`, with z_j the standardized column j.

    A category is as many columns as it has values, of one lengthscale.

    Attributes:
        columns: the columns it sees, counted from zero; all where None.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import RBF
        >>> x = np.array([-1.0, 1.0])
        >>> rows = Columns.learn([x])([x])
        >>> RBF().covariance(np.log([1.0, 2.0]), rows, rows).round(3).tolist()
        [[1.0, 0.607], [0.607, 1.0]]
    """

    columns: tuple[int, ...] | None = None

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        n = n_axes(layout, self.columns)
        values = np.append(np.log(variance), np.full(n, np.log(1.5 * max(n, 1) ** 0.5)))
        return Start(values, np.append(2.0, np.full(n, deviation(n))), np.arange(n + 1) > 0)

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        a, b = self._scaled(v, A), self._scaled(v, B)
        K = a @ b.T
        K -= 0.5 * np.sum(a**2, axis=1)[:, None]
        K -= 0.5 * np.sum(b**2, axis=1)[None, :]
        np.minimum(K, 0.0, out=K)
        K += v[0]
        return np.exp(K, out=K)

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        return np.full(len(A), np.exp(v[0]))

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        K, a = self.covariance(v, A, A), self._scaled(v, A)
        axes = A.of_columns(self.columns).layout.number_axes

        def pull_back(G):
            W = G * K
            of_rows = W.sum(axis=1)
            squares = 2 * (of_rows @ a**2 - np.sum(a * (W @ a), axis=0))
            return np.append(of_rows.sum(), sums_by_axis(squares, axes, len(v) - 1))

        return K, pull_back

    def _scaled(self, v, A: Rows) -> Float[np.ndarray, "a numbers"]:
        A = A.of_columns(self.columns)
        return A.numbers * np.exp(-v[1:])[list(A.layout.number_axes)]
