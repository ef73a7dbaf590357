"""The linear covariance with a variance a column, and the constant one."""

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
class Linear(AbstractKernel):
    """`k(x, x') = sum_j variance_j z_j z_j'`, with z_j the standardized column j.

    Attributes:
        columns: the columns it sees, counted from zero; all where None.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Linear
        >>> x = np.array([-1.0, 1.0])
        >>> rows = Columns.learn([x])([x])
        >>> Linear().covariance(np.log([2.0]), rows, rows).round(3).tolist()
        [[2.0, -2.0], [-2.0, 2.0]]
    """

    columns: tuple[int, ...] | None = None

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        n = n_axes(layout, self.columns)
        values = np.full(n, np.log(0.6 * variance / max(n, 1)))
        return Start(values, np.full(n, deviation(n)), np.zeros(n, bool))

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        A, B = A.of_columns(self.columns), B.of_columns(self.columns)
        return (A.numbers * self._variances(v, A)) @ B.numbers.T

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        A = A.of_columns(self.columns)
        return A.numbers**2 @ self._variances(v, A)

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        A = A.of_columns(self.columns)

        def pull_back(G):
            slopes = np.sum(A.numbers * (G @ A.numbers), axis=0) * self._variances(v, A)
            return sums_by_axis(slopes, A.layout.number_axes, len(v))

        return (A.numbers * self._variances(v, A)) @ A.numbers.T, pull_back

    def _variances(self, v, A: Rows) -> Float[np.ndarray, " numbers"]:
        return np.exp(v)[list(A.layout.number_axes)]


@dataclasses.dataclass(frozen=True)
class Constant(AbstractKernel):
    """`k(x, x') = variance`: an unknown mean.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Constant
        >>> rows = Columns.learn([np.arange(2.0)])([np.arange(2.0)])
        >>> Constant().covariance(np.zeros(1), rows, rows).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        return Start(np.full(1, np.log(0.2 * variance)), np.full(1, 2.0), np.zeros(1, bool))

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        return np.full((len(A), len(B)), np.exp(v[0]))

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        return np.full(len(A), np.exp(v[0]))

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        return self.covariance(v, A, A), lambda G: np.full(1, G.sum() * np.exp(v[0]))
