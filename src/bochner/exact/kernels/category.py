"""The covariance of a category: rows of one value have an effect in common, and those of different values none."""

import numpy as np
from jaxtyping import Float

from bochner.exact.kernels.base import AbstractStationary, Features, PullBack, Start
from bochner.exact.kernels.laplace import Laplace
from bochner.exact.rows import Layout, Rows

_RATE = 1e8  # of a distance between ranks, which are not as close as this where values differ


class Category(AbstractStationary):
    """`k(x, x') = variance` where all its columns have the same value in x and x', and zero elsewhere.

    So a value never seen is as uncertain as it is before any data. Values that training rows have once, and those
    beyond the most frequent, are one value together, and one never seen counts as one of them where there are such.

    Args:
        *columns: the columns it sees, by name or counted from zero; numbers are told apart as well.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Category
        >>> color = np.array(["red", "blue", "red", "blue"])
        >>> rows = Columns.learn([color])([color])
        >>> Category(0).covariance(np.log([2.0]), rows[:1], rows).round(3).tolist()
        [[2.0, 0.0, 2.0, 0.0]]
    """

    FEWEST = 1

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        self.seen(layout)
        return Start(np.full(1, np.log(variance)), np.full(1, 2.0), np.zeros(1, bool))

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        return self._rough.covariance(self._sharp(v, A.layout), A, B)

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        K = self.covariance(v, A, A)
        return K, lambda G: np.full(1, np.vdot(G, K))

    def features(self, v, layout: Layout, n: int) -> Features:  # noqa: D102
        return self._rough.features(self._sharp(v, layout), layout, n)

    @property
    def _rough(self) -> Laplace:
        """What it is the limit of, for short lengthscales."""
        return Laplace(*(self.columns or ()))

    def _sharp(self, v, layout: Layout) -> np.ndarray:
        return np.append(v, np.full(self.seen(layout).n_axes, -np.log(_RATE)))
