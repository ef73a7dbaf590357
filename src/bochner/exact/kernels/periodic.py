"""The periodic covariance along a column: functions that repeat themselves."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from bochner.exact.columns import unbent
from bochner.exact.kernels.base import (
    AbstractStationary,
    Features,
    PullBack,
    Start,
    of_cosines,
)
from bochner.exact.kernels.rbf import gaussian
from bochner.exact.rows import Layout, Rows

_STEP = 0.05  # of the logarithm of a learned period
_LEAST, _MOST = 1e-100, 1e100


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class Periodic(AbstractStationary):
    """`k(x, x') = variance * exp(-2 sin^2(pi (x - x') / period) / l^2)` (MacKay, 1998), with x a column.

    It is RBF on a circle. A table's fit turns the period from the units of the column, days for a date, into those of
    standardized numbers.

    Args:
        *columns: the one column, by name or counted from zero.
        period: the period, which is kept.
        near: in its place, where a learned period starts; it should be right to a tenth.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Periodic
        >>> x = np.array([-1.0, 1.0])
        >>> rows = Columns.learn([x])([x])
        >>> Periodic(0, period=4.0).covariance(np.zeros(2), rows, rows).round(3).tolist()  # exp(-2)
        [[1.0, 0.135], [0.135, 1.0]]
    """

    period: float | None
    near: float | None
    IN_UNITS = ("period", "near")

    def __init__(
        self, *columns: int | str, period: float | None = None, near: float | None = None
    ) -> None:
        super().__init__(*columns)
        given = [value for value in (period, near) if value is not None]
        if len(columns) != 1:
            raise ValueError("`periodic` takes one column.")
        if len(given) != 1 or not _LEAST < given[0] < _MOST:
            raise ValueError(
                "`periodic` takes either `period` or `near`, a number above 0, such as `period=365.25`."
            )
        object.__setattr__(self, "period", None if period is None else float(period))
        object.__setattr__(self, "near", None if near is None else float(near))

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        self.seen(layout)
        n = 2 if self.near is None else 3
        values, is_lengthscale = np.zeros(n), np.arange(n) == 1
        values[0] = np.log(variance)
        return Start(values, np.array([2.0, 2.0, 1.0])[:n], is_lengthscale)

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        a, b = (self._circle(v, self._angles(v, rows)) for rows in (A, B))
        return gaussian(v[0], a, b, A.xp)

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        angles = self._angles(v, A)
        a = self._circle(v, angles)
        K = gaussian(v[0], a, a, np)

        def pull_back(G):
            W = G * K
            of_rows, Wa = W.sum(axis=1), W @ a
            slopes = [of_rows.sum(), 2 * (of_rows @ np.sum(a**2, axis=1) - np.sum(a * Wa)), 0.0]
            (cosines, sines), (W_cosines, W_sines) = (np.split(x, 2, axis=1) for x in (a, Wa))
            slopes[2] = 2 * _STEP * np.sum(angles * (sines * W_cosines - cosines * W_sines))
            return np.array(slopes[: len(v)])

        return K, pull_back

    def features(self, v, layout: Layout, n: int) -> Features:  # noqa: D102
        def scaled(A: Rows) -> Any:
            return self._circle(v, self._angles(v, A))

        width = 2 * len(self._places(layout))
        return of_cosines(v, scaled, width, np.random.Generator.normal, n)

    def _angles(self, v, A: Rows) -> Float[np.ndarray, "a 1"]:
        period = self.period or self.near * np.exp(_STEP * v[2])  # pyright: ignore[reportOptionalOperand]
        return unbent(A.numbers[:, self._places(A.layout)], A.xp) * (2 * np.pi / period)

    @staticmethod
    def _circle(v, angles) -> Float[np.ndarray, "a 2"]:
        xp = angles.__array_namespace__()
        return xp.concatenate([xp.cos(angles), xp.sin(angles)], axis=1) * np.exp(-v[1])

    def _places(self, layout: Layout) -> Float[np.ndarray, " 1"]:
        """Where the numbers of the column are, and not whether they are missing."""
        layout, (places, _, _) = layout.of_columns(self.columns or ())
        has_rank = [axis in layout.rank_axes for axis in layout.number_axes]
        return places[has_rank]
