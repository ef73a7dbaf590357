"""Gaussian noise whose deviation depends on the input."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.likelihoods.base import AbstractRegressionLikelihood
from bochner.likelihoods.noise_laws import AbstractNoiseLaw, Normal

_FLOOR = 1e-3  # of the target's deviation, which is one after standardization
# A prior in which the noise varies like the mean itself lets it explain what the mean should (docs/recipes.md).
_SPREAD = 0.25


class HeteroscedasticGaussian(AbstractRegressionLikelihood):
    """The law `y ~ N(f, s^2)` with `s = 1e-3 + softplus(constant + g / 4)`, where g is a second function a target.

    The last layer gives all means first, then all `g`.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import HeteroscedasticGaussian
        >>> likelihood = HeteroscedasticGaussian.start(1, noise_variance=1.0)
        >>> mean, variance = likelihood.moments(jnp.zeros((1, 2)))
        >>> round(float(variance[0, 0]), 4)
        1.0
    """

    constant: Float[Array, "..."]
    law: AbstractNoiseLaw = Normal()
    location_scale: ClassVar[bool] = True
    gaussian_noise: ClassVar[bool] = True

    @classmethod
    def start(
        cls, n_targets: int, noise_variance: float = math.exp(-2.0)
    ) -> "HeteroscedasticGaussian":
        """Set the initial noise variance, the same everywhere."""
        above_floor = max(math.sqrt(noise_variance) - _FLOOR, _FLOOR)
        return cls(jnp.full((n_targets,), math.log(math.expm1(above_floor))))

    @classmethod
    def from_targets(cls, Y: np.ndarray, noise_variance: float) -> "HeteroscedasticGaussian":  # noqa: D102
        return cls.start(Y.shape[1], noise_variance)

    @staticmethod
    def n_functions(n_targets: int) -> int:  # noqa: D102
        return 2 * n_targets

    def _split(self, F: Array) -> tuple[Array, Array]:
        mean, g = jnp.split(F, 2, axis=1)
        return mean, _FLOOR + jax.nn.softplus(self.constant[None, :] + _SPREAD * g)

    def log_density(self, F, Y):  # noqa: D102
        mean, deviation = self._split(F)
        return self.law.log_density(Y - mean, 2 * jnp.log(deviation))

    def moments(self, F):  # noqa: D102
        mean, deviation = self._split(F)
        return mean, self.law.variance() * deviation**2

    def cdf(self, F, Y):  # noqa: D102
        mean, deviation = self._split(F)
        return self.law.cdf((Y - mean) / deviation)

    def sample(self, F, *, key: PRNGKeyArray):  # noqa: D102
        mean, deviation = self._split(F)
        return mean + deviation * self.law.sample(mean, key=key)
