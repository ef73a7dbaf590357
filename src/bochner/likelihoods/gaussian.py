"""Gaussian noise of constant variance."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.likelihoods.base import AbstractRegressionLikelihood


def normal_log_density(Y: Array, mean: Array, log_variance: Array) -> Array:
    """Compute the log density of `N(mean, exp(log_variance))` at Y."""
    squared = (Y - mean) ** 2 * jnp.exp(-log_variance)
    return -0.5 * (squared + log_variance + math.log(2 * math.pi))


class Gaussian(AbstractRegressionLikelihood):
    """The law `y = f + noise` with `noise ~ N(0, exp(log_noise_variance))`, one variance a target.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Gaussian
        >>> likelihood = Gaussian.start(1, noise_variance=1.0)
        >>> round(float(likelihood.log_prob(jnp.zeros((1, 1)), jnp.zeros((1, 1)))[0]), 4)
        -0.9189
    """

    log_noise_variance: Float[Array, "..."]
    location_scale: ClassVar[bool] = True
    gaussian_noise: ClassVar[bool] = True

    @classmethod
    def start(cls, n_targets: int, noise_variance: float = math.exp(-2.0)) -> "Gaussian":
        """Set the initial noise variance."""
        return cls(jnp.full((n_targets,), math.log(noise_variance)))

    @classmethod
    def from_targets(cls, Y: np.ndarray, noise_variance: float) -> "Gaussian":  # noqa: D102
        return cls.start(Y.shape[1], noise_variance)

    @staticmethod
    def n_functions(n_targets: int) -> int:  # noqa: D102
        return n_targets

    def log_density(self, F, Y):  # noqa: D102
        return normal_log_density(Y, F, self.log_noise_variance[None, :])

    def moments(self, F):  # noqa: D102
        return F, jnp.broadcast_to(jnp.exp(self.log_noise_variance)[None, :], F.shape)

    def cdf(self, F, Y):  # noqa: D102
        return ndtr((Y - F) * jnp.exp(-0.5 * self.log_noise_variance)[None, :])

    def sample(self, F, *, key: PRNGKeyArray):  # noqa: D102
        noise = jax.random.normal(key, F.shape, F.dtype)
        return F + jnp.exp(0.5 * self.log_noise_variance)[None, :] * noise
