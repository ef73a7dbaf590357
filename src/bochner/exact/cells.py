"""Laws that are flat in each of some cells, with exponential tails: what probabilities of cells say of a target."""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float, Int

_LEAST_WIDTH = 1e-3
"""Of a cell, in units of the distance between the outer tenths of targets: atoms must not make densities infinite."""
_LEAST_OF_EXTENT = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Intervals that cover the numbers: the first and the last have no end.

    Attributes:
        edges: between neighboring cells, increasing.
        tails: mean distances of targets in the first and in the last cell from its edge.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.cells import Cells
        >>> cells = Cells.learn(np.arange(12.0), 4)
        >>> cells.edges.tolist(), cells.tails, cells.places(np.array([-9.0, 3.0, 99.0])).tolist()
        ([2.5, 5.5, 8.5], (1.5, 1.5), [0, 1, 3])
    """

    edges: Float[np.ndarray, " inner"]
    tails: tuple[float, float]

    @classmethod
    def learn(
        cls,
        y: Float[np.ndarray, " n"],
        n_cells: int,
        weights: Float[np.ndarray, " n"] | None = None,
    ) -> "Cells":
        """Cut halfway between targets, into cells of about the same weight; of few values each has its own."""
        weights = np.ones(len(y)) if weights is None else weights
        values, inverse = np.unique(y, return_inverse=True)
        middles = values[1:] / 2 + values[:-1] / 2
        below = np.cumsum(np.bincount(inverse, weights))[:-1]
        if len(values) > n_cells:
            wanted = np.sum(weights) * np.arange(1, n_cells) / n_cells
            places = np.unique(np.searchsorted(below, wanted * (1 - 1e-12)))
            middles = middles[places[places < len(middles)]]
        low, high = np.quantile(y, [0.1, 0.9])
        least = max(_LEAST_WIDTH * float(high - low), _LEAST_OF_EXTENT * float(np.ptp(y)))
        return cls.of_edges(_apart(middles, least), y, weights, least)

    @classmethod
    def of_edges(
        cls,
        edges: Float[np.ndarray, " inner"],
        y: Float[np.ndarray, " n"],
        weights: Float[np.ndarray, " n"],
        least: float = 0.0,
    ) -> "Cells":
        """Learn how far targets lie beyond the outer edges."""

        def mean(distance: np.ndarray) -> float:
            beyond = weights * (distance > 0)
            return max(float(beyond @ distance / max(np.sum(beyond), 1e-300)), least)

        tails = (mean(edges[0] - y), mean(y - edges[-1])) if len(edges) else (0.0, 0.0)
        return cls(edges, tails)

    def __len__(self) -> int:
        """Count the cells."""
        return len(self.edges) + 1

    def places(self, y: Float[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
        """Number the cell of each target."""
        return np.searchsorted(self.edges, y, side="right")

    @functools.cached_property
    def widths(self) -> Float[np.ndarray, " cells"]:
        """The widths of cells; of the outer ones the scales of their tails."""
        return np.array([self.tails[0], *np.diff(self.edges), self.tails[1]])

    @functools.cached_property
    def means(self) -> Float[np.ndarray, " cells"]:
        """The mean of a target in each cell."""
        inner = self.edges[1:] / 2 + self.edges[:-1] / 2
        return np.array([self.edges[0] - self.tails[0], *inner, self.edges[-1] + self.tails[1]])

    @functools.cached_property
    def variances(self) -> Float[np.ndarray, " cells"]:
        """The variance of a target in each cell: of a uniform variable inside, of an exponential one outside."""
        factors = np.full(len(self), 1 / 12)
        factors[[0, -1]] = 1.0
        return factors * self.widths**2


@dataclasses.dataclass(frozen=True, eq=False)
class CellLaw:
    """One law a row, flat in each cell, exponential in the first and the last.

    Attributes:
        cells: of all rows.
        probabilities: of each cell.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.cells import CellLaw, Cells
        >>> law = CellLaw(Cells(np.array([0.0, 2.0]), (1.0, 1.0)), np.array([[0.25, 0.5, 0.25]]))
        >>> law.moments()[0].tolist(), law.cdf(np.array([[0.0], [1.0]])).tolist()
        ([1.0], [[0.25], [0.5]])
        >>> law.quantile(np.array([[0.25], [0.5]])).round(12).tolist()
        [[0.0], [1.0]]
    """

    cells: Cells
    probabilities: Float[np.ndarray, "n cells"]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.probabilities)

    def at(self, index: Int[np.ndarray, " some"]) -> "CellLaw":
        """Give the laws of some of the rows."""
        return CellLaw(self.cells, self.probabilities[index])

    @functools.cached_property
    def _below(self) -> Float[np.ndarray, "n cells"]:
        """The probability of the cells before each cell."""
        below = np.cumsum(self.probabilities, axis=1)
        return np.concatenate([np.zeros((len(self), 1)), np.minimum(below[:, :-1], 1.0)], axis=1)

    def moments(
        self,
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Compute mean, epistemic and aleatoric variance; functions are taken as most probable, and add nothing."""
        mean = self.probabilities @ self.cells.means
        apart = (self.cells.means - mean[:, None]) ** 2 + self.cells.variances
        return mean, np.zeros(len(mean)), np.sum(self.probabilities * apart, axis=1)

    def log_density(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Compute the log density of one target a row."""
        places, edges = self.cells.places(y), self.cells.edges
        beyond = np.maximum(edges[0] - y, 0) / self.cells.tails[0]
        beyond = beyond + np.maximum(y - edges[-1], 0) / self.cells.tails[1]
        p = self.probabilities[np.arange(len(y)), places]
        with np.errstate(divide="ignore"):
            return np.log(p) - np.log(self.cells.widths[places]) - beyond

    def cdf(self, y: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "... n"]:
        """Compute the probability of targets up to y."""
        edges, (low, high) = self.cells.edges, self.cells.tails
        places, rows = self.cells.places(y), np.arange(len(self))
        start = edges[np.maximum(places - 1, 0)]
        share = (y - start) / self.cells.widths[places]
        share = np.where(places == 0, np.exp(-np.maximum(edges[0] - y, 0) / low), share)
        last = places == len(edges)
        share = np.where(last, -np.expm1(-np.maximum(y - edges[-1], 0) / high), share)
        return self._below[rows, places] + self.probabilities[rows, places] * share

    def quantile(self, p: Float[np.ndarray, "..."]) -> Float[np.ndarray, "... n"]:
        """Compute the target with probability p below it, for p that broadcasts with rows."""
        p = np.broadcast_to(p, np.broadcast_shapes(np.shape(p), (len(self),)))
        places, rows = np.empty(p.shape, np.int64), np.arange(len(self))
        for own, levels in zip(
            places.reshape(-1, len(self)), p.reshape(-1, len(self)), strict=True
        ):
            own[:] = np.sum(self._below[:, 1:] < levels[:, None], axis=1)
        inside = np.maximum(self.probabilities[rows, places], 1e-300)
        share = np.clip((p - self._below[rows, places]) / inside, 1e-300, 1.0)
        edges, (low, high) = self.cells.edges, self.cells.tails
        start = edges[np.maximum(places - 1, 0)]
        found = start + share * self.cells.widths[places]
        found = np.where(places == 0, edges[0] + low * np.log(share), found)
        beyond = -high * np.log1p(-np.minimum(share, 1 - 1e-16))
        return np.where(places == len(edges), edges[-1] + beyond, found)

    def bounds(self, p: Float[np.ndarray, "p 1"]):
        """Give the quantiles of p twice."""
        found = self.quantile(p)
        return found, found

    def samples(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "samples n"]:
        """Draw targets of each row."""
        return self.quantile(rng.uniform(size=(n, len(self))))


def _apart(edges: Float[np.ndarray, " all"], least: float) -> Float[np.ndarray, " some"]:
    """Leave out edges that are too near to the one before."""
    kept: list[float] = []
    for edge in edges:
        if not kept or edge - kept[-1] > least:
            kept.append(float(edge))
    return np.array(kept)
