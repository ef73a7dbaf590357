"""What must hold of every covariance, for the tests of new ones."""

import json

import jax
import numpy as np

from bochner.exact.encode_program import encoded
from bochner.exact.kernels.stored import kernel_from_json, kernel_to_json
from bochner.exact.program import in_double
from bochner.exact.rows import Rows

_N_FEATURES, _N_TIMES = 2000, 20


def parameters(kernel, rows: Rows, seed: int = 0) -> np.ndarray:
    start = kernel.start(rows.layout, 0.5).values
    return start + 0.3 * np.random.default_rng(seed).normal(size=len(start))


def check_kernel(kernel, rows: Rows) -> None:
    """Check a covariance against itself: its gradient, its diagonal, JAX, random features and JSON."""
    v = parameters(kernel, rows)
    K, pull_back = kernel.with_pull_back(v, rows)
    np.testing.assert_allclose(K, kernel.covariance(v, rows, rows), atol=1e-12)
    np.testing.assert_allclose(np.diag(K), kernel.diagonal(v, rows), atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-9
    check_gradient(kernel, v, rows, pull_back)
    some = rows[:9]
    both = in_double(lambda: kernel.covariance(v, encoded(some), encoded(rows)))()
    np.testing.assert_allclose(both, kernel.covariance(v, some, rows), rtol=1e-9, atol=1e-14)
    own = in_double(lambda: kernel.diagonal(v, encoded(some)))()
    np.testing.assert_allclose(own, kernel.diagonal(v, some), rtol=1e-12)
    check_features(kernel, v, some)
    assert kernel_from_json(json.loads(json.dumps(kernel_to_json(kernel)))) == kernel


def check_gradient(kernel, v, rows: Rows, pull_back) -> None:
    G = np.random.default_rng(1).normal(size=(len(rows), len(rows)))
    G = G + G.T

    def value(v):
        return np.sum(G * kernel.covariance(v, rows, rows))

    differences = [(value(v + e) - value(v - e)) / 2e-5 for e in 1e-5 * np.eye(len(v))]
    np.testing.assert_allclose(pull_back(G), differences, rtol=1e-5, atol=1e-4)


def check_features(kernel, v, rows: Rows) -> None:
    """Products of features have the covariance as their mean, and are the same by NumPy and by JAX."""
    features, rng = kernel.features(v, rows.layout, _N_FEATURES), np.random.default_rng(0)
    drawn = [features.draw(rng) for _ in range(_N_TIMES)]
    F = np.concatenate([features.at(rows, own) for own in drawn], axis=1)
    K, scale = kernel.covariance(v, rows, rows), np.max(kernel.diagonal(v, rows))
    np.testing.assert_allclose(F @ F.T / F.shape[1], K, atol=0.05 * scale)
    with jax.enable_x64(True):
        again = jax.jit(lambda own: features.at(encoded(rows), own))(drawn[0])
    np.testing.assert_allclose(again, features.at(rows, drawn[0]), atol=1e-3 * scale)
