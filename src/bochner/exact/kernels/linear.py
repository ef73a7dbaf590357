"""The linear covariance with a variance a column, and the constant one."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bochner.exact.columns import Columns
from bochner.exact.kernels.base import (
    AbstractKernel,
    AbstractOfColumns,
    Features,
    PullBack,
    Start,
    deviation,
    sums_by_axis,
)
from bochner.exact.kernels.inputs import Inputs
from bochner.exact.kernels.many_values import draw_masks, sum_where_equal, walsh
from bochner.exact.rows import Layout, Rows


class Linear(AbstractOfColumns):
    """`k(x, x') = sum_j variance_j z_j z_j'`, with z_j the standardized column j.

    A category of many values adds `variance_j` where x and x' have the same: an effect of each value, as with
    indicators that are not centered. So a value never seen is as uncertain as it is before any data.

    Args:
        *columns: the columns it sees, by name or counted from zero; all where none is given.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Linear
        >>> x = np.array([-1.0, 1.0])
        >>> rows = Columns.learn([x])([x])
        >>> Linear().covariance(np.log([2.0]), rows, rows).round(3).tolist()
        [[2.0, -2.0], [-2.0, 2.0]]
    """

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        n = self.seen(layout).n_axes
        values = np.full(n, np.log(0.6 * variance / max(n, 1)))
        return Start(values, np.full(n, deviation(n)), np.zeros(n, bool))

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        A, B = A.of_columns(self.columns), B.of_columns(self.columns)
        K = (A.numbers * _variances(v, A.layout)[None]) @ B.numbers.T
        for place in A.layout.of_many_values:
            variance = np.exp(v)[A.layout.code_axes[place]]
            K += variance * A.xp.equal(A.codes[:, place, None], B.codes[None, :, place])
        return K

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        A = A.of_columns(self.columns)
        axes = [A.layout.code_axes[place] for place in A.layout.of_many_values]
        return A.numbers**2 @ _variances(v, A.layout) + np.sum(np.exp(v)[axes])

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        own, layout = A.of_columns(self.columns), self.seen(A.layout)
        Z = own.numbers

        def pull_back(G):
            slopes = np.sum(Z * (G @ Z), axis=0) * _variances(v, layout)
            found = sums_by_axis(slopes, layout.number_axes, len(v))
            for place in layout.of_many_values:
                axis = layout.code_axes[place]
                found[axis] = np.exp(v[axis]) * sum_where_equal(G, own.codes[:, place])
            return found

        return self.covariance(v, A, A), pull_back

    def features(self, v, layout: Layout, n: int) -> Features:  # noqa: D102
        seen = self.seen(layout)
        deviations = _variances(v / 2, seen)[:, None]
        of_effects = [float(np.exp(v[seen.code_axes[place]] / 2)) for place in seen.of_many_values]

        def draw(rng: np.random.Generator) -> Any:
            slopes = deviations * rng.normal(size=(len(deviations), n))
            effects = [own * rng.normal(size=(1, n)) for own in of_effects]
            return slopes, [(effect, draw_masks(rng, n)) for effect in effects]

        def at(A: Rows, drawn: Any) -> Any:
            A, (slopes, effects) = A.of_columns(self.columns), drawn
            found = A.numbers @ slopes
            for place, (effect, masks) in zip(seen.of_many_values, effects, strict=True):
                found = found + effect * walsh(A.codes[:, place], masks)
            return found

        return Features(draw, at)


def _variances(v, layout: Layout) -> Float[np.ndarray, " numbers"]:
    return np.exp(v)[list(layout.number_axes)]


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
        return A.xp.full((*A.numbers.shape[:1], *B.numbers.shape[:1]), np.exp(v[0]))

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        return A.xp.full(A.numbers.shape[:1], np.exp(v[0]))

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        return self.covariance(v, A, A), lambda G: np.full(1, G.sum() * np.exp(v[0]))

    def features(self, v, layout: Layout, n: int) -> Features:  # noqa: D102
        return Features(
            lambda rng: (),
            lambda A, _: A.xp.full((*A.numbers.shape[:1], n), np.exp(v[0] / 2)),
        )

    def resolved(self, inputs: Inputs, columns: Columns) -> "Constant":  # noqa: D102
        return self

    def called(self, names: Sequence[str], columns: Columns) -> "Constant":  # noqa: D102
        return self

    def __str__(self) -> str:
        return "constant"
