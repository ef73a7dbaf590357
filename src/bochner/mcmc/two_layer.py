"""The sampler of the supplement for a two-layer deep Gaussian process with exact kernels."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bochner.fitting.config import check_whole_number
from bochner.kernels import RBF, AbstractKernel
from bochner.mcmc.diagnostics import effective_sample_size, split_rhat
from bochner.system.threads import blas_on_one_thread

_RELATIVE_JITTER = 1e-10


@dataclasses.dataclass(frozen=True)
class TwoLayerDiagnostics:
    """How far to trust the draws of a two-layer posterior.

    The sign of the hidden layer is free, so its draws are judged by their absolute value.

    Attributes:
        rhat_output: split R-hat of the output at each data point.
        rhat_abs_hidden: the same of the absolute value of the hidden layer.
        ess_output: effective sample size of the output at each data point.
        ess_abs_hidden: the same of the absolute value of the hidden layer.
        jitter: what was added to the diagonals of the two layers' covariances.
        proposals_per_step: mean number of proposals that a step of elliptical slice sampling took.
    """

    rhat_output: Float[np.ndarray, " n"]
    rhat_abs_hidden: Float[np.ndarray, " n"]
    ess_output: Float[np.ndarray, " n"]
    ess_abs_hidden: Float[np.ndarray, " n"]
    jitter: tuple[float, float]
    proposals_per_step: float

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat of both layers."""
        return float(max(self.rhat_output.max(), self.rhat_abs_hidden.max()))

    @property
    def smallest_ess(self) -> float:
        """The smallest effective sample size of both layers."""
        return float(min(self.ess_output.min(), self.ess_abs_hidden.min()))


@dataclasses.dataclass(frozen=True)
class TwoLayerPosterior:
    """Draws of both layers at the data and at new inputs; unpacks as these four.

    Attributes:
        hidden: values of the hidden layer at X.
        output: values of the second layer at X, without noise.
        hidden_new: values of the hidden layer at X_new.
        output_new: values of the second layer at X_new, without noise.
        diagnostics: R-hat, effective sample sizes and jitter.
    """

    hidden: Float[np.ndarray, "chains samples n"]
    output: Float[np.ndarray, "chains samples n"]
    hidden_new: Float[np.ndarray, "chains samples m"]
    output_new: Float[np.ndarray, "chains samples m"]
    diagnostics: TwoLayerDiagnostics

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.hidden, self.output, self.hidden_new, self.output_new))


def two_layer_posterior(
    X: Any,
    y: Any,
    X_new: Any,
    *,
    variances: Sequence[float],
    lengthscales: Sequence[Any],
    noise_variance: float,
    n_samples: int = 1000,
    n_warmup: int = 1000,
    n_thin: int = 10,
    n_chains: int = 4,
    kernels: Sequence[Callable[..., AbstractKernel]] = (RBF, RBF),
    key: PRNGKeyArray,
) -> TwoLayerPosterior:
    """Draw from the posterior of `y = f2(f1(x)) + noise` with one Gaussian process a layer and theta held.

    With F1, F2 the layers' values at the data, the second layer is integrated out (supplement, "Details of MCMC
    sampler"): `p(y | F1) = N(y | 0, K2(F1) + noise_variance I)`. Elliptical slice sampling draws F1 from
    `p(F1 | y)`; F2, and both layers at new inputs, then follow in closed form. Chains start at draws from the prior, so
    that both signs of F1 are found. Everything is computed in float64.

    Args:
        X: inputs, one row a point.
        y: targets, one a row; the model has mean zero.
        X_new: inputs at which both layers are predicted; there may be none.
        variances: marginal variance of each layer.
        lengthscales: lengthscale of each layer; that of the first may be one for each input.
        noise_variance: variance of the noise.
        n_samples: draws to keep of each chain.
        n_warmup: steps of each chain before the first draw.
        n_thin: steps from one draw to the next.
        n_chains: independent chains.
        kernels: covariance of each layer, from `bochner.kernels`.
        key: random key.

    Example:
        >>> import jax, numpy as np
        >>> from bochner.mcmc import two_layer_posterior
        >>> x = np.linspace(-1, 1, 5)[:, None]
        >>> found = two_layer_posterior(
        ...     x, np.sin(3 * x[:, 0]), [[0.0]], variances=(1, 1), lengthscales=(1, 1), noise_variance=0.01,
        ...     n_samples=100, n_warmup=100, n_thin=2, n_chains=2, key=jax.random.key(0),
        ... )
        >>> found.hidden.shape, found.output_new.shape
        ((2, 100, 5), (2, 100, 1))
    """
    for name, number in (
        ("n_samples", n_samples), ("n_warmup", n_warmup), ("n_thin", n_thin), ("n_chains", n_chains),
    ):  # fmt: skip
        check_whole_number(name, number)
    X, y, X_new = _checked_data(X, y, X_new)
    _check_positive(variances, lengthscales, noise_variance)
    # Many small factorizations: threads would wait for each other, on a busy machine a hundred times longer.
    with blas_on_one_thread(), jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        first, second = (
            kernel(log_variance=jnp.log(variance), log_lengthscale=jnp.log(lengthscale))
            for kernel, variance, lengthscale in zip(
                kernels, jnp.asarray(variances, float), map(_as_float64, lengthscales), strict=True
            )
        )
        jitter = (_jitter(first), _jitter(second))
        factor = hidden_factor(first, jnp.concatenate([X, X_new]))
        drawn = _draw_chains(
            factor, y, second, jnp.asarray(noise_variance, float), jax.random.split(key, n_chains),
            _numbers_of_steps(n_samples, n_warmup, n_thin),
        )  # fmt: skip
        *draws, proposals = (np.asarray(values) for values in drawn)
    hidden, output, hidden_new, output_new = draws
    if not all(np.isfinite(values).all() for values in draws):
        raise ValueError(
            "a covariance matrix could not be factorized: its smallest eigenvalue is below the rounding of float64. "
            "Use a shorter lengthscale, a larger noise variance, or fewer new inputs."
        )
    diagnostics = TwoLayerDiagnostics(
        rhat_output=split_rhat(output),
        rhat_abs_hidden=split_rhat(np.abs(hidden)),
        ess_output=effective_sample_size(output),
        ess_abs_hidden=effective_sample_size(np.abs(hidden)),
        jitter=(float(jitter[0]), float(jitter[1])),
        proposals_per_step=float(proposals.mean()),
    )
    return TwoLayerPosterior(hidden, output, hidden_new, output_new, diagnostics)


class ChainDraws(NamedTuple):
    """The draws of one chain, and the mean number of proposals a step between them."""

    hidden: Float[Array, "samples n"]
    output: Float[Array, "samples n"]
    hidden_new: Float[Array, "samples m"]
    output_new: Float[Array, "samples m"]
    proposals: Float[Array, " samples"]


def hidden_factor(kernel: AbstractKernel, X: Float[Array, "n d_in"]) -> Float[Array, "n n"]:
    """Compute the Cholesky factor of the hidden layer's prior covariance, once for all chains."""
    return _factor(kernel.covariance(X, X), _jitter(kernel))


def draw_chain(
    factor: Float[Array, "all all"],
    y: Float[Array, " n"],
    kernel: AbstractKernel,
    noise_variance: Float[Array, ""],
    key: PRNGKeyArray,
    n_steps: Int[Array, " samples"],
) -> ChainDraws:
    """Run one chain with so many steps before each draw.

    `factor` is that of the data and then the new inputs, `kernel` that of the second layer.

    The chain moves u with `F1 = L u`, whose prior is standard normal. New inputs then need no solve: with the factor's
    lower rows, `F1_new = L21 u + L22 z`.
    """
    n = len(y)
    upper, lower, corner = factor[:n, :n], factor[n:, :n], factor[n:, n:]

    def log_likelihood(u):
        return collapsed_log_likelihood(upper @ u, y, kernel, noise_variance)

    # A diagonal covariance, here of ones, is what BlackJAX takes without factorizing it.
    slice_sampling: Any = blackjax.elliptical_slice(
        log_likelihood, mean=jnp.zeros(n), cov=jnp.ones(n)
    )

    def draw(state, key_and_steps):
        key, n_steps = key_and_steps
        key_steps, key_hidden, key_output = jax.random.split(key, 3)

        def step(number, state_and_count):
            state, count = state_and_count
            state, info = slice_sampling.step(jax.random.fold_in(key_steps, number), state)
            return state, count + info.subiter

        state, proposals = jax.lax.fori_loop(0, n_steps, step, (state, 0))
        u = state.position
        new = lower @ u + corner @ jax.random.normal(key_hidden, (corner.shape[0],))
        everywhere = jnp.concatenate([upper @ u, new])
        output = draw_output(everywhere, y, kernel, noise_variance, key_output)
        return state, ChainDraws(everywhere[:n], output[:n], new, output[n:], proposals / n_steps)

    key_start, key_draws = jax.random.split(key)
    state = slice_sampling.init(jax.random.normal(key_start, (n,)))
    return jax.lax.scan(draw, state, (jax.random.split(key_draws, len(n_steps)), n_steps))[1]


@jax.jit
def _draw_chains(factor, y, kernel, noise_variance, keys, n_steps) -> ChainDraws:
    return jax.vmap(lambda key: draw_chain(factor, y, kernel, noise_variance, key, n_steps))(keys)


def _numbers_of_steps(n_samples: int, n_warmup: int, n_thin: int) -> np.ndarray:
    """Give the steps before each draw; warm-up is a longer way to the first, so that one loop is compiled, not two."""
    n_steps = np.full(n_samples, n_thin)
    n_steps[0] += n_warmup
    return n_steps


def collapsed_log_likelihood(
    hidden: Float[Array, " n"],
    y: Float[Array, " n"],
    kernel: AbstractKernel,
    noise_variance: Float[Array, ""],
) -> Float[Array, ""]:
    """Compute `log N(y | 0, K2(F1) + noise_variance I)`, the second layer integrated out."""
    L = _factor(_covariance(kernel, hidden), noise_variance)
    whitened = solve_triangular(L, y, lower=True)
    log_density = -0.5 * whitened @ whitened - jnp.sum(jnp.log(jnp.diagonal(L)))
    return log_density - 0.5 * len(y) * jnp.log(2 * jnp.pi)


def draw_output(
    hidden: Float[Array, " all"],
    y: Float[Array, " n"],
    kernel: AbstractKernel,
    noise_variance: Float[Array, ""],
    key: PRNGKeyArray,
) -> Float[Array, " all"]:
    """Draw the second layer given y and the hidden layer's values, of which the first n belong to the data.

    A draw from the prior of all values, corrected by what it misses of y (Matheron's rule), has exactly their
    joint posterior: `F2 + K (K_data + noise_variance I)^-1 (y - F2_data - noise)`.
    """
    n = len(y)
    key_prior, key_noise = jax.random.split(key)
    K = _covariance(kernel, hidden)
    prior = _factor(K, _jitter(kernel)) @ jax.random.normal(key_prior, (len(hidden),))
    noise = jnp.sqrt(noise_variance) * jax.random.normal(key_noise, (n,))
    missing = y - prior[:n] - noise
    return prior + K[:, :n] @ cho_solve((_factor(K[:n, :n], noise_variance), True), missing)


def _covariance(kernel: AbstractKernel, hidden: Array) -> Array:
    return kernel.covariance(hidden[:, None], hidden[:, None])


def _factor(K: Array, added: Array) -> Array:
    return jnp.linalg.cholesky(K + added * jnp.eye(len(K)))


def _jitter(kernel: AbstractKernel) -> Array:
    return _RELATIVE_JITTER * jnp.exp(kernel.log_variance)


def _as_float64(value: Any) -> Array:
    return jnp.asarray(value, float)


def _checked_data(X: Any, y: Any, X_new: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, X_new = (np.asarray(values, np.float64) for values in (X, y, X_new))
    if X.ndim != 2 or y.shape != X.shape[:1] or len(y) == 0:
        raise ValueError(
            f"X must be a matrix and y a vector with as many rows; got shapes {X.shape} and {y.shape}."
        )
    if X_new.size == 0:
        X_new = X_new.reshape(0, X.shape[1])
    if X_new.ndim != 2 or X_new.shape[1] != X.shape[1]:
        raise ValueError(
            f"X_new must be a matrix with the {X.shape[1]} columns of X; got shape {X_new.shape}."
        )
    if not all(np.isfinite(values).all() for values in (X, y, X_new)):
        raise ValueError("X, y and X_new must be finite; remove the rows that are not.")
    return X, y, X_new


def _check_positive(variances: Any, lengthscales: Any, noise_variance: Any) -> None:
    for name, values in (("variances", variances), ("lengthscales", lengthscales)):
        if len(values) != 2 or not all(np.all(np.asarray(value) > 0) for value in values):
            raise ValueError(
                f"`{name}` must hold one positive value for each of the two layers; got {values!r}."
            )
    if not noise_variance > 0:
        raise ValueError(f"`noise_variance` must be above 0; got {noise_variance!r}.")
