"""The arc-cosine covariances of degree 0, 1 and 2."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.kernels.base import AbstractKernel
from bochner.ops.fused_layer import ReluPower


class ArcCosine(AbstractKernel):
    r"""The covariance `k(x, x') = variance / pi * (|u| |u'|)^p J_p(alpha)` with `u = x / lengthscale` (section 2.1.2).

    Here alpha is the angle between u and u', and

        J_0 = pi - alpha
        J_1 = sin(alpha) + (pi - alpha) cos(alpha)
        J_2 = 3 sin(alpha) cos(alpha) + (pi - alpha) (1 + 2 cos(alpha)^2)

    Its frequencies are Gaussian and its features `sqrt(2 variance / N_RF)` times steps, ReLUs or squared ReLUs of
    `x @ Omega`.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.kernels import ArcCosine
        >>> kernel = ArcCosine(log_variance=jnp.zeros(()), log_lengthscale=jnp.zeros(()), degree=1)
        >>> x = jnp.array([[3.0, 4.0]])
        >>> round(float(kernel.covariance(x, x)[0, 0]), 3)  # |x|^2
        25.0
    """

    log_variance: Float[Array, "..."]
    log_lengthscale: Float[Array, "..."]
    degree: int = eqx.field(static=True, default=1)
    n_parts: ClassVar[int] = 1

    def __check_init__(self):
        if self.degree not in (0, 1, 2):
            raise ValueError(
                f"`degree` of the arc-cosine kernel must be 0, 1 or 2; got {self.degree}."
            )

    def covariance(self, X, X2):  # noqa: D102
        U, U2 = self.scaled(X), self.scaled(X2)
        norm = jnp.linalg.norm(U, axis=1)[:, None]
        norm2 = jnp.linalg.norm(U2, axis=1)[None, :]
        product = norm * norm2
        cosine = jnp.clip(U @ U2.T / jnp.where(product > 0, product, 1.0), -1.0, 1.0)
        alpha = jnp.arccos(cosine)
        sine = jnp.sqrt(1 - cosine**2)
        match self.degree:
            case 0:
                J = jnp.pi - alpha
            case 1:
                J = sine + (jnp.pi - alpha) * cosine
            case _:
                J = 3 * sine * cosine + (jnp.pi - alpha) * (1 + 2 * cosine**2)
        return jnp.exp(self.log_variance) / jnp.pi * product**self.degree * J

    def draw_scales(self, n_rf: int, *, key: PRNGKeyArray):  # noqa: D102
        return jnp.ones(n_rf)

    def activate(self, Z):  # noqa: D102
        if self.degree == 0:
            return (jnp.where(Z > 0, 1.0, 0.0).astype(Z.dtype),)
        positive = jnp.maximum(Z, 0.0)
        return (positive if self.degree == 1 else positive**2,)

    def activation(self):  # noqa: D102
        return ReluPower(self.degree)

    def feature_variance(self, n_rf: int):  # noqa: D102
        return 2.0 * jnp.exp(self.log_variance) / n_rf

    def gradients_vanish(self) -> bool:  # noqa: D102
        return self.degree == 0
