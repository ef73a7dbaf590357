"""The exact two-layer sampler against closed forms, quadrature and its own prior."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare, multivariate_normal

from bochner.kernels import RBF
from bochner.mcmc import effective_sample_size, two_layer, two_layer_posterior
from bochner.mcmc.two_layer import (
    collapsed_log_likelihood,
    draw_chain,
    draw_output,
    hidden_factor,
)

KEY = jax.random.key(0)


def covariance(a, b, variance=1.0, lengthscale=1.0):
    return variance * np.exp(-0.5 * ((a[:, None] - b[None, :]) / lengthscale) ** 2)


def z_scores(draws, expected):
    """How many standard errors the mean over chains and samples is from what it should be."""
    error = draws.std(axis=(0, 1)) / np.sqrt(effective_sample_size(draws))
    return (draws.mean(axis=(0, 1)) - expected) / error


def assert_moments(draws, mean, variance):
    assert np.abs(z_scores(draws, mean)).max() < 4
    assert np.abs(z_scores((draws - mean) ** 2, variance)).max() < 4


# Gauss-Hermite nodes for a standard normal, as a grid in three dimensions with its weights.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
GRID = np.stack(np.meshgrid(NODES, NODES, NODES, indexing="ij"), axis=-1).reshape(-1, 3)
GRID_WEIGHTS = functools.reduce(np.multiply.outer, [WEIGHTS / WEIGHTS.sum()] * 3).reshape(-1)


def test_two_points_agree_with_quadrature():
    x, y = np.array([0.0, 1.0, 0.6]), np.array([1.0, -0.5])
    variances, lengthscales, noise = (1.5, 0.8), (0.9, 0.7), 0.1
    # Both data points and the new one, on a grid over the prior of the hidden layer.
    F = GRID @ np.linalg.cholesky(covariance(x, x, variances[0], lengthscales[0])).T
    K = variances[1] * np.exp(-0.5 * ((F[:, :, None] - F[:, None, :]) / lengthscales[1]) ** 2)
    S = K[:, :2, :2] + noise * np.eye(2)
    alpha = np.linalg.solve(S, np.broadcast_to(y, (len(S), 2))[..., None])[..., 0]
    likelihood = np.exp(-0.5 * alpha @ y) / np.sqrt(np.linalg.det(S))
    posterior = GRID_WEIGHTS * likelihood / (GRID_WEIGHTS * likelihood).sum()
    means = np.einsum("gij,gj->gi", K[:, :, :2], alpha)
    seconds = np.einsum("gii->gi", K) - np.einsum(
        "gij,gjk,gik->gi", K[:, :, :2], np.linalg.inv(S), K[:, :, :2]
    ) + means**2  # fmt: skip

    found = two_layer_posterior(
        x[:2, None], y, x[2:, None], variances=variances, lengthscales=lengthscales, noise_variance=noise,
        n_samples=3000, n_warmup=200, n_thin=4, n_chains=6, key=KEY,
    )  # fmt: skip
    hidden = np.concatenate([found.hidden, found.hidden_new], axis=-1)
    output = np.concatenate([found.output, found.output_new], axis=-1)
    assert np.abs(z_scores(hidden**2, posterior @ F**2)).max() < 4
    distance = np.abs(hidden[..., [0]] - hidden[..., 1:])
    # |f - f'| has a kink, on which this quadrature is not exact; a smooth bounded function has none.
    expected = posterior @ np.exp(-((F[:, [0]] - F[:, 1:]) ** 2))
    assert np.abs(z_scores(np.exp(-(distance**2)), expected)).max() < 4
    assert np.abs(z_scores(output, posterior @ means)).max() < 4
    assert np.abs(z_scores(output**2, posterior @ seconds)).max() < 4


def test_with_a_flat_hidden_layer_the_output_is_a_one_layer_gaussian_process():
    # All hidden values are then equal, and the output is one unknown constant of known posterior.
    x, y = np.linspace(-1, 1, 6), np.array([0.4, 1.2, 0.9, 0.1, 1.5, 0.6])
    variance, noise = 2.0, 0.5
    found = two_layer_posterior(
        x[:, None], y, [[0.3]], variances=(1e-8, variance), lengthscales=(1.0, 1.0), noise_variance=noise,
        n_samples=200, n_warmup=50, n_thin=1, n_chains=30, key=KEY,
    )  # fmt: skip
    precision = 1 / variance + len(y) / noise
    assert_moments(found.output, np.sum(y) / noise / precision, 1 / precision)
    assert_moments(found.output_new, np.sum(y) / noise / precision, 1 / precision)


def test_given_the_hidden_layer_the_output_is_that_of_a_one_layer_gaussian_process():
    hidden, y, noise = np.linspace(-2, 2, 7), np.sin(np.arange(5.0)), 0.2
    kernel_values = covariance(hidden, hidden, 1.3, 0.8)
    gain = kernel_values[:, :5] @ np.linalg.inv(kernel_values[:5, :5] + noise * np.eye(5))
    with jax.enable_x64(True):
        kernel = RBF(jnp.log(1.3), jnp.log(0.8))
        draws = jax.vmap(lambda key: draw_output(jnp.asarray(hidden), jnp.asarray(y), kernel, noise, key))(
            jax.random.split(KEY, 20_000)
        )  # fmt: skip
    draws = np.asarray(draws)
    posterior = kernel_values - gain @ kernel_values[:5]
    deviation = np.sqrt(np.diag(posterior))
    assert np.abs((draws.mean(axis=0) - gain @ y) / (deviation / np.sqrt(20_000))).max() < 4
    correlation = np.cov(draws.T) / np.outer(deviation, deviation)
    expected = posterior / np.outer(deviation, deviation)
    assert np.abs(correlation - expected).max() < 4 * np.sqrt(2 / 20_000)


def test_elliptical_slice_sampling_finds_the_posterior_of_a_one_layer_gaussian_process(monkeypatch):
    # With the likelihood of noisy observations of the hidden layer itself, the answer is known.
    x, new, y, noise = (
        np.linspace(-1, 1, 4),
        np.array([-0.2, 2.0]),
        np.array([1.0, -1.0, 0.5, 0.8]),
        0.3,
    )
    everywhere = np.concatenate([x, new])
    K = covariance(everywhere, everywhere, 1.4, 0.6)
    gain = K[:, :4] @ np.linalg.inv(K[:4, :4] + noise * np.eye(4))
    mean, posterior = gain @ y, K - gain @ K[:4]
    monkeypatch.setattr(
        two_layer,
        "collapsed_log_likelihood",
        lambda hidden, y, kernel, noise: -0.5 * jnp.sum((y - hidden) ** 2) / noise,
    )
    with jax.enable_x64(True):
        factor = hidden_factor(RBF(jnp.log(1.4), jnp.log(0.6)), jnp.asarray(everywhere)[:, None])
        kernel = RBF(jnp.zeros(()), jnp.zeros(()))

        @jax.jit
        def chains(keys):
            steps = jnp.full(2000, 4)
            return jax.vmap(lambda k: draw_chain(factor, jnp.asarray(y), kernel, noise, k, steps))(
                keys
            )

        found = chains(jax.random.split(KEY, 5))
    hidden = np.concatenate([found.hidden, found.hidden_new], axis=-1)[:, 20:]
    assert_moments(hidden, mean, np.diag(posterior))
    products = (hidden[..., 0] - mean[0])[..., None] * (hidden - mean)
    assert np.abs(z_scores(products, posterior[0])).max() < 4


def test_the_sign_of_the_hidden_layer_is_free():
    x = np.linspace(-1, 1, 6)
    y = np.sin(3 * x)
    hidden = np.random.default_rng(0).normal(size=(5, 6))
    with jax.enable_x64(True):
        kernel = RBF(jnp.log(1.2), jnp.log(0.7))
        for values in hidden:
            plus, minus = (
                float(collapsed_log_likelihood(jnp.asarray(sign * values), jnp.asarray(y), kernel, 0.05))
                for sign in (1.0, -1.0)
            )  # fmt: skip
            S = covariance(values, values, 1.2, 0.7) + 0.05 * np.eye(6)
            assert plus == minus
            assert plus == pytest.approx(multivariate_normal.logpdf(y, np.zeros(6), S), rel=1e-9)
    found = two_layer_posterior(
        x[:, None], y, [[0.3]], variances=(1.0, 1.2), lengthscales=(1.0, 0.7), noise_variance=0.05,
        n_samples=200, n_warmup=300, n_thin=5, n_chains=30, key=KEY,
    )  # fmt: skip
    assert np.abs(z_scores(found.hidden, 0.0)).max() < 4
    positive = np.mean(found.hidden[..., 4] > 0)
    assert 0.35 < positive < 0.65
    assert found.diagnostics.rhat_abs_hidden.shape == (6,)


def test_with_huge_noise_the_prior_comes_back():
    x = np.array([-1.0, 0.0, 0.7])
    found = two_layer_posterior(
        x[:2, None], [3.0, -2.0], x[2:, None], variances=(1.5, 0.8), lengthscales=(0.9, 0.7), noise_variance=1e8,
        n_samples=3000, n_warmup=20, n_thin=2, n_chains=6, key=KEY,
    )  # fmt: skip
    hidden = np.concatenate([found.hidden, found.hidden_new], axis=-1)
    output = np.concatenate([found.output, found.output_new], axis=-1)
    K = covariance(x, x, 1.5, 0.9)
    assert np.abs(z_scores(hidden, 0.0)).max() < 4
    assert np.abs(z_scores(hidden[..., :, None] * hidden[..., None, :], K)).max() < 4
    # The mean of exp(-d^2 / 2 l^2) for d normal of variance s^2 is (1 + s^2 / l^2)^(-1/2).
    squared = np.add.outer(np.diag(K), np.diag(K)) - 2 * K
    expected = 0.8 / np.sqrt(1 + squared / 0.7**2)
    assert np.abs(z_scores(output[..., :, None] * output[..., None, :], expected)).max() < 4


N_SIMULATIONS, N_RANKED = 320, 15


@jax.jit
def simulated(keys, noise_assumed):
    """Draw truths from the joint prior, and from the posterior of each (Talts et al., 2018)."""
    x = jnp.array([-1.0, -0.3, 0.4, 1.2])  # the last is new
    first, second = RBF(jnp.log(1.5), jnp.log(0.8)), RBF(jnp.log(1.0), jnp.log(0.6))
    factor = hidden_factor(first, x[:, None])
    n_steps = jnp.full(N_RANKED, 30).at[0].set(150)

    def quantities(hidden, output):
        products = hidden[:, :1] * hidden[:, 1:]
        return jnp.column_stack(
            [jnp.abs(hidden), products, output, jnp.abs(output - output[:, :1])]
        )

    def simulate(key):
        key_hidden, key_output, key_noise, key_chain = jax.random.split(key, 4)
        hidden = factor @ jax.random.normal(key_hidden, (4,))
        K = second.covariance(hidden[:, None], hidden[:, None]) + 1e-10 * jnp.eye(4)
        output = jnp.linalg.cholesky(K) @ jax.random.normal(key_output, (4,))
        y = output[:3] + jnp.sqrt(0.05) * jax.random.normal(key_noise, (3,))
        drawn = draw_chain(factor, y, second, noise_assumed, key_chain, n_steps)
        hiddens = jnp.concatenate([drawn.hidden, drawn.hidden_new], axis=1)
        outputs = jnp.concatenate([drawn.output, drawn.output_new], axis=1)
        return quantities(hidden[None], output[None])[0], quantities(hiddens, outputs)

    return jax.vmap(simulate)(keys)


def simulated_ranks(noise_assumed):
    """Rank each truth among the draws from its posterior."""
    with jax.enable_x64(True):
        keys = jax.random.split(KEY, N_SIMULATIONS)
        truths, draws = simulated(keys, jnp.asarray(noise_assumed))
        truths, draws = np.asarray(truths), np.asarray(draws)
    ranks = np.sum(draws < truths[:, None], axis=1)
    return ranks[:, truths.std(axis=0) > 0]


def p_values(ranks):
    counts = [np.bincount(column, minlength=N_RANKED + 1) for column in ranks.T]
    return np.array([chisquare(count).pvalue for count in counts])


def test_ranks_of_simulated_truths_are_uniform():
    found = p_values(simulated_ranks(noise_assumed=0.05))
    # One of them falls below this with a chance of one in a thousand.
    assert found.min() > 1e-3 / len(found)


def test_ranks_of_simulated_truths_betray_a_wrong_noise_variance():
    assert p_values(simulated_ranks(noise_assumed=0.5)).min() < 1e-6


def test_diagnostics_report_jitter_and_agreement():
    x = np.linspace(-1, 1, 8)
    found = two_layer_posterior(
        x[:, None], np.sin(3 * x), x[:, None], variances=(2.0, 3.0), lengthscales=(1.0, 1.0),
        noise_variance=0.01, n_samples=400, n_warmup=400, n_thin=10, n_chains=4, key=KEY,
    )  # fmt: skip
    report = found.diagnostics
    assert report.jitter == pytest.approx((2e-10, 3e-10))
    assert report.worst_rhat < 1.1
    assert 50 < report.smallest_ess < 4 * 400 * 2
    assert report.proposals_per_step > 1
    hidden, output, hidden_new, output_new = found
    assert hidden.dtype == output.dtype == np.float64
    # New inputs that are the data have the data's values, up to the jitter.
    np.testing.assert_allclose(hidden_new, hidden, atol=1e-3)
    np.testing.assert_allclose(output_new, output, atol=1e-2)


def test_the_same_key_gives_the_same_draws():
    x = np.linspace(-1, 1, 6)
    settings = {
        "variances": (1.0, 1.0), "lengthscales": (1.0, 1.0), "noise_variance": 0.1,
        "n_samples": 200, "n_warmup": 1, "n_thin": 1, "n_chains": 30,
    }  # fmt: skip
    draws = [
        two_layer_posterior(x[:, None], x, [[0.3]], **settings, key=jax.random.key(seed))
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(draws[0].output_new, draws[1].output_new)
    assert not np.array_equal(draws[0].output_new, draws[2].output_new)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variances": (1.0, 0.0)}, "variances"),
        ({"lengthscales": (1.0,)}, "lengthscales"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"n_thin": 0}, "n_thin"),
        ({"y": [1.0]}, "as many rows"),
        ({"X_new": [[1.0, 2.0]]}, "1 columns"),
        ({"y": [1.0, np.nan]}, "finite"),
    ],
)
def test_wrong_input_is_named(change, message):
    given = {
        "X": [[0.0], [1.0]], "y": [0.0, 1.0], "X_new": [[0.5]], "variances": (1.0, 1.0),
        "lengthscales": (1.0, 1.0), "noise_variance": 0.1, "key": KEY,
    } | change  # fmt: skip
    with pytest.raises(ValueError, match=message):
        two_layer_posterior(given.pop("X"), given.pop("y"), given.pop("X_new"), **given)
