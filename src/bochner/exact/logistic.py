"""Log densities over cells as a Gaussian process, at their mode: logistic Gaussian processes on features.

The probability of cell c at row x is `softmax(log q + a(x))_c`, with q how frequent cells are, and the covariance of
`a_c(x)` and `a_c'(x')` is `k(x, x') k_y(c, c')` (Tokdar, Zhu and Ghosh, 2010). With features `k(x, x') = f(x)' f(x')`
and `k_y = S' S` it is `a(x) = f(x)' W S`, W standard normal. The log posterior of W is concave.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special
from jaxtyping import Float, Int

from bochner.exact.deadlines import NEVER, is_past
from bochner.exact.linear_algebra import factorize, half_solve

_SHARE_OF_VARIANCE = 3e-3  # directions over cells with less of it are left out
_PSEUDO_ROWS = 0.5
N_STEPS = 40
"""Of L-BFGS, at most."""
_BLOCK = 4096
_KEPT_PAIRS = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Shapes:
    """The prior of log densities over cells.

    Attributes:
        frequencies: q, of each cell.
        directions: S, the largest directions of the prior.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.logistic import Shapes
        >>> shapes = Shapes.of(np.array([10.0, 10.0, 10.0]), amplitude=2.0, width=0.5)
        >>> shapes.frequencies.round(3).tolist(), shapes.directions.shape
        ([0.333, 0.333, 0.333], (2, 3))
        >>> bool(np.allclose(shapes.directions @ shapes.frequencies, 0))
        True
    """

    frequencies: Float[np.ndarray, " cells"]
    directions: Float[np.ndarray, "directions cells"]

    @classmethod
    def of(cls, counts: Float[np.ndarray, " cells"], amplitude: float, width: float) -> "Shapes":
        """Let log densities vary so much, smoothly over such a part of the targets, less their mean over cells."""
        q = (counts + _PSEUDO_ROWS) / np.sum(counts + _PSEUDO_ROWS)
        middles = np.cumsum(q) - q / 2
        K = np.exp(-0.5 * ((middles[:, None] - middles) / width) ** 2)
        K = K - q @ K - (K @ q)[:, None] + q @ K @ q
        values, vectors = np.linalg.eigh(K)
        kept = np.flatnonzero(values > _SHARE_OF_VARIANCE * values[-1])[::-1]
        return cls(q, amplitude * np.sqrt(values[kept])[:, None] * vectors[:, kept].T)

    @property
    def curvatures(self) -> Float[np.ndarray, " directions"]:
        """The curvature of the log-likelihood of a row along each direction, where cells are as frequent as ever."""
        return (self.directions**2) @ self.frequencies

    def probabilities(
        self, functions: Float[np.ndarray, "n directions"]
    ) -> Float[np.ndarray, "n cells"]:
        """Compute the probability of each cell, given the values `f(x)' W`."""
        logits = functions @ self.directions + np.log(self.frequencies)
        return scipy.special.softmax(logits, axis=1)


def gram(
    features: Float[np.ndarray, "n m"], counts: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "m m"]:
    """Sum up products of features over rows of given weights."""
    total = np.zeros((features.shape[1],) * 2)
    for start in range(0, len(features), _BLOCK):
        block = slice(start, start + _BLOCK)
        weighted = features[block] * np.sqrt(counts[block, None], dtype=features.dtype)
        total += weighted.T @ weighted
    return total


def preconditioners(
    gram: Float[np.ndarray, "m m"], shapes: Shapes
) -> list[Float[np.ndarray, "m m"]]:
    """Compute lower factors of about the curvature of the log posterior along each direction."""
    identity = np.eye(len(gram))
    return [factorize(curvature * gram + identity) for curvature in shapes.curvatures]


def most_probable(
    features: Float[np.ndarray, "n m"],
    places: Int[np.ndarray, " n"],
    counts: Float[np.ndarray, " n"],
    shapes: Shapes,
    factors: Sequence[Float[np.ndarray, "m m"]],
    *,
    start: Float[np.ndarray, "m directions"] | None = None,
    n_steps: int = N_STEPS,
    until: float = NEVER,
) -> Float[np.ndarray, "m directions"]:
    """Find the most probable W, by L-BFGS on `L' W` with L the preconditioners.

    Args:
        features: of each row.
        places: the cell of each row's target.
        counts: weights of the rows; those of weight zero are not seen.
        shapes: the prior.
        factors: the preconditioners.
        start: of W; zero where None.
        n_steps: at most.
        until: the deadline, on the clock of `time.monotonic`.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.logistic import Shapes, gram, most_probable, preconditioners
        >>> features, places = np.repeat(np.eye(2), 50, axis=0), np.repeat([0, 1], 50)
        >>> counts, shapes = np.ones(100), Shapes.of(np.array([50.0, 50.0]), 3.0, 0.1)
        >>> factors = preconditioners(gram(features, counts), shapes)
        >>> W = most_probable(features, places, counts, shapes, factors)
        >>> shapes.probabilities(np.eye(2) @ W).round(1).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    dtype = features.dtype
    directions = shapes.directions.astype(dtype)
    offsets = np.log(shapes.frequencies).astype(dtype)
    rows, weights = np.arange(len(places)), counts.astype(dtype)[:, None]
    total = float(np.sum(counts))
    shape = features.shape[1], len(directions)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = _solved(factors, flat.reshape(shape), transposed=True)
        logits = (features @ W.astype(dtype)) @ directions + offsets
        logits -= np.max(logits, axis=1, keepdims=True)
        own = logits[rows, places].astype(np.float64)
        p = np.exp(logits, out=logits)
        norms = np.sum(p, axis=1, keepdims=True)
        value = counts @ (own - np.log(norms[:, 0].astype(np.float64))) - 0.5 * np.sum(W**2)
        p /= norms
        p[rows, places] -= 1
        p *= weights
        slope = (features.T @ (p @ directions.T)).astype(np.float64) + W
        return -float(value) / total, _solved(factors, slope, transposed=False).ravel() / total

    def stop_in_time(_: np.ndarray) -> None:
        if is_past(until):
            raise StopIteration

    first = np.zeros(shape) if start is None else _times(factors, start)
    found = scipy.optimize.minimize(
        loss,
        first.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=stop_in_time,
        options={"maxiter": n_steps, "maxcor": _KEPT_PAIRS, "ftol": 1e-6},
    )
    return _solved(factors, found.x.reshape(shape), transposed=True)


def _solved(factors, V: np.ndarray, *, transposed: bool) -> np.ndarray:
    """Solve with each column's own factor, or its transpose."""
    solved = [
        scipy.linalg.solve_triangular(L, v, lower=True, trans=1, check_finite=False)
        if transposed
        else half_solve(L, v)
        for L, v in zip(factors, V.T, strict=True)
    ]
    return np.stack(solved, axis=1)


def _times(factors, W: np.ndarray) -> np.ndarray:
    return np.stack([L.T @ w for L, w in zip(factors, W.T, strict=True)], axis=1)
