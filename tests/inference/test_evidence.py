"""Exact Bayesian linear regression, beside the multivariate normal density of all targets at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bochner.inference.evidence import draw_probes, exact_posterior, log_evidence
from tests.reference.derivatives import assert_gradient_matches_finite_differences


def problem(n=12, feat=5, targets=2, seed=0, dtype=np.float64):
    generator = np.random.default_rng(seed)
    Phi, Y = generator.normal(size=(n, feat)), generator.normal(size=(n, targets))
    log_v = generator.normal(size=(n, targets))
    return tuple(jnp.asarray(array, dtype) for array in (Phi, Y, np.ones(n), log_v))


def all_probes(Phi, Y):
    """As many as features, so that the gradient is exact."""
    feat = Phi.shape[1]
    return jnp.asarray(np.tile(np.sqrt(feat) * np.eye(feat), (Y.shape[1], 1, 1)), Phi.dtype)


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


@pytest.mark.parametrize("shape", [(12, 5), (4, 9), (1, 1), (30, 43)])
def test_the_evidence_is_the_density_of_all_targets(shape, x64):
    Phi, Y, weights, log_v = problem(*shape)
    assert float(log_evidence(Phi, Y, weights, log_v, all_probes(Phi, Y))) == pytest.approx(
        reference(Phi, Y, weights, log_v), rel=1e-12
    )


def test_a_row_of_weight_three_counts_as_three_rows(x64):
    Phi, Y, _, log_v = problem()
    weights = jnp.asarray(np.arange(12) % 4, float)
    assert float(log_evidence(Phi, Y, weights, log_v, all_probes(Phi, Y))) == pytest.approx(
        reference(Phi, Y, weights, log_v), rel=1e-12
    )


def test_the_gradient_matches_finite_differences(x64):
    Phi, Y, _, log_v = problem(6, 3)
    weights = jnp.array([1.0, 2.0, 0.5, 1.0, 0.0, 3.0])
    probes = all_probes(Phi, Y)
    assert_gradient_matches_finite_differences(
        lambda both: log_evidence(both[0], Y, weights, both[1], probes), (Phi, log_v), rtol=1e-6
    )


def gradients(Phi, Y, weights, log_v, probes):
    found = jax.grad(log_evidence, argnums=(0, 3))(Phi, Y, weights, log_v, probes)
    return jnp.concatenate([gradient.ravel() for gradient in found])


def test_up_to_32_features_the_probes_that_are_drawn_give_the_exact_gradient(x64):
    arguments = problem(20, 32)
    probes = draw_probes(jax.random.normal(jax.random.key(0), (32, 2)))
    exact = gradients(*arguments, all_probes(*arguments[:2]))
    np.testing.assert_allclose(gradients(*arguments, probes), exact, rtol=1e-10, atol=1e-12)


def test_with_more_features_the_gradient_is_exact_in_the_mean_over_probes(x64):
    arguments = problem(50, 90)
    noise = jax.random.normal(jax.random.key(0), (4_000, 90, 2))
    several = jax.lax.map(lambda one: gradients(*arguments, draw_probes(one)), noise)
    exact = gradients(*arguments, all_probes(*arguments[:2]))
    z = (several.mean(axis=0) - exact) / (several.std(axis=0) / np.sqrt(len(noise)))
    assert float(jnp.sqrt(jnp.mean(z**2))) < 1.2
    assert float(jnp.max(jnp.abs(z))) < 5.0


def test_noise_of_zero_gives_probes_too():
    assert bool(jnp.all(jnp.abs(draw_probes(jnp.zeros((40, 1)))) == 1.0))


def test_little_noise_leaves_float32_right():
    # Condition number 4e8: in float32 the Cholesky factor of A would be wrong or fail.
    Phi, Y, weights, _ = problem(200, 30, 1, dtype=np.float32)
    log_v = jnp.full((200, 1), np.log(1e-6), jnp.float32)
    Y = Phi[:, :1] + 1e-3 * Y
    probes = all_probes(Phi, Y)
    value, (Phi_gradient, noise_gradient) = jax.value_and_grad(log_evidence, argnums=(0, 3))(
        Phi, Y, weights, log_v, probes
    )
    assert value.dtype == Phi_gradient.dtype == jnp.float32
    assert float(value) == pytest.approx(reference(Phi, Y, weights, log_v), rel=1e-5)
    with jax.enable_x64(True):
        doubles = [
            jnp.asarray(np.asarray(array), float) for array in (Phi, Y, weights, log_v, probes)
        ]
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
    several = [(*arguments, all_probes(*arguments[:2])) for arguments in several]
    stacked = [jnp.stack(arrays) for arrays in zip(*several, strict=True)]
    values = jax.vmap(log_evidence)(*stacked)
    expected = [float(log_evidence(*arguments)) for arguments in several]
    np.testing.assert_allclose(values, expected, rtol=1e-5)
