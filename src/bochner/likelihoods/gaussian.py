"""Gaussian noise of constant variance."""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.likelihoods.base import AbstractRegressionLikelihood
from bochner.likelihoods.noise_laws import AbstractNoiseLaw, Normal


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
    law: AbstractNoiseLaw = Normal()
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
        return self.law.log_density(Y - F, self.log_noise_variance[None, :])

    def moments(self, F):  # noqa: D102
        variance = self.law.variance() * jnp.exp(self.log_noise_variance)
        return F, jnp.broadcast_to(variance[None, :], F.shape)

    def cdf(self, F, Y):  # noqa: D102
        return self.law.cdf((Y - F) * jnp.exp(-0.5 * self.log_noise_variance)[None, :])

    def sample(self, F, *, key: PRNGKeyArray):  # noqa: D102
        noise = self.law.sample(F, key=key)
        return F + jnp.exp(0.5 * self.log_noise_variance)[None, :] * noise
