"""The RBF covariance with a lengthscale a column: smooth functions."""

import numpy as np
from jaxtyping import Float

from bochner.exact.kernels.base import (
    AbstractStationary,
    Features,
    PullBack,
    Start,
    of_cosines,
    onto,
    start_of_lengthscales,
    sums_by_axis,
)
from bochner.exact.rows import Layout, Rows


class RBF(AbstractStationary):
    """`k(x, x') = variance * exp(-sum_j (z_j - z_j')^2 / (2 l_j^2))`, with z_j the standardized column j.

    A category is as many columns as it has values, of one lengthscale.

    Args:
        *columns: the columns it sees, by name or counted from zero; all where none is given.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import RBF
        >>> x = np.array([-1.0, 1.0])
        >>> rows = Columns.learn([x])([x])
        >>> RBF().covariance(np.log([1.0, 2.0]), rows, rows).round(3).tolist()
        [[1.0, 0.607], [0.607, 1.0]]
    """

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        n = self.seen(layout).n_axes
        return start_of_lengthscales(n, variance, 1.5 * max(n, 1) ** 0.5)

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        return gaussian(v[0], self._scaled(v, A), self._scaled(v, B), A.xp)

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        a, axes = self._scaled(v, A), self.seen(A.layout).number_axes
        K = gaussian(v[0], a, a, np)

        def pull_back(G):
            W = G * K
            of_rows = W.sum(axis=1)
            squares = 2 * (of_rows @ a**2 - np.sum(a * (W @ a), axis=0))
            return np.append(of_rows.sum(), sums_by_axis(squares, axes, len(v) - 1))

        return K, pull_back

    def features(self, v, layout: Layout, n: int) -> Features:  # noqa: D102
        width = len(self.seen(layout).number_axes)
        return of_cosines(v, lambda A: self._scaled(v, A), width, np.random.Generator.normal, n)

    def _scaled(self, v, A: Rows) -> Float[np.ndarray, "a numbers"]:
        A = A.of_columns(self.columns)
        return A.numbers * np.exp(-v[1:])[list(A.layout.number_axes)][None]


def gaussian(log_variance, a, b, xp) -> Float[np.ndarray, "a b"]:
    """Compute `variance * exp(-|a_i - b_j|^2 / 2)` for all rows of a and of b."""
    K = a @ b.T
    K -= 0.5 * xp.sum(a**2, axis=1)[:, None]
    K -= 0.5 * xp.sum(b**2, axis=1)[None, :]
    K = xp.minimum(K, 0.0, **onto(K))
    K += log_variance
    return xp.exp(K, **onto(K))
