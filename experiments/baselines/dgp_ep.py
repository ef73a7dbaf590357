r"""DGP-EP: a deep GP with inducing points by approximate expectation propagation (Bui et al. 2016).

Each layer has inducing values u with the prior p(u) and one factor g(u), which stands for each of the N rows alike
(stochastic EP): `q(u) = p(u) g(u)^N`, and the cavity, without one row, is `p(u) g(u)^(N - 1)`. The energy

    (1 - N) Phi(q) + N Phi(cavity) - Phi(prior) + sum_n log Z_n,   Z_n = E_cavity[p(y_n | u, x_n)],

with Phi the log normalizer of a Gaussian, is maximized over the factors, the inducing points and theta by Adam. Z_n
needs the law of a row's last function values under the cavity: a Gaussian is moved through the layers, its first two
moments matched in each. Everything is in double precision.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.rows.scaling import PREPROCESSINGS, TargetScaling
from experiments.baselines.inducing import cluster_centers
from experiments.baselines.interface import ClassificationPredictor, Observer, RegressionPredictor
from experiments.baselines.jax_training import JaxTraining, in_parts
from experiments.baselines.predictive import GaussianMixture

_JITTER = 1e-6
_START_PRECISION = 100.0
_START_NOISE = 0.01


class EPLayer(NamedTuple):
    """A layer of GPs that share an RBF kernel and inducing points; factors are whitened, u = L v with v ~ N(0, I).

    Attributes:
        inducing: inducing points.
        log_variance: of the kernel.
        log_lengthscale: one for each input.
        log_noise: log variance of the noise that the layer adds to its outputs.
        linear: N times the linear natural parameter of g, for each output.
        root: triangular root C of N times the precision of g, `C C^T`, for each output.
    """

    inducing: Float[Array, "m d_in"]
    log_variance: Float[Array, ""]
    log_lengthscale: Float[Array, " d_in"]
    log_noise: Float[Array, ""]
    linear: Float[Array, "d_out m"]
    root: Float[Array, "d_out m m"]


class Law(NamedTuple):
    """Independent Gaussians: means and variances."""

    mean: Float[Array, "n d"]
    variance: Float[Array, "n d"]


def start_layer(
    inducing: np.ndarray, targets: np.ndarray, precision: float = _START_PRECISION
) -> EPLayer:
    """Start a layer whose posterior at the inducing points is near given values."""
    m, d_in = inducing.shape
    layer = EPLayer(
        inducing=jnp.asarray(inducing),
        log_variance=jnp.zeros(()),
        log_lengthscale=jnp.full((d_in,), 0.5 * math.log(d_in)),
        log_noise=jnp.asarray(math.log(_START_NOISE)),
        linear=jnp.zeros((targets.shape[1], m)),
        root=jnp.broadcast_to(math.sqrt(precision) * jnp.eye(m)[None], (targets.shape[1], m, m)),
    )
    whitened = solve_triangular(_cholesky(layer), jnp.asarray(targets), lower=True)
    return layer._replace(linear=(1.0 + precision) * whitened.T)


def posterior(layer: EPLayer, share: float) -> tuple[Array, Array, Array]:
    """Give means and covariances of v for `p(v) g(v)^(share N)`, and the sum of their log normalizers."""
    m = layer.inducing.shape[0]
    root = jnp.tril(layer.root)
    precision = jnp.eye(m)[None] + share * root @ jnp.swapaxes(root, 1, 2)
    factor = jnp.linalg.cholesky(precision)
    identity = jnp.broadcast_to(jnp.eye(m)[None], precision.shape)
    inverse = solve_triangular(factor, identity, lower=True)
    covariance = jnp.swapaxes(inverse, 1, 2) @ inverse
    linear = share * layer.linear
    mean = jnp.einsum("dij,dj->di", covariance, linear)
    log_determinant = 2 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)))
    return mean, covariance, 0.5 * jnp.sum(linear * mean) - 0.5 * log_determinant


def propagate(layer: EPLayer, law: Law | Array, mean: Array, covariance: Array) -> Law:
    """Give the matched law of the layer's outputs for inputs that are known, or Gaussian."""
    if isinstance(law, Law):
        return _propagate_law(layer, law, mean, covariance)
    factor, variance = _cholesky(layer), jnp.exp(layer.log_variance)
    cross = solve_triangular(factor, _kernel(layer, layer.inducing, law), lower=True)
    spread = jnp.einsum("in,dij,jn->nd", cross, covariance, cross)
    explained = jnp.sum(cross**2, axis=0)[:, None]
    return Law((mean @ cross).T, variance - explained + spread + jnp.exp(layer.log_noise))


def _propagate_law(layer: EPLayer, law: Law, mean: Array, covariance: Array) -> Law:
    m = layer.inducing.shape[0]
    inverse = solve_triangular(_cholesky(layer), jnp.eye(m), lower=True)
    first = inverse @ kernel_mean(layer, law).T
    # The variance is a trace of Psi2 with a matrix for each output. That matrix takes the roots of the prior, since
    # there is one of it and one of Psi2 a row; what then cancels is why all this is in double precision.
    gain = covariance + mean[:, :, None] * mean[:, None, :] - jnp.eye(m)[None]
    weights = inverse.T @ gain @ inverse
    i, j = np.triu_indices(m)
    both = jnp.where(i == j, 1.0, 2.0)[None, :] * weights[:, i, j]
    change = kernel_second_moments(layer, law) @ both.T
    output_mean = (mean @ first).T
    variance = jnp.exp(layer.log_variance) + change - output_mean**2
    # What rounding leaves of a variance must not become negative.
    return Law(output_mean, jnp.maximum(variance, 1e-6) + jnp.exp(layer.log_noise))


def kernel_mean(layer: EPLayer, law: Law) -> Float[Array, "n m"]:
    """Compute `E k(x, z)` for Gaussian x (Psi1)."""
    scale = jnp.exp(2 * layer.log_lengthscale)[None, :]
    width = scale + law.variance
    difference = law.mean[:, None, :] - layer.inducing[None, :, :]
    exponent = -0.5 * jnp.sum(difference**2 / width[:, None, :], axis=2)
    log_factor = -0.5 * jnp.sum(jnp.log(width / scale), axis=1)
    return jnp.exp(layer.log_variance + exponent + log_factor[:, None])


def kernel_second_moments(layer: EPLayer, law: Law) -> Float[Array, "n pairs"]:
    """Compute `E k(z, x) k(x, z')` for Gaussian x (Psi2), for each pair of inducing points once."""
    Z, scale = layer.inducing, jnp.exp(2 * layer.log_lengthscale)
    i, j = np.triu_indices(Z.shape[0])
    middle = 0.5 * (Z[i] + Z[j])
    distance = jnp.sum((Z[i] - Z[j]) ** 2 / (4 * scale)[None, :], axis=1)
    width = scale[None, :] + 2 * law.variance
    # The squares (mean - middle)^2 / width, summed over inputs, as one product of matrices.
    of_rows = jnp.concatenate([2 * law.mean / width, -1 / width], axis=1)
    of_pairs = jnp.concatenate([middle, middle**2], axis=1)
    of_row = jnp.sum(law.mean**2 / width + 0.5 * jnp.log(width / scale[None, :]), axis=1)
    exponent = of_rows @ of_pairs.T - distance[None, :] - of_row[:, None]
    return jnp.exp(2 * layer.log_variance + exponent)


def energy(
    layers: list[EPLayer], X: Array, log_likelihood: Any, *, n_rows: int, batch_size: int
) -> Float[Array, ""]:
    """Compute the energy from a mini-batch; `log_likelihood` gives log Z_n from the law of the outputs."""
    law, normalizers = X, jnp.zeros(())
    for layer in layers:
        *_, full = posterior(layer, 1.0)
        mean, covariance, cavity = posterior(layer, (n_rows - 1) / n_rows)
        normalizers += (1 - n_rows) * full + n_rows * cavity
        law = propagate(layer, law, mean, covariance)
    return normalizers + n_rows / batch_size * jnp.sum(log_likelihood(law))


def predictive_law(layers: list[EPLayer], X: Array) -> Law:
    """Give the law of the last layer's outputs under the posterior, the layer's noise included."""
    law = X
    for layer in layers:
        mean, covariance, _ = posterior(layer, 1.0)
        law = propagate(layer, law, mean, covariance)
    assert isinstance(law, Law)  # as there is at least one layer
    return law


def gaussian_log_likelihood(law: Law, Y: Array) -> Float[Array, " n"]:
    """Compute log Z_n of Gaussian noise, which the last layer's own noise is."""
    error = (Y - law.mean) ** 2 / law.variance
    return -0.5 * jnp.sum(error + jnp.log(2 * math.pi * law.variance), axis=1)


def softmax_log_likelihood(
    law: Law, labels: Array, n_samples: int, key: PRNGKeyArray
) -> Float[Array, " n"]:
    """Estimate log Z_n of the softmax from samples of the outputs."""
    noise = jax.random.normal(key, (n_samples, *law.mean.shape))
    F = law.mean[None] + jnp.sqrt(law.variance)[None] * noise
    logs = jax.nn.log_softmax(F)
    chosen = jnp.take_along_axis(logs, labels[None, :, None], axis=2)[..., 0]
    return logsumexp(chosen, axis=0) - math.log(n_samples)


def _kernel(layer: EPLayer, A: Array, B: Array) -> Array:
    scale = jnp.exp(-layer.log_lengthscale)[None, :]
    A, B = A * scale, B * scale
    squared = jnp.sum(A**2, axis=1)[:, None] + jnp.sum(B**2, axis=1)[None, :] - 2 * A @ B.T
    return jnp.exp(layer.log_variance - 0.5 * jnp.maximum(squared, 0.0))


def _cholesky(layer: EPLayer) -> Array:
    m = layer.inducing.shape[0]
    K = _kernel(layer, layer.inducing, layer.inducing)
    return jnp.linalg.cholesky(K + _JITTER * jnp.exp(layer.log_variance) * jnp.eye(m))


@dataclasses.dataclass(frozen=True)
class _Settings(JaxTraining):
    """Sizes and training, as in section 4.1; `n_layers` counts the output layer."""

    n_layers: int = 2
    width: int = 3
    n_inducing: int = 100
    n_samples: int = 100

    def start(self, X: np.ndarray, d_out: int, seed: int) -> list[EPLayer]:
        """Start hidden layers near the leading principal components, and the last layer near zero."""
        inducing = cluster_centers(X, self.n_inducing, seed)
        generator, layers = np.random.default_rng(seed), []
        for _ in range(self.n_layers - 1):
            _, _, directions = np.linalg.svd(inducing - inducing.mean(axis=0), full_matrices=False)
            hidden = (inducing - inducing.mean(axis=0)) @ directions[: self.width].T
            missing = self.width - hidden.shape[1]
            if missing > 0:  # fewer inputs than processes: random directions for the rest
                extra = inducing @ generator.normal(size=(inducing.shape[1], missing))
                hidden = np.concatenate([hidden, extra], axis=1)
            hidden /= hidden.std(axis=0) + 1e-6
            layers.append(start_layer(inducing, hidden))
            # Points on the values themselves, moved apart a little.
            inducing = hidden + 0.01 * generator.normal(size=hidden.shape)
        small = 0.1 * generator.normal(size=(len(inducing), d_out))
        return [*layers, start_layer(inducing, small, precision=1.0)]


@dataclasses.dataclass(frozen=True)
class DGPEPRegressor(_Settings):
    """Gaussian noise."""

    @jax.enable_x64(True)
    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        scaling, targets = PREPROCESSINGS[self.preprocessing](X), TargetScaling.standard(y[:, None])
        data = scaling(X).astype(float), targets(y[:, None]).astype(float)

        def loss(layers, batch, key):
            X_batch, Y = batch
            found = energy(
                layers, X_batch, lambda law: gaussian_log_likelihood(law, Y),
                n_rows=len(y), batch_size=len(Y),
            )  # fmt: skip
            return -found / len(y)

        @jax.jit
        def moments(layers, X):
            return jnp.stack(predictive_law(layers, X))

        def predictor(layers) -> RegressionPredictor:
            @jax.enable_x64(True)
            def predict(X_new: np.ndarray) -> GaussianMixture:
                rows = scaling(X_new).astype(float)
                found = in_parts(lambda part: moments(layers, part), rows, self.batch_size)
                mean, variance = found[..., 0]
                law = GaussianMixture.of_one(mean, np.sqrt(variance))
                return law.rescaled(targets.center[0], targets.scale[0])

            return predict

        start = self.start(data[0], 1, seed)
        return self.learned(loss, start, data, predictor, seed=seed, observer=observer)


@dataclasses.dataclass(frozen=True)
class DGPEPClassifier(_Settings):
    """Softmax, by samples."""

    @jax.enable_x64(True)
    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        scaling = PREPROCESSINGS[self.preprocessing](X)
        data = scaling(X).astype(float), np.asarray(y, np.int32)

        def loss(layers, batch, key):
            X_batch, labels = batch
            found = energy(
                layers, X_batch, lambda law: softmax_log_likelihood(law, labels, self.n_samples, key),
                n_rows=len(y), batch_size=len(labels),
            )  # fmt: skip
            return -found / len(y)

        @jax.jit
        def run(layers, X):
            law = predictive_law(layers, X)
            noise = jax.random.normal(jax.random.key(seed), (self.n_samples, *law.mean.shape))
            F = law.mean[None] + jnp.sqrt(law.variance)[None] * noise
            return jnp.mean(jax.nn.softmax(F), axis=0)

        def predictor(layers) -> ClassificationPredictor:
            @jax.enable_x64(True)
            def predict(X_new: np.ndarray) -> np.ndarray:
                rows = scaling(X_new).astype(float)
                return in_parts(lambda part: run(layers, part), rows, self.batch_size)

            return predict

        start = self.start(data[0], int(y.max()) + 1, seed)
        return self.learned(loss, start, data, predictor, seed=seed, observer=observer)
