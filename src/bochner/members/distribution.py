"""The predictive distribution of each of some rows, as one value."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from bochner.fitting.config import check_whole_number
from bochner.members.laws import Mixture
from bochner.members.whole_numbers import Rounded


@dataclasses.dataclass(frozen=True, eq=False)
class PredictiveDistribution:
    """The law of one target at each of n rows, noise included, in the units of the target.

    Attributes:
        law: the mixture of what members say, rounded where targets are whole numbers.
        seed: of samples, where none is given.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor
        >>> x = np.linspace(0, 6, 50)[:, None]
        >>> model = DeepGPRegressor(random_state=0).fit(x, np.sin(x[:, 0]))
        >>> found = model.predict_dist([[1.0], [2.0]])
        >>> bool(abs(found.mean - np.sin([1.0, 2.0])).max() < 0.03)
        True
        >>> found.ppf([0.1, 0.9]).shape, found.cdf(found.mean).shape
        ((2, 2), (2,))
    """

    law: Mixture | Rounded
    seed: int

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.law)

    def __repr__(self) -> str:
        return f"PredictiveDistribution of {len(self):,} rows"

    @property
    def mean(self) -> Float[np.ndarray, " n"]:
        """The mean of each row."""
        return self.law.moments()[0]

    @property
    def variance(self) -> Float[np.ndarray, " n"]:
        """The variance of each row: of the function and of the noise."""
        _, epistemic, aleatoric = self.law.moments()
        return epistemic + aleatoric

    @property
    def std(self) -> Float[np.ndarray, " n"]:
        """The standard deviation of each row."""
        return np.sqrt(self.variance)

    def cdf(self, y: Any) -> np.ndarray:
        """Compute the probability of targets up to y.

        Args:
            y: a number for all rows, one for each, or a row of several for each.

        Returns:
            In the shape of `y`, with an entry for each row where that is a number.
        """
        points = self._points(y)
        return _as_given(np.asarray(self.law.cdf(points)), y)

    def log_prob(self, y: Any) -> np.ndarray:
        """Compute the log density at y.

        Args:
            y: a number for all rows, one for each, or a row of several for each.

        Returns:
            In the shape of `y`, with an entry for each row where that is a number.
        """
        points = self._points(y)
        return _as_given(np.stack([self.law.log_density(one) for one in points]), y)

    def ppf(self, q: Any) -> np.ndarray:
        """Compute quantiles of each row.

        Args:
            q: a level between 0 and 1, or several, which are along the last axis then.

        Returns:
            `(n_rows,)` of one level, `(n_rows, n_levels)` of several.
        """
        levels = np.asarray(q, np.float64)
        if levels.ndim > 1 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError(
                f"`q` must be one or several levels strictly between 0 and 1; got {q!r}."
            )
        found = self.law.quantiles(np.atleast_1d(levels))
        return found[:, 0] if levels.ndim == 0 else found

    def sample(self, n_samples: int = 1, random_state: int | None = None) -> np.ndarray:
        """Draw targets of each row, samples along the last axis.

        Args:
            n_samples: draws for each row.
            random_state: seed; None takes the fitted one.

        Returns:
            `(n_rows, n_samples)`.
        """
        check_whole_number("n_samples", n_samples)
        rng = np.random.default_rng(self.seed if random_state is None else random_state)
        return self.law.samples(n_samples, rng).T

    def _points(self, y: Any) -> Float[np.ndarray, "p n"]:
        values, n = np.asarray(y, np.float64), len(self)
        if values.ndim == 0:
            return np.full((1, n), float(values))
        if values.ndim > 2 or len(values) != n:
            raise ValueError(
                f"`y` must be a number, or have an entry for each of the {n} rows; got shape {values.shape}."
            )
        return values[None] if values.ndim == 1 else values.T


def _as_given(found: Float[np.ndarray, "p n"], y: Any) -> np.ndarray:
    """Give a value for each row, or a row of values where y had several for each."""
    return found.T if np.ndim(y) == 2 else found[0]
