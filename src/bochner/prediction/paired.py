"""Two models on the same rows: how much their losses differ, and how sure that is."""

import dataclasses

import numpy as np
from jaxtyping import Float

_ERRORS_BEYOND_CHANCE = 2.0


@dataclasses.dataclass(frozen=True)
class Difference:
    """A loss of two models, and its difference with the standard error of that over rows.

    Attributes:
        first: loss of the first model.
        second: of the second.
        standard_error: of `first - second`; NaN where there is but one row.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.paired import Difference
        >>> found = Difference.of_means(np.array([1.0, 3.0, 5.0]), np.array([2.0, 4.0, 6.0]))
        >>> found.difference, found.standard_error, found.better
        (-1.0, 0.0, 0)
    """

    first: float
    second: float
    standard_error: float

    @classmethod
    def of_means(
        cls, first: Float[np.ndarray, " n"], second: Float[np.ndarray, " n"]
    ) -> "Difference":
        """Compare the means of losses of rows."""
        return cls(float(np.mean(first)), float(np.mean(second)), _error(first - second))

    @classmethod
    def of_roots(
        cls, first: Float[np.ndarray, " n"], second: Float[np.ndarray, " n"]
    ) -> "Difference":
        """Compare the roots of the means of squared errors of rows; the standard error is that to first order."""
        own, other = float(np.sqrt(np.mean(first))), float(np.sqrt(np.mean(second)))
        slopes = [1 / (2 * root) if root > 0 else 0.0 for root in (own, other)]
        return cls(own, other, _error(first * slopes[0] - second * slopes[1]))

    @property
    def difference(self) -> float:
        """By how much the first model loses more."""
        return self.first - self.second

    @property
    def better(self) -> int | None:
        """Which model loses less by more than two standard errors, 0 or 1; None where neither does."""
        if not abs(self.difference) > _ERRORS_BEYOND_CHANCE * self.standard_error:
            return None
        return 0 if self.difference < 0 else 1


def _error(differences: Float[np.ndarray, " n"]) -> float:
    n = len(differences)
    with np.errstate(over="ignore", invalid="ignore"):  # then it is infinite, or not known
        return float(np.std(differences, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
