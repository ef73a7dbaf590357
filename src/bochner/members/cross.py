"""Intervals from fits that have each left a fold out: everything was learned anew without it."""

import dataclasses
import math

import numpy as np
from jaxtyping import Float, Int

_MOST_ENTRIES = 20_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class LeftOutScores:
    """What fits without a fold said of the rows in it.

    Mean and deviation by the fit without fold k are m_k and d_k. With `s_i = |y_i - m_k(x_i)| / d_k(x_i)` for a row i
    of that fold, the interval at x reaches from the floor(a (n + 1))-th smallest of `m_k(x) - s_i d_k(x)` to the
    ceil((1 - a) (n + 1))-th smallest of `m_k(x) + s_i d_k(x)`: CV+ of Barber et al. (2021), with deviations.

    Attributes:
        scores: of each row and target.
        fold: of each row.

    Example:
        >>> import numpy as np
        >>> from bochner.members.cross import LeftOutScores
        >>> left_out = LeftOutScores(np.ones((9, 1)), np.arange(9) % 3)
        >>> left_out.interval(np.zeros((3, 1, 1)), np.ones((3, 1, 1)), coverage=0.9).tolist()
        [[[-1.0, 1.0]]]
    """

    scores: Float[np.ndarray, "n targets"]
    fold: Int[np.ndarray, " n"]

    def interval(
        self,
        means: Float[np.ndarray, "folds m targets"],
        deviations: Float[np.ndarray, "folds m targets"],
        coverage: float,
    ) -> Float[np.ndarray, "m targets 2"]:
        """Compute intervals from what each fit says of new rows; infinite where training rows are too few."""
        n, (_, m, n_targets) = len(self.fold), means.shape
        rank = math.ceil(round(coverage * (n + 1), 9))
        if rank > n:
            return np.full((m, n_targets, 2), np.inf) * [-1.0, 1.0]
        found = np.empty((m, n_targets, 2))
        at_once = max(1, _MOST_ENTRIES // n)
        for start in range(0, m, at_once):
            own = slice(start, start + at_once)
            for target in range(n_targets):
                mean = means[self.fold, own, target]
                reach = self.scores[:, target, None] * deviations[self.fold, own, target]
                found[own, target, 0] = -_smallest(reach - mean, rank)
                found[own, target, 1] = _smallest(mean + reach, rank)
        return found


def _smallest(values: Float[np.ndarray, "n m"], rank: int) -> Float[np.ndarray, " m"]:
    return np.partition(values, rank - 1, axis=0)[rank - 1]
