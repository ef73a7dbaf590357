"""Bayesian linear regression on features: the exact log evidence, its gradient, and the exact posterior.

With `y = Phi @ w + noise`, `w ~ N(0, I)` and noise of variance `v` in each row, all follows from
`A = I + Phi.T @ diag(1 / v) @ Phi`. Its condition number is about `n / v`, too much for the Cholesky factor of a
float32 matrix where there is little noise. So `A` is formed and factorized in float64, whatever the program around it
uses; the features stay as they are.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float
from scipy.linalg import hadamard

from bochner.posteriors.gaussians import JointGaussian

_LEAST_OF_OTHERS = 1e-6
_N_PROBES = 32  # with more, training ends no better (`docs/recipes.md`)
_N_BLOCKS = 4


@jax.custom_vjp
def log_evidence(
    Phi: Float[Array, "n feat"],
    Y: Float[Array, "n targets"],
    weights: Float[Array, " n"],
    log_noise_variance: Float[Array, "n targets"],
    probes: Float[Array, "targets feat probes"],
) -> Float[Array, ""]:
    """Compute the log evidence of the targets, summed over them; a row of weight two counts as two rows.

    The gradient with respect to features and noise is written by hand: what is needed for it is at hand when the value
    is, and no derivative of a factorization is taken. The posterior's covariance enters it, and to compute that would
    be most of the work; a few columns with that covariance, made of the probes, take its place. So the value is exact,
    and the gradient is so in the mean over probes (`draw_probes`). Cost is targets (n feat^2 + feat^3).

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.inference.evidence import log_evidence
        >>> one = jnp.ones((1, 1))  # y ~ N(0, 1 + 1)
        >>> round(float(log_evidence(one, one, jnp.ones(1), jnp.zeros((1, 1)), one[None])), 4)
        -1.5155
    """
    return _value_and_gradient(Phi, Y, weights, log_noise_variance, probes)[0]


def draw_probes(noise: Float[Array, "feat targets"]) -> Float[Array, "targets feat probes"]:
    """Give columns of random signs, whose outer products have the identity as their mean.

    The signs of the noise multiply lines of a Hadamard matrix, which are orthogonal: of two features none hears of the
    other, but for those that have the same line. So up to 32 features the outer products add up to the identity itself.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.inference.evidence import draw_probes
        >>> probes = draw_probes(jnp.array([[0.3], [-2.0], [1.0]]))[0]
        >>> probes.shape, bool((probes @ probes.T / 32 == jnp.eye(3)).all())
        ((3, 32), True)
    """
    lines = hadamard(_N_PROBES)[np.arange(len(noise)) % _N_PROBES]
    signs = jnp.where(noise < 0, -1.0, 1.0).T
    return signs[:, :, None] * jnp.asarray(lines, noise.dtype)[None]


def exact_posterior(
    Phi: Float[Array, "n feat"],
    Y: Float[Array, "n targets"],
    weights: Float[Array, " n"],
    log_noise_variance: Float[Array, "n targets"],
) -> JointGaussian:
    """Compute the posterior of the weights, one Gaussian a target.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.inference.evidence import exact_posterior
        >>> one = jnp.ones((1, 1))
        >>> q = exact_posterior(one, one, jnp.ones(1), jnp.zeros((1, 1)))
        >>> float(q.mean[0, 0]), round(float(q.factor[0, 0, 0]) ** 2, 4)
        (0.5, 0.5)
    """
    L, mean, _ = _factorized(Phi, Y, weights, log_noise_variance)
    with jax.enable_x64(True):
        # The covariance is `inverse(L @ L.T)`; a triangular factor of it is the transposed inverse of L.
        factor = jnp.swapaxes(_inverse(L), -1, -2)
        return JointGaussian(mean=_as(mean, Phi), factor=_as(factor, Phi))


def left_out(
    Phi: Float[Array, "n feat"],
    residuals: Float[Array, "n targets"],
    weights: Float[Array, " n"],
    noise_variance: Float[Array, "n targets"],
    posterior: JointGaussian,
) -> tuple[Float[Array, "n targets"], Float[Array, "n targets"]]:
    """Compute what the residual and the function's variance in each row would be, had that row not been seen.

    A row of weight two is left out as a whole. Cost is targets n feat^2.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.inference.evidence import exact_posterior, left_out
        >>> one = jnp.ones((1, 1))
        >>> q = exact_posterior(one, one, jnp.ones(1), jnp.zeros((1, 1)))
        >>> residual, spread = left_out(one, one - q.mean, jnp.ones(1), one, q)  # the prior is N(0, 1)
        >>> round(float(residual[0, 0]), 4), round(float(spread[0, 0]), 4)
        (1.0, 1.0)
    """
    with jax.enable_x64(True):
        # Where there is little noise a row nearly decides its own prediction, and one less its leverage is small.
        scaled = jnp.einsum("nf,tfg->tng", _double(Phi), _double(posterior.factor))
        spread = jnp.sum(scaled**2, axis=2).T
        leverage = _double(weights)[:, None] * spread / _double(noise_variance)
        others = jnp.maximum(1 - leverage, _LEAST_OF_OTHERS)
        return _as(_double(residuals) / others, residuals), _as(spread / others, residuals)


def _factorized(Phi: Array, Y: Array, weights: Array, log_noise_variance: Array):
    """Give the factor L of `A` for each target, the posterior means, and the log evidence, all in float64."""
    with jax.enable_x64(True):
        Phi, Y, weights, log_v = (_double(array) for array in (Phi, Y, weights, log_noise_variance))
        precision = weights[:, None] * jnp.exp(-log_v)
        scaled = jnp.sqrt(precision).T[:, :, None] * Phi[None]
        A = _lower_gram(scaled) + jnp.eye(Phi.shape[1], dtype=jnp.float64)[None]
        L = jax.lax.linalg.cholesky(A, symmetrize_input=False)
        b = (Phi.T @ (precision * Y)).T[..., None]
        half = solve_triangular(L, b, lower=True)
        mean = solve_triangular(L, half, lower=True, trans="T")[..., 0].T
        squares = jnp.sum(precision * Y**2) - jnp.sum(half**2)
        log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(L, axis1=1, axis2=2)))
        constants = jnp.sum(weights[:, None] * (log_v + math.log(2 * math.pi)))
        return L, mean, -0.5 * (squares + log_det + constants)


def _lower_gram(matrices: Float[Array, "targets n feat"]) -> Float[Array, "targets feat feat"]:
    """Compute `matrix.T @ matrix` of each, of which blocks above the diagonal stay zero: they are not needed."""
    feat = matrices.shape[2]
    ends = [round(feat * (block + 1) / _N_BLOCKS) for block in range(_N_BLOCKS)]
    rows = [
        jnp.swapaxes(matrices[:, :, start:end], 1, 2) @ matrices[:, :, :end]
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    return jnp.concatenate(
        [jnp.pad(row, ((0, 0), (0, 0), (0, feat - row.shape[2]))) for row in rows], axis=1
    )


def _inverse(L: Array) -> Array:
    identity = jnp.broadcast_to(jnp.eye(L.shape[-1], dtype=L.dtype), L.shape)
    return solve_triangular(L, identity, lower=True)


def _double(array: Array) -> Array:
    return jax.lax.convert_element_type(array, jnp.float64)


def _as(array: Array, like: Array) -> Array:
    return jax.lax.convert_element_type(array, like.dtype)


def _value_and_gradient(
    Phi: Array, Y: Array, weights: Array, log_noise_variance: Array, probes: Array
):
    """Compute the value and its derivatives by features and log noise variances.

    By Fisher's identity they are posterior means of the derivatives of the log-likelihood, in which only the residuals
    `r = Y - Phi @ mean` and the covariance `inverse(A)` appear.
    """
    L, mean, value = _factorized(Phi, Y, weights, log_noise_variance)
    with jax.enable_x64(True):
        # Columns whose outer products add up to `inverse(A)`, in the mean over probes.
        shares = _double(probes) / math.sqrt(probes.shape[2])
        draws = _as(solve_triangular(L, shares, lower=True, trans="T"), Phi)
        residuals = _as(_double(Y) - _double(Phi) @ mean, Phi)
        value, mean = _as(value, Phi), _as(mean, Phi)
    precision = weights[:, None] * jnp.exp(-log_noise_variance)
    with jax.default_matmul_precision("float32"):
        by_feature = jnp.concatenate([mean.T[:, :, None], draws], axis=2)
        by_row = jnp.concatenate([residuals.T[:, :, None], -(Phi[None] @ draws)], axis=2)
        Phi_gradient = jnp.einsum("tnk,tfk->nf", precision.T[:, :, None] * by_row, by_feature)
    noise_gradient = 0.5 * (precision * jnp.sum(by_row**2, axis=2).T - weights[:, None])
    return value, (Phi_gradient, noise_gradient)


def _forward(Phi, Y, weights, log_noise_variance, probes):
    value, gradients = _value_and_gradient(Phi, Y, weights, log_noise_variance, probes)
    return value, (*gradients, jnp.zeros_like(Y), jnp.zeros_like(weights), jnp.zeros_like(probes))


def _backward(residuals, cotangent):
    Phi_gradient, noise_gradient, no_Y, no_weights, no_probes = residuals
    # Targets, weights and probes are data, of which nobody needs derivatives.
    return cotangent * Phi_gradient, no_Y, no_weights, cotangent * noise_gradient, no_probes


log_evidence.defvjp(_forward, _backward)
