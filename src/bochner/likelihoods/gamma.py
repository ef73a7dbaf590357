"""Positive targets whose deviation grows with their mean."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc, gammaln
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.likelihoods.base import AbstractRegressionLikelihood


class Gamma(AbstractRegressionLikelihood):
    """The law `y ~ Gamma` of mean `exp(constant + f)` and variance `exp(log_spread) mean^2`.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Gamma
        >>> mean, variance = Gamma.start(jnp.array([4.0]), jnp.array([2.0])).moments(jnp.zeros((1, 1)))
        >>> round(float(mean[0, 0]), 4), round(float(variance[0, 0]), 4)
        (4.0, 2.0)
    """

    constant: Float[Array, "..."]
    log_spread: Float[Array, "..."]
    location_scale: ClassVar[bool] = False

    @classmethod
    def start(cls, mean: Float[Array, " targets"], variance: Float[Array, " targets"]) -> "Gamma":
        """Set the constant and the spread so that f = 0 predicts such targets."""
        return cls(jnp.log(mean), jnp.log(jnp.maximum(variance / mean**2, 1e-6)))

    @classmethod
    def from_targets(cls, Y: np.ndarray, noise_variance: float) -> "Gamma":  # noqa: D102
        mean, variance = (jnp.asarray(v, jnp.float32) for v in (Y.mean(axis=0), Y.var(axis=0)))
        return cls.start(mean, variance)

    @staticmethod
    def n_functions(n_targets: int) -> int:  # noqa: D102
        return n_targets

    @staticmethod
    def check_targets(Y: np.ndarray) -> None:  # noqa: D102
        wrong = ~(Y > 0)
        if wrong.any():
            row = int(np.argwhere(wrong)[0, 0])
            raise ValueError(
                f"`y` must be above 0 for the Gamma likelihood; got {Y[wrong][0]:g} in row {row}. "
                "Use likelihood='gaussian' for other numbers."
            )

    @property
    def _shape(self) -> Array:
        return jnp.exp(-self.log_spread)[None, :]

    def _rate(self, F: Array) -> Array:
        return jnp.exp(-(self.constant + self.log_spread)[None, :] - F)

    def log_density(self, F, Y):  # noqa: D102
        shape, rate = self._shape, self._rate(F)
        positive = jnp.where(Y > 0, Y, 1.0)
        density = shape * jnp.log(rate) - gammaln(shape) + (shape - 1) * jnp.log(positive)
        return jnp.where(Y > 0, density - rate * positive, -jnp.inf)

    def moments(self, F):  # noqa: D102
        mean = jnp.exp(self.constant[None, :] + F)
        return mean, jnp.exp(self.log_spread)[None, :] * mean**2

    def cdf(self, F, Y):  # noqa: D102
        shape = jnp.broadcast_to(self._shape, F.shape)
        return gammainc(shape, self._rate(F) * jnp.maximum(Y, 0.0))

    def sample(self, F, *, key: PRNGKeyArray):  # noqa: D102
        shape = jnp.broadcast_to(self._shape, F.shape)
        return jax.random.gamma(key, shape, F.shape, F.dtype) / self._rate(F)
