"""Exact Bayesian linear regression, beside the multivariate normal density of all targets at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bochner.evidence import exact_posterior, log_evidence
from tests.reference.derivatives import assert_gradient_matches_finite_differences


def problem(n=12, feat=5, targets=2, seed=0, dtype=np.float64):
    generator = np.random.default_rng(seed)
    Phi, Y = generator.normal(size=(n, feat)), generator.normal(size=(n, targets))
    log_v = generator.normal(size=(n, targets))
    return tuple(jnp.asarray(array, dtype) for array in (Phi, Y, np.ones(n), log_v))


def reference(Phi, Y, weights, log_v):
    """The density of the targets, of which a row of weight two is there twice."""
    rows = np.repeat(np.arange(len(Y)), np.asarray(weights, int))
    Phi, Y, log_v = (np.asarray(array, np.float64)[rows] for array in (Phi, Y, log_v))
    densities = [
        multivariate_normal.logpdf(
            Y[:, target], np.zeros(len(Y)), Phi @ Phi.T + np.diag(np.exp(log_v[:, target]))
        )
        for target in range(Y.shape[1])
    ]
    return sum(densities)


@pytest.mark.parametrize("shape", [(12, 5), (4, 9), (1, 1)])
def test_the_evidence_is_the_density_of_all_targets(shape, x64):
    Phi, Y, weights, log_v = problem(*shape)
    assert float(log_evidence(Phi, Y, weights, log_v)) == pytest.approx(
        reference(Phi, Y, weights, log_v), rel=1e-12
    )


def test_a_row_of_weight_three_counts_as_three_rows(x64):
    Phi, Y, _, log_v = problem()
    weights = jnp.asarray(np.arange(12) % 4, float)
    assert float(log_evidence(Phi, Y, weights, log_v)) == pytest.approx(
        reference(Phi, Y, weights, log_v), rel=1e-12
    )


def test_the_gradient_matches_finite_differences(x64):
    Phi, Y, _, log_v = problem(6, 3)
    weights = jnp.array([1.0, 2.0, 0.5, 1.0, 0.0, 3.0])
    assert_gradient_matches_finite_differences(
        lambda both: log_evidence(both[0], Y, weights, both[1]), (Phi, log_v), rtol=1e-6
    )


def test_little_noise_leaves_float32_right():
    # Condition number 4e8: in float32 the Cholesky factor of A would be wrong or fail.
    Phi, Y, weights, _ = problem(200, 30, 1, dtype=np.float32)
    log_v = jnp.full((200, 1), np.log(1e-6), jnp.float32)
    Y = Phi[:, :1] + 1e-3 * Y
    value, (Phi_gradient, noise_gradient) = jax.value_and_grad(log_evidence, argnums=(0, 3))(
        Phi, Y, weights, log_v
    )
    assert value.dtype == Phi_gradient.dtype == jnp.float32
    assert float(value) == pytest.approx(reference(Phi, Y, weights, log_v), rel=1e-5)
    with jax.enable_x64(True):
        doubles = [jnp.asarray(np.asarray(array), float) for array in (Phi, Y, weights, log_v)]
        exact = jax.grad(log_evidence, argnums=3)(*doubles)
    np.testing.assert_allclose(noise_gradient, exact, rtol=1e-2, atol=1e-3)


def test_the_posterior_is_that_of_linear_regression(x64):
    Phi, Y, weights, log_v = problem()
    q = exact_posterior(Phi, Y, weights, log_v)
    for target in range(2):
        precision = np.diag(np.exp(-np.asarray(log_v[:, target])))
        covariance = np.linalg.inv(np.eye(5) + np.asarray(Phi).T @ precision @ np.asarray(Phi))
        mean = covariance @ np.asarray(Phi).T @ precision @ np.asarray(Y[:, target])
        factor = np.asarray(q.factor[target])
        np.testing.assert_allclose(factor @ factor.T, covariance, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(q.mean[:, target], mean, rtol=1e-10, atol=1e-12)


def test_it_can_be_mapped_over_members():
    several = [problem(seed=seed, dtype=np.float32) for seed in range(3)]
    stacked = [jnp.stack(arrays) for arrays in zip(*several, strict=True)]
    values = jax.vmap(log_evidence)(*stacked)
    expected = [float(log_evidence(*arguments)) for arguments in several]
    np.testing.assert_allclose(values, expected, rtol=1e-5)
