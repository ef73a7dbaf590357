"""The marginal likelihood of targets with the last layer integrated out, by the covariance of few rows.

It is that of `bochner.inference.evidence`, by a matrix of rows in place of features, and with an exact gradient, which
chains need. Covariances are near singular where there is little noise, so they are factorized in float64.
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float


@jax.custom_vjp
def log_marginal(
    Phi: Float[Array, "n feat"], log_noise: Float[Array, "n targets"], Y: Float[Array, "n targets"]
) -> Float[Array, ""]:
    """Compute `log N(y | 0, Phi Phi' + noise)` without its constant, summed over targets.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.mcmc.rows_marginal import log_marginal
        >>> one = jnp.ones((1, 1))  # y ~ N(0, 1 + 1)
        >>> round(float(log_marginal(one, jnp.zeros((1, 1)), one)), 4)
        -0.5966
    """
    return _forward(Phi, log_noise, Y)[0]


def left_out(
    Phi: Float[Array, "n feat"], log_noise: Float[Array, "n targets"], Y: Float[Array, "n targets"]
) -> Float[Array, "two n targets"]:
    """Compute mean and log variance of each target given all others.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.mcmc.rows_marginal import left_out
        >>> mean, log_variance = left_out(jnp.ones((2, 1)), jnp.zeros((2, 1)), jnp.array([[1.0], [0.0]]))
        >>> mean[:, 0].round(4).tolist(), jnp.exp(log_variance[:, 0]).round(4).tolist()
        ([0.0, 0.5], [1.5, 1.5])
    """
    _, inverses, solved = _factorized(Phi, log_noise, Y)
    with jax.enable_x64(True):
        precisions = jnp.diagonal(inverses, axis1=1, axis2=2).T
        mean = _double(Y) - solved / precisions
        return _as(jnp.stack([mean, -jnp.log(precisions)]), Phi)


def _factorized(Phi: Array, log_noise: Array, Y: Array) -> tuple[Array, Array, Array]:
    """Give the value, the inverse covariance of each target, and its product with the target, in float64."""
    with jax.enable_x64(True):
        Phi, log_noise, Y = (_double(array) for array in (Phi, log_noise, Y))
        identity = jnp.eye(len(Y), dtype=jnp.float64)
        covariances = (Phi @ Phi.T)[None] + jnp.exp(log_noise).T[:, :, None] * identity[None]
        L = jnp.linalg.cholesky(covariances, symmetrize_input=False)
        inverses = cho_solve((L, True), jnp.broadcast_to(identity[None], L.shape))
        solved = jnp.einsum("tij,jt->it", inverses, Y)
        log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(L, axis1=1, axis2=2)))
        return -0.5 * (jnp.sum(Y * solved) + log_det), inverses, solved


def _forward(Phi, log_noise, Y):
    value, inverses, solved = _factorized(Phi, log_noise, Y)
    with jax.enable_x64(True):
        by_covariance = jnp.einsum("it,jt->tij", solved, solved) - inverses  # twice the derivative
        by_variance = 0.5 * jnp.diagonal(by_covariance, axis1=1, axis2=2).T
        by_noise = _as(by_variance * jnp.exp(_double(log_noise)), Phi)
        by_Phi = _as(jnp.sum(by_covariance, axis=0) @ _double(Phi), Phi)
        value = _as(value, Phi)
    return value, (by_Phi, by_noise, jnp.zeros_like(Y))


def _backward(gradients, cotangent):
    by_Phi, by_noise, no_Y = gradients  # targets are data
    return cotangent * by_Phi, cotangent * by_noise, no_Y


log_marginal.defvjp(_forward, _backward)


def _double(array: Array) -> Array:
    return jax.lax.convert_element_type(array, jnp.float64)


def _as(array: Array, like: Array) -> Array:
    return jax.lax.convert_element_type(array, like.dtype)
