"""The radial basis function covariance."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.kernels.base import AbstractKernel, squared_distance
from bochner.ops import fourier_features, sincos


class RBF(AbstractKernel):
    r"""The covariance `k(x, x') = variance * exp(-||(x - x') / lengthscale||^2 / 2)` (section 2.1.1).

    Its frequencies are Gaussian, and its features cosines and sines.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.kernels import RBF
        >>> kernel = RBF(log_variance=jnp.zeros(()), log_lengthscale=jnp.zeros(()))
        >>> x = jnp.array([[0.0], [1.0]])
        >>> round(float(kernel.covariance(x, x)[0, 1]), 4)  # exp(-1/2)
        0.6065
    """

    log_variance: Float[Array, "..."]
    log_lengthscale: Float[Array, "..."]
    n_parts: ClassVar[int] = 2

    def covariance(self, X, X2):  # noqa: D102
        return jnp.exp(self.log_variance - 0.5 * squared_distance(self.scaled(X), self.scaled(X2)))

    def draw_scales(self, n_rf: int, *, key: PRNGKeyArray):  # noqa: D102
        return jnp.ones(n_rf)

    def activate(self, Z):  # noqa: D102
        sine, cosine = sincos(Z)
        return cosine, sine

    def features(self, Z):  # noqa: D102
        return fourier_features(Z)

    def feature_variance(self, n_rf: int):  # noqa: D102
        return jnp.exp(self.log_variance) / n_rf
