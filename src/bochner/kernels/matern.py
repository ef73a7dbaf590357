"""The Matern covariances of smoothness 1/2, 3/2 and 5/2."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.kernels.base import AbstractKernel, squared_distance
from bochner.ops import fourier_features, sincos


class Matern(AbstractKernel):
    r"""The covariance `variance * P(s) exp(-s)` with `s = sqrt(2 nu) ||(x - x') / lengthscale||`.

    P is 1 for smoothness nu = 1/2, `1 + s` for 3/2, and `1 + s + s^2 / 3` for 5/2.

    A frequency follows a multivariate Student t law with 2 nu degrees of freedom: a Gaussian vector times one
    random scale `sqrt(nu / g)`, `g ~ Gamma(nu)`, shared by all its coordinates. A scale for each coordinate would give
    another covariance in more than one dimension.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.kernels import Matern
        >>> kernel = Matern(jnp.zeros(()), jnp.zeros(()), smoothness=0.5)
        >>> x = jnp.array([[0.0], [1.0]])
        >>> round(float(kernel.covariance(x, x)[0, 1]), 4)  # exp(-1)
        0.3679
    """

    log_variance: Float[Array, "..."]
    log_lengthscale: Float[Array, "..."]
    smoothness: float = eqx.field(static=True, default=1.5)
    n_parts: ClassVar[int] = 2

    def __check_init__(self):
        if self.smoothness not in (0.5, 1.5, 2.5):
            raise ValueError(
                f"`smoothness` of the Matern kernel must be 0.5, 1.5 or 2.5; got {self.smoothness}."
            )

    def covariance(self, X, X2):  # noqa: D102
        squared = squared_distance(self.scaled(X), self.scaled(X2))
        # The square root has no derivative at zero, where equal points meet.
        apart = squared > 0
        distance = jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1.0)), 0.0)
        s = math.sqrt(2 * self.smoothness) * distance
        match self.smoothness:
            case 0.5:
                polynomial = jnp.ones_like(s)
            case 1.5:
                polynomial = 1 + s
            case _:
                polynomial = 1 + s + s**2 / 3
        return jnp.exp(self.log_variance - s) * polynomial

    def draw_scales(self, n_rf: int, *, key: PRNGKeyArray):  # noqa: D102
        return jnp.sqrt(self.smoothness / jax.random.gamma(key, self.smoothness, (n_rf,)))

    def activate(self, Z):  # noqa: D102
        sine, cosine = sincos(Z)
        return cosine, sine

    def features(self, Z):  # noqa: D102
        return fourier_features(Z)

    def feature_variance(self, n_rf: int):  # noqa: D102
        return jnp.exp(self.log_variance) / n_rf
