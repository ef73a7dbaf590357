"""Student t noise, robust to outliers."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, gammaln
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.likelihoods.base import AbstractRegressionLikelihood


class StudentT(AbstractRegressionLikelihood):
    """The law `y = f + scale * t` with t of `nu = 2 + softplus(raw_nu)` degrees of freedom, about 4 at first.

    More than 2 degrees keep the variance finite, so that predictive moments exist.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import StudentT
        >>> round(float(StudentT.start(1).nu[0]), 4)
        4.0
    """

    log_scale: Float[Array, "..."]
    raw_nu: Float[Array, "..."]
    location_scale: ClassVar[bool] = True

    @classmethod
    def start(cls, n_targets: int, noise_variance: float = math.exp(-2.0)) -> "StudentT":
        """Set the initial noise variance; the scale is such that nu = 4 gives it."""
        log_scale = 0.5 * math.log(noise_variance / 2.0)
        return cls(
            log_scale=jnp.full((n_targets,), log_scale),
            raw_nu=jnp.full((n_targets,), math.log(math.expm1(2.0))),
        )

    @property
    def nu(self) -> Float[Array, "..."]:
        """Degrees of freedom, one a target."""
        return 2.0 + jax.nn.softplus(self.raw_nu)

    @classmethod
    def from_targets(cls, Y: np.ndarray, noise_variance: float) -> "StudentT":  # noqa: D102
        return cls.start(Y.shape[1], noise_variance)

    @staticmethod
    def n_functions(n_targets: int) -> int:  # noqa: D102
        return n_targets

    def _standardized(self, F: Array, Y: Array) -> Array:
        return (Y - F) * jnp.exp(-self.log_scale)[None, :]

    def log_density(self, F, Y):  # noqa: D102
        nu = self.nu
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * jnp.log(nu * math.pi)
        tail = 0.5 * (nu + 1)[None, :] * jnp.log1p(self._standardized(F, Y) ** 2 / nu[None, :])
        return (constant - self.log_scale)[None, :] - tail

    def moments(self, F):  # noqa: D102
        variance = jnp.exp(2 * self.log_scale) * self.nu / (self.nu - 2)
        return F, jnp.broadcast_to(variance[None, :], F.shape)

    def cdf(self, F, Y):  # noqa: D102
        t = self._standardized(F, Y)
        nu = jnp.broadcast_to(self.nu[None, :], t.shape)
        half, square = jnp.full_like(t, 0.5), t**2
        # The probability within |t| near the center and that beyond it in the tails: each where it keeps its digits.
        central = square < nu
        probability = betainc(
            jnp.where(central, half, nu / 2),
            jnp.where(central, nu / 2, half),
            jnp.where(central, square, nu) / (nu + square),
        )
        tail = 0.5 * probability
        return jnp.where(central, 0.5 + jnp.sign(t) * tail, jnp.where(t > 0, 1 - tail, tail))

    def sample(self, F, *, key: PRNGKeyArray):  # noqa: D102
        nu = jnp.broadcast_to(self.nu[None, :], F.shape)
        return F + jnp.exp(self.log_scale)[None, :] * jax.random.t(key, nu, F.shape, F.dtype)
