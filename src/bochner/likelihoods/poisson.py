"""Counts."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaincc, gammaln
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.likelihoods.base import AbstractRegressionLikelihood


class Poisson(AbstractRegressionLikelihood):
    """The law `y ~ Poisson(exp(constant + f))`; the constant starts at the log of the mean count.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Poisson
        >>> mean, variance = Poisson.start(jnp.array([4.0])).moments(jnp.zeros((1, 1)))
        >>> round(float(mean[0, 0]), 4), round(float(variance[0, 0]), 4)
        (4.0, 4.0)
    """

    constant: Float[Array, "..."]
    discrete: ClassVar[bool] = True

    @classmethod
    def start(cls, mean_count: Float[Array, " targets"]) -> "Poisson":
        """Set the constant so that f = 0 predicts the mean count."""
        return cls(jnp.log(jnp.maximum(mean_count, 1e-3)))

    @classmethod
    def from_targets(cls, Y: np.ndarray, noise_variance: float) -> "Poisson":  # noqa: D102
        return cls.start(jnp.asarray(Y.mean(axis=0), jnp.float32))

    @staticmethod
    def n_functions(n_targets: int) -> int:  # noqa: D102
        return n_targets

    @staticmethod
    def check_targets(Y: np.ndarray) -> None:  # noqa: D102
        wrong = (Y < 0) | (np.round(Y) != Y)
        if wrong.any():
            row = int(np.argwhere(wrong)[0, 0])
            raise ValueError(
                "`y` must hold whole numbers of at least 0 for the Poisson likelihood; "
                f"got {Y[wrong][0]:g} in row {row}. Use likelihood='gaussian' for other numbers."
            )

    def _log_rate(self, F: Array) -> Array:
        return self.constant[None, :] + F

    def log_density(self, F, Y):  # noqa: D102
        log_rate = self._log_rate(F)
        return Y * log_rate - jnp.exp(log_rate) - gammaln(Y + 1)

    def moments(self, F):  # noqa: D102
        rate = jnp.exp(self._log_rate(F))
        return rate, rate

    def cdf(self, F, Y):  # noqa: D102
        whole = jnp.floor(Y)
        below = gammaincc(jnp.maximum(whole, 0.0) + 1, jnp.exp(self._log_rate(F)))
        return jnp.where(whole < 0, 0.0, below)

    def sample(self, F, *, key: PRNGKeyArray):  # noqa: D102
        return jax.random.poisson(key, jnp.exp(self._log_rate(F))).astype(F.dtype)
