"""Counts that vary more than Poisson ones."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, gammaln
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.likelihoods.base import AbstractRegressionLikelihood
from bochner.likelihoods.poisson import Poisson


class NegativeBinomial(AbstractRegressionLikelihood):
    """Poisson counts whose rate is `exp(constant + f)` times a Gamma variable of mean 1 and variance `exp(log_spread)`.

    Its variance is `mean + exp(log_spread) mean^2`. The constant starts at the log of the mean count, the spread at
    what the variance of counts calls for.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import NegativeBinomial
        >>> likelihood = NegativeBinomial.start(jnp.array([4.0]), jnp.array([12.0]))
        >>> mean, variance = likelihood.moments(jnp.zeros((1, 1)))
        >>> round(float(mean[0, 0]), 4), round(float(variance[0, 0]), 4)
        (4.0, 12.0)
    """

    constant: Float[Array, "..."]
    log_spread: Float[Array, "..."]
    discrete: ClassVar[bool] = True

    @classmethod
    def start(
        cls, mean_count: Float[Array, " targets"], variance: Float[Array, " targets"]
    ) -> "NegativeBinomial":
        """Set the constant and the spread so that f = 0 predicts such counts."""
        mean = jnp.maximum(mean_count, 1e-3)
        return cls(jnp.log(mean), jnp.log(jnp.maximum((variance - mean) / mean**2, 1e-2)))

    @classmethod
    def from_targets(cls, Y: np.ndarray, noise_variance: float) -> "NegativeBinomial":  # noqa: D102
        mean, variance = (jnp.asarray(v, jnp.float32) for v in (Y.mean(axis=0), Y.var(axis=0)))
        return cls.start(mean, variance)

    @staticmethod
    def n_functions(n_targets: int) -> int:  # noqa: D102
        return n_targets

    @staticmethod
    def check_targets(Y: np.ndarray) -> None:  # noqa: D102
        Poisson.check_targets(Y)

    @property
    def _shape(self) -> Array:
        return jnp.exp(-self.log_spread)[None, :]

    def _mean(self, F: Array) -> Array:
        return jnp.exp(self.constant[None, :] + F)

    def log_density(self, F, Y):  # noqa: D102
        shape, log_odds = self._shape, self.constant[None, :] + F + self.log_spread[None, :]
        # log_odds are of one more event against the end: mean / shape.
        norm = gammaln(Y + shape) - gammaln(shape) - gammaln(Y + 1)
        return norm - shape * jax.nn.softplus(log_odds) - Y * jax.nn.softplus(-log_odds)

    def moments(self, F):  # noqa: D102
        mean = self._mean(F)
        return mean, mean + jnp.exp(self.log_spread)[None, :] * mean**2

    def cdf(self, F, Y):  # noqa: D102
        whole, shape = jnp.floor(Y), jnp.broadcast_to(self._shape, F.shape)
        below = betainc(shape, jnp.maximum(whole, 0.0) + 1, shape / (shape + self._mean(F)))
        return jnp.where(whole < 0, 0.0, below)

    def sample(self, F, *, key: PRNGKeyArray):  # noqa: D102
        key_rate, key_count = jax.random.split(key)
        shape = jnp.broadcast_to(self._shape, F.shape)
        rate = self._mean(F) * jax.random.gamma(key_rate, shape, F.shape, F.dtype) / shape
        return jax.random.poisson(key_count, rate).astype(F.dtype)
