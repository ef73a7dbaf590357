"""The Laplace covariance, axis by axis, on ranks and categories: functions with steps along single columns."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

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
from bochner.exact.kernels.many_values import draw_masks, sum_where_equal, walsh
from bochner.exact.rows import MOST_CODES, Layout, Rows

_BLOCK = 64


class Laplace(AbstractStationary):
    """`k(x, x') = variance * exp(-sum_j |u_j - u_j'| / l_j)`, with u_j the rank of column j.

    For a category the distance is one where two values differ: a mismatch. It is the exponential kernel of Rahimi and
    Recht (2007), section 4, whose functions may be rough along one column and constant along others, as sums and
    products of steps are.

    Args:
        *columns: the columns it sees, by name or counted from zero; all where none is given.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Laplace
        >>> x = np.array([1.0, 2.0, 3.0, 4.0])
        >>> rows = Columns.learn([x])([x])
        >>> Laplace().covariance(np.log([2.0, 0.25]), rows[:1], rows).round(3).tolist()
        [[2.0, 0.736, 0.271, 0.1]]
    """

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        n = self.seen(layout).n_axes
        return start_of_lengthscales(n, variance, max(2.0, n / 3))

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        A, B = A.of_columns(self.columns), B.of_columns(self.columns)
        rates, layout, xp = np.exp(-v[1:]), A.layout, A.xp
        scale = rates[list(layout.rank_axes)][None]
        D = _city_block(A.ranks * scale, B.ranks * scale, xp)
        for j, axis in enumerate(layout.code_axes):
            D += rates[axis] * xp.not_equal(A.codes[:, j, None], B.codes[None, :, j])
        D = xp.subtract(v[0], D, **onto(D))
        return xp.exp(D, **onto(D))

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        K = self.covariance(v, A, A)
        A, rates = A.of_columns(self.columns), np.exp(-v[1:])

        def pull_back(G):
            W = G * K
            by_rank = _weighted_distances(W, A.ranks)
            by_code = np.zeros(A.codes.shape[1])
            total = float(W.sum())
            many = A.layout.of_many_values
            for j in range(A.codes.shape[1]):
                if j in many:
                    by_code[j] = total - sum_where_equal(W, A.codes[:, j])
                    continue
                onehot = (A.codes[:, [j]] == np.unique(A.codes[:, j])).astype(np.float64)
                by_code[j] = total - float(np.sum(onehot * (W @ onehot)))
            n, layout = len(rates), A.layout
            slopes = sums_by_axis(by_rank, layout.rank_axes, n)
            slopes += sums_by_axis(by_code, layout.code_axes, n)
            return np.append(total, slopes * rates)

        return K, pull_back

    def features(self, v, layout: Layout, n: int) -> Features:  # noqa: D102
        seen, rates = self.seen(layout), np.exp(-v[1:])
        scale, many = rates[list(seen.rank_axes)][None], seen.of_many_values

        def scaled(A: Rows) -> Any:
            return A.of_columns(self.columns).ranks * scale

        smooth = of_cosines(v, scaled, scale.shape[1], np.random.Generator.standard_cauchy, n)

        def draw(rng: np.random.Generator) -> Any:
            signs = [
                _masks(rng, rates[axis], n) if place in many else _signs(rng, rates[axis], n)
                for place, axis in enumerate(seen.code_axes)
            ]
            return smooth.draw(rng), signs

        def at(A: Rows, drawn: Any) -> Any:
            found, codes = smooth.at(A, drawn[0]), A.of_columns(self.columns).codes
            for j, own in enumerate(drawn[1]):
                signs = walsh(codes[:, j], own) if j in many else A.xp.asarray(own)[codes[:, j]]
                found = found * signs
            return found

        return Features(draw, at)


def _city_block(a, b, xp) -> Float[np.ndarray, "a b"]:
    """Compute distances, zeros where there are no columns."""
    # In JAX a sum that the compiler makes without the array under it.
    return cdist(a, b, "cityblock") if xp is np else xp.sum(xp.abs(a[:, None] - b[None]), axis=2)


def _signs(rng: np.random.Generator, rate: float, n: int) -> np.ndarray:
    """Draw signs of the values of a category, for each feature: equal for all values, or one for each.

    With the first in a share `exp(-rate)` of the features, the mean product of two different values' signs is that.
    """
    signs = 2 * rng.integers(0, 2, size=(MOST_CODES, n), dtype=np.int8) - 1
    return np.where(rng.uniform(size=(1, n)) < np.exp(-rate), signs[:1], signs)


def _masks(rng: np.random.Generator, rate: float, n: int) -> np.ndarray:
    """Draw the same for a category of many values: a mask of zero gives all values one sign."""
    return np.where(rng.uniform(size=(1, n)) < np.exp(-rate), 0, draw_masks(rng, n))


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
