"""DGP-EP against what is known in closed form: moments, exact Gaussian processes, and a problem in one dimension."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.baselines import dgp_ep, regressor
from experiments.baselines.dgp_ep import EPLayer, Law, gaussian_log_likelihood

NOISE = 0.09


@pytest.fixture
def layer(x64):
    """Two outputs, three inducing points in two dimensions, in general position."""
    generator = np.random.default_rng(0)
    return EPLayer(
        inducing=jnp.asarray(generator.normal(size=(3, 2))),
        log_variance=jnp.asarray(0.3),
        log_lengthscale=jnp.asarray([0.1, -0.2]),
        log_noise=jnp.asarray(math.log(NOISE)),
        linear=jnp.asarray(generator.normal(size=(2, 3))),
        root=jnp.asarray(generator.normal(size=(2, 3, 3))),
    )


def kernel(layer, A, B):
    scale = np.exp(np.asarray(layer.log_lengthscale))
    difference = (np.asarray(A)[:, None] - np.asarray(B)[None]) / scale
    return math.exp(layer.log_variance) * np.exp(-0.5 * np.sum(difference**2, axis=2))


def test_expected_kernels_are_those_of_many_draws(layer):
    mean, variance = np.array([[0.4, -0.3]]), np.array([[0.5, 0.2]])
    draws = mean + np.sqrt(variance) * np.random.default_rng(1).normal(size=(400_000, 2))
    values = kernel(layer, draws, layer.inducing)
    law = Law(jnp.asarray(mean), jnp.asarray(variance))
    first, second = dgp_ep.kernel_mean(layer, law)[0], dgp_ep.kernel_second_moments(layer, law)[0]
    np.testing.assert_allclose(first, values.mean(axis=0), rtol=5e-3)
    each_pair_once = np.triu_indices(values.shape[1])
    expected = (values.T @ values / len(values))[each_pair_once]
    np.testing.assert_allclose(second, expected, rtol=1e-2)


def test_known_inputs_are_gaussian_ones_of_no_variance(layer):
    X = jnp.asarray(np.random.default_rng(2).normal(size=(4, 2)))
    mean, covariance, _ = dgp_ep.posterior(layer, 1.0)
    known = dgp_ep.propagate(layer, X, mean, covariance)
    certain = dgp_ep.propagate(layer, Law(X, jnp.full(X.shape, 1e-12)), mean, covariance)
    np.testing.assert_allclose(known.mean, certain.mean, atol=1e-8)
    np.testing.assert_allclose(known.variance, certain.variance, atol=1e-7)


def test_moments_of_outputs_are_those_of_draws_through_the_layer(layer):
    generator = np.random.default_rng(3)
    mean_v, covariance_v, _ = dgp_ep.posterior(layer, 1.0)
    law = Law(jnp.array([[0.4, -0.3]]), jnp.array([[0.5, 0.2]]))
    found = dgp_ep.propagate(layer, law, mean_v, covariance_v)
    X = np.asarray(law.mean) + np.sqrt(np.asarray(law.variance)) * generator.normal(
        size=(100_000, 2)
    )
    outputs = dgp_ep.propagate(layer, jnp.asarray(X), mean_v, covariance_v)
    np.testing.assert_allclose(found.mean[0], outputs.mean.mean(axis=0), atol=0.02)
    total = np.var(np.asarray(outputs.mean), axis=0) + np.mean(np.asarray(outputs.variance), axis=0)
    np.testing.assert_allclose(found.variance[0], total, rtol=0.02)


def test_the_log_normalizer_is_that_of_a_gaussian(layer):
    mean, covariance, normalizer = dgp_ep.posterior(layer, 0.7)
    expected = 0.0
    for d in range(2):
        precision = np.linalg.inv(covariance[d])
        expected += 0.5 * mean[d] @ precision @ mean[d] + 0.5 * np.linalg.slogdet(covariance[d])[1]
    np.testing.assert_allclose(normalizer, expected, rtol=1e-8)


def one_layer_at_the_fixed_point(x, y, z):
    """The exact factors of one layer, given rows at one place x that is an inducing point; their product is shared."""
    layer = EPLayer(
        inducing=jnp.asarray(z),
        log_variance=jnp.asarray(0.2),
        log_lengthscale=jnp.asarray([0.0]),
        log_noise=jnp.asarray(math.log(NOISE)),
        linear=jnp.zeros((1, len(z))),
        root=jnp.zeros((1, len(z), len(z))),
    )
    K = kernel(layer, z, z) + dgp_ep._JITTER * math.exp(0.2) * np.eye(len(z))
    a = np.linalg.solve(np.linalg.cholesky(K), kernel(layer, z, x))[:, 0]
    unexplained = math.exp(0.2) - a @ a
    s2 = NOISE + unexplained
    n = len(y)
    # C C^T = n a a^T / s2; any root of it will do, and this one is triangular.
    root = np.zeros((len(z), len(z)))
    root[:, 0] = a
    triangular = np.linalg.cholesky(n / s2 * np.outer(a, a) + 1e-13 * np.eye(len(z)))
    return layer._replace(
        linear=jnp.asarray(np.sum(y) * a / s2)[None], root=jnp.asarray(triangular)[None]
    ), unexplained


def test_the_energy_of_one_layer_is_the_log_marginal_likelihood_at_the_fixed_point(x64):
    """Equal rows at an inducing point have equal factors, so the shared factor is exact, and so is EP."""
    z, y = np.array([[0.0], [1.0], [2.5]]), np.full(5, 0.8)
    layer, unexplained = one_layer_at_the_fixed_point(z[:1], y, z)
    X, Y = jnp.zeros((5, 1)), jnp.asarray(y)[:, None]
    found = dgp_ep.energy(
        [layer], X, lambda law: gaussian_log_likelihood(law, Y), n_rows=5, batch_size=5
    )
    variance = math.exp(0.2)
    covariance = (variance - unexplained) * np.ones((5, 5)) + (NOISE + unexplained) * np.eye(5)
    expected = stats.multivariate_normal.logpdf(y, np.zeros(5), covariance)
    assert abs(unexplained) < 1e-3
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_energy_of_one_row_is_its_exact_log_density(layer):
    x, y = jnp.array([[0.5, 0.1]]), jnp.array([[0.3, -0.4]])
    found = dgp_ep.energy(
        [layer], x, lambda law: gaussian_log_likelihood(law, y), n_rows=1, batch_size=1
    )
    deviation = math.sqrt(math.exp(0.3) + NOISE)
    np.testing.assert_allclose(
        found, stats.norm.logpdf(np.asarray(y), 0, deviation).sum(), rtol=1e-10
    )


def test_the_energy_of_a_mini_batch_is_unbiased(layer):
    generator = np.random.default_rng(4)
    X, Y = jnp.asarray(generator.normal(size=(6, 2))), jnp.asarray(generator.normal(size=(6, 2)))

    def energy(rows):
        likelihood = functools.partial(gaussian_log_likelihood, Y=Y[rows])
        return dgp_ep.energy([layer], X[rows], likelihood, n_rows=6, batch_size=len(rows))

    halves = [energy(jnp.arange(3)), energy(jnp.arange(3, 6))]
    np.testing.assert_allclose(np.mean(halves), energy(jnp.arange(6)), rtol=1e-10)


def test_softmax_samples_give_the_expected_probability():
    law = Law(jnp.array([[0.5, -0.2, 0.0]]), jnp.array([[0.3, 0.8, 0.1]]))
    found = dgp_ep.softmax_log_likelihood(law, jnp.array([1]), 200_000, jax.random.key(0))
    F = np.asarray(law.mean) + np.sqrt(np.asarray(law.variance)) * np.random.default_rng(0).normal(
        size=(400_000, 3)
    )
    expected = np.mean(np.exp(F[:, 1]) / np.exp(F).sum(axis=1))
    np.testing.assert_allclose(np.exp(found[0]), expected, rtol=5e-3)


def test_one_layer_learns_what_an_exact_process_knows():
    """With as many inducing points as are needed, predictions are near those of exact regression."""
    generator = np.random.default_rng(5)
    x = np.sort(generator.uniform(-3, 3, size=(80, 1)), axis=0)
    y = np.sin(2 * x[:, 0]) + 0.2 * generator.normal(size=80)
    grid = np.linspace(-2.8, 2.8, 41)[:, None]
    baseline = regressor(
        "dgp-ep", n_layers=1, n_inducing=20, n_steps=1500, learning_rate=0.03, batch_size=80,
        preprocessing="standard",
    )  # fmt: skip
    law = baseline.fit(x, y, seed=0)(grid)
    K = np.exp(-0.5 * ((x - x.T) / 0.8) ** 2)
    gain = np.linalg.solve(K + 0.04 * np.eye(80), np.exp(-0.5 * ((x - grid.T) / 0.8) ** 2))
    exact = gain.T @ y
    assert np.sqrt(np.mean((law.mean - exact) ** 2)) < 0.07
    assert np.median(np.sqrt(law.variance)) == pytest.approx(0.2, rel=0.35)


@pytest.mark.slow
def test_two_layers_learn_a_function_of_one_input():
    generator = np.random.default_rng(6)
    x = generator.uniform(-2, 2, size=(200, 1))
    y = np.where(x[:, 0] > 0, 1.0, 0.0) + 0.05 * generator.normal(size=200)
    baseline = regressor(
        "dgp-ep", width=2, n_inducing=15, n_steps=1000, learning_rate=0.02, batch_size=100
    )
    assert dataclasses.asdict(baseline)["n_layers"] == 2  # pyright: ignore[reportArgumentType]
    grid = np.concatenate([np.linspace(-1.8, -0.3, 20), np.linspace(0.3, 1.8, 20)])[:, None]
    law = baseline.fit(x, y, seed=0)(grid)
    assert np.sqrt(np.mean((law.mean - (grid[:, 0] > 0)) ** 2)) < 0.12
