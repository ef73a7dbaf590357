"""What a covariance of rows must offer."""

import abc
import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from bochner.exact.rows import Layout, Rows

_DEVIATION, _OF_ALL = 2.0, 6.0

PullBack = Callable[[Float[np.ndarray, "n n"]], Float[np.ndarray, " parameters"]]
"""From dL/dK, symmetric, to dL/dv."""


@dataclasses.dataclass(frozen=True)
class Start:
    """Where the logarithms of a kernel's parameters start, which is also the mode of their prior.

    Attributes:
        values: the logarithms.
        deviations: of the Gaussian prior of each.
        is_lengthscale: which are logarithms of lengthscales.
    """

    values: Float[np.ndarray, " parameters"]
    deviations: Float[np.ndarray, " parameters"]
    is_lengthscale: Bool[np.ndarray, " parameters"]


class AbstractKernel(abc.ABC):
    """A covariance k(x, x') of encoded rows, with parameters given as one vector `v` of logarithms."""

    @abc.abstractmethod
    def start(self, layout: Layout, variance: float) -> Start:
        """Say where the parameters start for targets whose prior variance is about as given."""

    @abc.abstractmethod
    def covariance(
        self, v: Float[np.ndarray, " parameters"], A: Rows, B: Rows
    ) -> Float[np.ndarray, "a b"]:
        """Compute k between all rows of A and all of B."""

    @abc.abstractmethod
    def diagonal(self, v: Float[np.ndarray, " parameters"], A: Rows) -> Float[np.ndarray, " a"]:
        """Compute k(x, x) for each row."""

    @abc.abstractmethod
    def with_pull_back(
        self, v: Float[np.ndarray, " parameters"], A: Rows
    ) -> tuple[Float[np.ndarray, "a a"], PullBack]:
        """Compute the covariance of the rows of A, and the map from dL/dK to dL/dv."""

    def n_parameters(self, layout: Layout) -> int:
        """Count the parameters."""
        return len(self.start(layout, 1.0).values)

    def __add__(self, other: "AbstractKernel") -> "AbstractKernel":
        """Add two covariances."""
        from bochner.exact.kernels.combined import Sum

        return Sum((self, other))

    def __mul__(self, other: "AbstractKernel") -> "AbstractKernel":
        """Multiply two covariances."""
        from bochner.exact.kernels.combined import Product

        return Product((self, other))


def n_axes(layout: Layout, columns: tuple[int, ...] | None) -> int:
    """Count the axes of some columns; of all where None."""
    return sum(columns is None or column in columns for column in layout.columns)


def deviation(n: int) -> float:
    """Give the prior deviation of the logarithm of each of n parameters, one an axis.

    Less where they are many: with as wide a prior for each, together they could follow the noise of few rows, and
    left-out rows would not tell, since the parameters have seen them.
    """
    return min(_DEVIATION, _OF_ALL / max(n, 1) ** 0.5)


def sums_by_axis(
    values: Float[np.ndarray, " features"], axes: tuple[int, ...], n: int
) -> Float[np.ndarray, " n"]:
    """Add up what belongs to the same axis."""
    return np.bincount(np.array(axes, np.int64), weights=values, minlength=n)
