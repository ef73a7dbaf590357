"""Predictive laws of single targets, and their mixture: the law of a stack of members."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import scipy.special
from jaxtyping import Float

from bochner.exact.laws import Law, moments

_N_HALVINGS = 60
_ENTRIES_AT_ONCE = 4_000_000


class AbstractLaw(Protocol):
    """The law of the target at each of some rows, in its own units."""

    def __len__(self) -> int:
        """Count the rows."""
        ...

    def moments(
        self,
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Compute mean, epistemic and aleatoric variance."""
        ...

    def log_density(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Compute the log density of one target a row."""
        ...

    def cdf(self, y: Float[np.ndarray, "p n"]) -> Float[np.ndarray, "p n"]:
        """Compute the probability of targets up to y."""
        ...

    def bounds(
        self, p: Float[np.ndarray, "p 1"]
    ) -> tuple[Float[np.ndarray, "p n"], Float[np.ndarray, "p n"]]:
        """Give two values between which the quantiles of p are."""
        ...

    def samples(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "samples n"]:
        """Draw targets of each row."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianDraws:
    """A mixture of one Gaussian for each function drawn, all with the same weight.

    Attributes:
        means: of the target given each function.
        deviations: of the noise given each function.

    Example:
        >>> import numpy as np
        >>> from bochner.members.laws import GaussianDraws
        >>> law = GaussianDraws(np.array([[1.0], [3.0]]), np.full((2, 1), 0.5))
        >>> [part.tolist() for part in law.moments()]
        [[2.0], [1.0], [0.25]]
    """

    means: Float[np.ndarray, "draws n"]
    deviations: Float[np.ndarray, "draws n"]

    def __len__(self) -> int:
        """Count the rows."""
        return self.means.shape[1]

    def moments(self):
        """Compute mean, epistemic and aleatoric variance."""
        return self.means.mean(axis=0), self.means.var(axis=0), np.mean(self.deviations**2, axis=0)

    def log_density(self, y):
        """Compute the log density of one target a row."""
        z = (y - self.means) / self.deviations
        densities = -0.5 * z**2 - np.log(self.deviations) - 0.5 * np.log(2 * np.pi)
        return scipy.special.logsumexp(densities, axis=0) - np.log(len(self.means))

    def cdf(self, y):
        """Compute the probability of targets up to y."""
        total = np.zeros(y.shape)
        at_once = max(1, _ENTRIES_AT_ONCE // max(y.size, 1))
        for start in range(0, len(self.means), at_once):
            part = slice(start, start + at_once)
            z = (y[..., None, :] - self.means[part]) / self.deviations[part]
            total += scipy.special.ndtr(z).sum(axis=-2)
        return total / len(self.means)

    def bounds(self, p):
        """Give two values between which the quantiles of p are."""
        z = scipy.special.ndtri(p)
        low, high = np.full((2, len(p), len(self)), np.nan)
        for row, level in enumerate(z[:, 0]):
            at = self.means + level * self.deviations
            low[row], high[row] = at.min(axis=0), at.max(axis=0)
        return low, high

    def samples(self, n, rng):
        """Draw targets of each row; a sample is of one function in all rows."""
        drawn = rng.integers(len(self.means), size=n)
        noise = rng.standard_normal((n, len(self)))
        return self.means[drawn] + self.deviations[drawn] * noise


@dataclasses.dataclass(frozen=True, eq=False)
class LawInRows:
    """The law of a model in the space of rows.

    Attributes:
        law: of the target.
        extent: least and largest training target, beyond which long tails count for the mean in part only.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.laws import Law
        >>> from bochner.exact.transforms import Standardized
        >>> from bochner.members.laws import LawInRows
        >>> law = LawInRows(Law(Standardized(10.0, 2.0), np.zeros(1), np.ones(1)), (0.0, 20.0))
        >>> [part.tolist() for part in law.moments()]
        [[10.0], [0.0], [4.0]]
    """

    law: Law
    extent: tuple[float, float]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.law.location)

    def moments(self):
        """Compute mean, epistemic and aleatoric variance.

        Where the target is transformed, the function's share of the variance is taken to be the same on both sides of
        the transform.
        """
        mean, variance = moments(self.law, self.extent)
        return mean, self.law.epistemic * variance, (1 - self.law.epistemic) * variance

    def log_density(self, y):
        """Compute the log density of one target a row."""
        return self.law.log_density(y)

    def cdf(self, y):
        """Compute the probability of targets up to y."""
        return self.law.cdf(y)

    def bounds(self, p):
        """Give the quantiles of p twice."""
        found = self.law.quantile(p)
        return found, found

    def samples(self, n, rng):
        """Draw targets of each row."""
        return self.law.quantile(rng.uniform(size=(n, len(self))))


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of laws, with the same weights in each row.

    Attributes:
        weights: of the laws; they add up to one.
        laws: of the members.

    Example:
        >>> import numpy as np
        >>> from bochner.members.laws import GaussianDraws, Mixture
        >>> at = [GaussianDraws(np.full((1, 1), mean), np.ones((1, 1))) for mean in (-2.0, 2.0)]
        >>> both = Mixture(np.array([0.5, 0.5]), at)
        >>> [part.tolist() for part in both.moments()], both.quantiles([0.5]).round(6).tolist()
        ([[0.0], [4.0], [1.0]], [[-0.0]])
    """

    weights: Float[np.ndarray, " laws"]
    laws: Sequence[AbstractLaw]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.laws[0])

    @functools.cached_property
    def _moments(self):
        of_laws = [law.moments() for law in self.laws]
        means, epistemic, aleatoric = (np.stack(part) for part in zip(*of_laws, strict=True))
        mean = self.weights @ means
        # That members differ is uncertainty about the function.
        return (
            mean,
            self.weights @ (epistemic + (means - mean) ** 2),
            self.weights @ aleatoric,
        )

    def moments(self):
        """Compute mean, epistemic and aleatoric variance."""
        return self._moments

    def log_density(self, y):
        """Compute the log density of one target a row."""
        densities = np.stack([law.log_density(y) for law in self.laws])
        return np.asarray(scipy.special.logsumexp(densities, b=self.weights[:, None], axis=0))

    def cdf(self, y):
        """Compute the probability of targets up to y."""
        return np.sum(
            [w * law.cdf(y) for w, law in zip(self.weights, self.laws, strict=True)], axis=0
        )

    def bounds(self, p):
        """Give two values between which the quantiles of p are."""
        found = [law.bounds(p) for law in self.laws]
        low, high = (np.stack(part) for part in zip(*found, strict=True))
        return low.min(axis=0), high.max(axis=0)

    def quantiles(self, p) -> Float[np.ndarray, "n p"]:
        """Compute quantiles of each row by halving the interval that bounds them."""
        p = np.asarray(p, np.float64)[:, None]
        low, high = self.bounds(p)
        for _ in range(_N_HALVINGS):
            middle = low / 2 + high / 2
            if np.all((middle <= low) | (middle >= high)):
                break
            below = self.cdf(middle) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low / 2 + high / 2).T

    def samples(self, n, rng):
        """Draw targets of each row; a sample is of one member in all rows."""
        counts = rng.multinomial(n, self.weights)
        drawn = [law.samples(c, rng) for law, c in zip(self.laws, counts, strict=True) if c]
        return rng.permutation(np.concatenate(drawn))
