"""Shapes of noise in units of its deviation: the normal law, and a mixture of two scales."""

import math
from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, PRNGKeyArray

_SCALED, _KEPT = 0.75, 0.25


class AbstractNoiseLaw(eqx.Module):
    """The law of noise divided by its deviation, symmetric around zero."""

    @abstractmethod
    def log_density(self, residuals: Array, log_variance: Array) -> Array:
        """Compute the log density of residuals, whose log variance under the normal law is given."""

    @abstractmethod
    def cdf(self, z: Array) -> Array:
        """Compute the probability of values up to z."""

    @abstractmethod
    def variance(self) -> Float[Array, ""] | float:
        """Give the variance, which is one for the normal law."""

    @abstractmethod
    def sample(self, like: Array, *, key: PRNGKeyArray) -> Array:
        """Draw an array of the shape and type of another."""


class Normal(AbstractNoiseLaw):
    """The standard normal law.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods.noise_laws import Normal
        >>> float(Normal().cdf(jnp.zeros(())))
        0.5
    """

    def log_density(self, residuals, log_variance):  # noqa: D102
        squared = residuals**2 * jnp.exp(-log_variance)
        return -0.5 * (squared + log_variance + math.log(2 * math.pi))

    def cdf(self, z):  # noqa: D102
        return ndtr(z)

    def variance(self):  # noqa: D102
        return 1.0

    def sample(self, like, *, key):  # noqa: D102
        return jax.random.normal(key, like.shape, like.dtype)


class ScaleMixture(AbstractNoiseLaw):
    """Two normal laws: three quarters of the noise have another deviation, a quarter keeps it.

    A factor below one narrows what most rows are said to do; the quarter that stays speaks for rows far out, to which
    a law that is narrow as a whole would give no probability.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods.noise_laws import ScaleMixture
        >>> float(ScaleMixture(jnp.array(0.5)).variance())  # 3/4 * 1/4 + 1/4
        0.4375
    """

    factor: Float[Array, "..."]

    def log_density(self, residuals, log_variance):  # noqa: D102
        return jnp.logaddexp(
            math.log(_SCALED)
            + Normal().log_density(residuals, log_variance + 2 * jnp.log(self.factor)),
            math.log(_KEPT) + Normal().log_density(residuals, log_variance),
        )

    def cdf(self, z):  # noqa: D102
        return _SCALED * ndtr(z / self.factor) + _KEPT * ndtr(z)

    def variance(self):  # noqa: D102
        return _SCALED * self.factor**2 + _KEPT

    def sample(self, like, *, key):  # noqa: D102
        key_scale, key_noise = jax.random.split(key)
        scaled = jax.random.bernoulli(key_scale, _SCALED, like.shape)
        noise = Normal().sample(like, key=key_noise)
        return jnp.where(scaled, self.factor, 1.0).astype(like.dtype) * noise
