"""Whole numbers: targets that are all on a lattice, and the mass that a law gives to the points of it."""

import dataclasses
from typing import Protocol

import numpy as np
from jaxtyping import Float

from bochner.exact.cells import Cells

_FEWEST_POINTS, _MOST_POINTS = 3, 100
_ROWS_A_POINT = 5
_TOLERANCE = 1e-6
_LEAST_MASS = 1e-9
_SMOOTHING = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)  # points
_PSEUDO_ROWS = 0.5  # at each point


class Continuous(Protocol):
    """A law with a distribution function and a density."""

    def cdf(self, y: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "... n"]:
        """Compute the probability of targets up to y."""
        ...

    def log_density(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Compute the log density of one target a row."""
        ...


@dataclasses.dataclass(frozen=True)
class Lattice:
    """The numbers `start + k step`, for all whole k.

    Attributes:
        start: one of the points.
        step: from each point to the next.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.lattice import Lattice
        >>> Lattice.found(np.repeat([3.0, 4.0, 6.0], 9)), Lattice.found(np.linspace(0, 1, 30))
        (Lattice(start=3.0, step=1.0), None)
    """

    start: float
    step: float

    @classmethod
    def found(cls, y: Float[np.ndarray, " n"]) -> "Lattice | None":
        """Find the lattice on which all of some targets are, if there is one and they are many for its points."""
        values = np.unique(y)
        if not _FEWEST_POINTS <= len(values) <= len(y) / _ROWS_A_POINT:
            return None
        start, step = float(values[0]), float(np.min(np.diff(values)))
        # The mean of the steps between points has fewer rounding errors than the least of them.
        numbers = np.rint((values - start) / step)
        if numbers[-1] >= _MOST_POINTS:
            return None
        step = float((values[-1] - start) / numbers[-1])
        if np.max(np.abs(values - start - numbers * step)) > _TOLERANCE * step:
            return None
        return cls(start, step)

    def nearest(self, y: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Give the point nearest to each number."""
        return self.start + self.step * np.rint((y - self.start) / self.step)

    def down(self, y: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Give the last point that is not above each number."""
        return self.start + self.step * np.floor((y - self.start) / self.step + _TOLERANCE)

    def up(self, y: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Give the point to whose cell each number belongs: the first that is no more than half a step below."""
        return self.start + self.step * np.ceil((y - self.start) / self.step - 0.5 - _TOLERANCE)

    def cells(self, y: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> Cells:
        """Make a cell of each point between the outer targets; beyond them is less than a row's weight."""
        last = int(np.rint((np.max(y) - self.start) / self.step))
        first = int(np.rint((np.min(y) - self.start) / self.step))
        edges = self.start + self.step * (np.arange(first, last) + 0.5)
        if not len(edges):
            return Cells(edges, (0.0, 0.0))
        ends = [float(weights @ beyond) for beyond in (y < edges[0], y > edges[-1])]
        tails = [self.step / np.log(weight + 2) for weight in ends]
        return Cells(edges, (tails[0], tails[1]))

    def log_mass(self, law: Continuous, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Compute the log probability that a law, rounded to the lattice, gives to one target a row."""
        points = self.nearest(y)
        mass = law.cdf(points + self.step / 2) - law.cdf(points - self.step / 2)
        # Far out the distribution function has no digits left, and the density is flat over a step.
        with np.errstate(divide="ignore"):
            far = law.log_density(points) + np.log(self.step)
            return np.where(mass > _LEAST_MASS, np.log(np.maximum(mass, _LEAST_MASS)), far)

    def log_density(self, law: Continuous, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Compute the log density of a law that is flat between half steps, for comparison with densities."""
        return self.log_mass(law, y) - np.log(self.step)


def smoothed(counts: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
    """Spread the rows at each point over its neighbors, as widely as makes rows that are left out most probable.

    Where there are few rows for many points, some have many by chance alone.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.lattice import smoothed
        >>> smoothed(np.array([400.0, 900.0, 300.0])).tolist()  # enough at each
        [400.0, 900.0, 300.0]
        >>> smoothed(np.array([5.0, 2.0, 6.0, 3.0, 7.0, 4.0])).round(1).tolist()
        [4.4, 4.5, 4.6, 4.6, 4.5, 4.4]
    """
    apart = np.subtract.outer(np.arange(len(counts)), np.arange(len(counts)))
    best, most = counts, -np.inf
    for width in _SMOOTHING:
        spread = np.exp(-0.5 * (apart / max(width, 1e-3)) ** 2)
        spread = spread / np.sum(spread, axis=0)  # no row is lost beyond the ends
        found = spread @ counts
        others = np.maximum(found - np.diag(spread), 0) + _PSEUDO_ROWS
        if (score := float(counts @ np.log(others))) > most:
            best, most = found, score
    return best
