"""The predictive law of targets in their own units: transformed normal and Student laws, and mixtures of them."""

import dataclasses
import functools

import numpy as np
import scipy.special
from jaxtyping import Float, Int

from bochner.exact.transforms import AbstractTransform, Standardized

N_NODES_OF_MOMENTS = 48
_N_HALVINGS = 60
BEYOND = 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Law:
    """One law a row: `T(y) = location + scale * e`, with e standard normal or Student.

    Attributes:
        transform: T.
        location: of T(y), one a row.
        scale: of T(y), one a row.
        degrees: degrees of freedom of e; infinite for a normal law.
        epistemic: the share of the variance of T(y) that is of the function, one a row; the rest is noise.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.laws import Law
        >>> from bochner.exact.transforms import Standardized
        >>> law = Law(Standardized(10.0, 2.0), np.zeros(1), np.ones(1))
        >>> law.quantile(np.array([0.5])).tolist(), law.log_density(np.array([10.0])).round(3).tolist()
        ([10.0], [-1.612])
    """

    transform: AbstractTransform
    location: Float[np.ndarray, " n"]
    scale: Float[np.ndarray, " n"]
    degrees: float = np.inf
    epistemic: Float[np.ndarray, "..."] = dataclasses.field(default_factory=lambda: np.zeros(()))

    def at(self, index: Int[np.ndarray, " some"]) -> "Law":
        """Give the laws of some of the rows."""
        return dataclasses.replace(self, location=self.location[index], scale=self.scale[index])

    def log_density(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Compute the log density of one target a row."""
        t, slope = self.transform(y), self.transform.log_slope(y)
        possible = np.isfinite(t)
        z = (np.where(possible, t, 0.0) - self.location) / self.scale
        density = log_density(z, self.degrees) - np.log(self.scale) + np.where(possible, slope, 0.0)
        return np.where(possible, density, -np.inf)

    def cdf(self, y: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "... n"]:
        """Compute the probability of targets up to y."""
        z = (self.transform(y) - self.location) / self.scale
        if np.isinf(self.degrees):
            return scipy.special.ndtr(z)
        return scipy.special.stdtr(self.degrees, z)

    def quantile(self, p: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Compute the target with probability p below it, for p that broadcasts with rows."""
        return self.transform.inverse(self.location + self.scale * quantile(p, self.degrees))


def log_density(z: Float[np.ndarray, "..."], degrees: float) -> Float[np.ndarray, "..."]:
    """Compute the log density of a standard normal or Student variable."""
    if np.isinf(degrees):
        return -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
    half = (degrees + 1) / 2
    norm = scipy.special.gammaln(half) - scipy.special.gammaln(degrees / 2)
    return norm - 0.5 * np.log(degrees * np.pi) - half * np.log1p(z**2 / degrees)


def quantile(p: Float[np.ndarray, "..."], degrees: float) -> Float[np.ndarray, "..."]:
    """Compute a quantile of a standard normal or Student variable."""
    if np.isinf(degrees):
        return scipy.special.ndtri(p)
    return scipy.special.stdtrit(degrees, p)


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of laws, with the same weights in each row.

    Attributes:
        weights: of the laws; they add up to one.
        laws: the laws.
        extent: least and largest training target. Where a transform makes long tails, quadrature for the mean takes
            what lies more than their distance beyond them as lying there, since such tails may have no mean.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.laws import Law, Mixture
        >>> from bochner.exact.transforms import Standardized
        >>> at = [Law(Standardized(0.0, 1.0), np.full(1, mean), np.ones(1)) for mean in (-2.0, 2.0)]
        >>> both = Mixture(np.array([0.5, 0.5]), at, (-3.0, 3.0))
        >>> both.mean.tolist(), both.variance.tolist(), both.cdf(np.zeros(1)).tolist()
        ([0.0], [5.0], [0.5])
    """

    weights: Float[np.ndarray, " laws"]
    laws: list[Law]
    extent: tuple[float, float]

    @functools.cached_property
    def _moments(self) -> tuple[Float[np.ndarray, " n"], ...]:
        """Mean, epistemic and aleatoric variance."""
        of_laws = [moments(law, self.extent) for law in self.laws]
        mean = np.asarray(sum(w * m for w, (m, _) in zip(self.weights, of_laws, strict=True)))
        epistemic, aleatoric = np.zeros((2, *mean.shape))
        for w, law, (m, v) in zip(self.weights, self.laws, of_laws, strict=True):
            epistemic += w * (law.epistemic * v + (m - mean) ** 2)
            aleatoric += w * (1 - law.epistemic) * v
        return mean, np.asarray(epistemic), np.asarray(aleatoric)

    @property
    def mean(self) -> Float[np.ndarray, " n"]:
        """The mean of each row's target."""
        return self._moments[0]

    @property
    def variance(self) -> Float[np.ndarray, " n"]:
        """The variance of each row's target."""
        return self._moments[1] + self._moments[2]

    @property
    def epistemic(self) -> Float[np.ndarray, " n"]:
        """The part of the variance that more training rows would take away.

        It is the variance between the means of the laws, and of each law the share of its variance that is of the
        function. Where the target is transformed, that share is taken to be the same on both sides of the transform.
        """
        return self._moments[1]

    @property
    def aleatoric(self) -> Float[np.ndarray, " n"]:
        """The part of the variance that is noise: the rest."""
        return self._moments[2]

    def log_density(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Compute the log density of one target a row."""
        densities = np.stack([law.log_density(y) for law in self.laws], axis=1)
        return np.asarray(scipy.special.logsumexp(densities, b=self.weights, axis=1))

    def cdf(self, y: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "... n"]:
        """Compute the probability of targets up to y."""
        return np.asarray(
            sum(w * law.cdf(y) for w, law in zip(self.weights, self.laws, strict=True))
        )

    def quantiles(self, p) -> Float[np.ndarray, "n p"]:
        """Compute quantiles of each row by halving the interval between the least and largest of the laws'."""
        p = np.asarray(p, np.float64)[:, None]
        of_laws = np.stack([law.quantile(p) for law in self.laws])
        low, high = of_laws.min(axis=0), of_laws.max(axis=0)
        for _ in range(_N_HALVINGS if len(self.laws) > 1 else 0):
            middle = low / 2 + high / 2
            below = self.cdf(middle) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low / 2 + high / 2).T

    def samples(self, n_samples: int, seed: int = 0) -> Float[np.ndarray, "samples n"]:
        """Draw targets of each row, independent of one another."""
        rng = np.random.default_rng(seed)
        n = len(self.laws[0].location)
        which = rng.choice(len(self.laws), size=(n_samples, n), p=self.weights)
        p = rng.uniform(size=(n_samples, n))
        return np.asarray(np.choose(which, [law.quantile(p) for law in self.laws]))


def moments(
    law: Law, extent: tuple[float, float]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Compute mean and variance of the target, in its own units.

    Where a transform makes long tails, what lies beyond the extent of the training targets by more than its length
    counts as lying there, since such tails may have no mean.
    """
    if isinstance(law.transform, Standardized):
        widening = law.degrees / (law.degrees - 2) if np.isfinite(law.degrees) else 1.0
        variance = widening * (law.scale * law.transform.scale) ** 2
        return law.transform.inverse(law.location), variance
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES_OF_MOMENTS)
    y = law.quantile((0.5 + nodes / 2)[:, None])
    margin = BEYOND * (extent[1] - extent[0])
    y = np.clip(y, extent[0] - margin, extent[1] + margin)
    mean = weights / 2 @ y
    return mean, weights / 2 @ (y - mean) ** 2
