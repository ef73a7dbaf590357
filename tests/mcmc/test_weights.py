"""NUTS on the random-feature model against exact answers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.features.spectra import PriorFixed, VarFixed, VarResampled
from bochner.gp.layers import LayerSettings
from bochner.gp.model import DeepGP
from bochner.likelihoods import Gaussian, Softmax
from bochner.mcmc import effective_sample_size, sample_weights
from bochner.mcmc.weights import Target, at_prior
from bochner.prediction.statistics import Moments

KEY = jax.random.key(0)


def start(*widths, likelihood=None, n_rf=3, omega=PriorFixed, d_in=1, feed_inputs=False, seed=0):
    return DeepGP.start(
        [LayerSettings(width, n_rf=n_rf, omega=omega, log_var=-2.0) for width in widths],
        likelihood or Gaussian.start(1, noise_variance=0.1),
        d_in=d_in,
        feed_inputs=feed_inputs,
        key=jax.random.key(seed),
    )


def z_scores(draws, expected):
    error = draws.std(axis=(0, 1)) / np.sqrt(effective_sample_size(draws))
    return (draws.mean(axis=(0, 1)) - expected) / error


@pytest.fixture(scope="module")
def line():
    x = jnp.linspace(-2, 2, 8)[:, None]
    return x, jnp.sin(2 * x) + 0.2 * jnp.cos(9 * x)


@pytest.mark.parametrize("omega", [PriorFixed, pytest.param(VarFixed, marks=pytest.mark.slow)])
def test_one_layer_is_bayesian_linear_regression_on_the_features(line, omega):
    x, y = line
    model = start(1, omega=omega)
    draws = sample_weights(model, x, y, n_samples=1000, n_warmup=300, n_chains=4, key=KEY)
    Phi = np.asarray(model.layers[0].Phi(x), np.float64)
    covariance = np.linalg.inv(np.eye(6) + Phi.T @ Phi / 0.1)
    mean = covariance @ Phi.T @ np.asarray(y)[:, 0] / 0.1
    W = np.asarray(draws.W[0].W)[..., 0]
    assert np.abs(z_scores(W, mean)).max() < 4
    products = (W - mean)[..., :, None] * (W - mean)[..., None, :]
    assert np.abs(z_scores(products, covariance)).max() < 4
    assert np.abs(z_scores(draws.F[..., 0], Phi @ mean)).max() < 4
    assert draws.rhat.max() < 1.02
    assert draws.n_divergent == 0


def test_the_posterior_predicts_as_a_fitted_model_does(line):
    x, y = line
    draws = sample_weights(start(2, 1), x, y, n_samples=40, n_warmup=40, n_chains=2, key=KEY)
    moments = draws.posterior.map_rows(Moments(), np.asarray(x))
    np.testing.assert_allclose(moments["mean"], draws.F.mean(axis=(0, 1)), atol=1e-5)
    np.testing.assert_allclose(moments["epistemic"], draws.F.var(axis=(0, 1)), atol=1e-4)
    np.testing.assert_allclose(draws.functions(x), draws.F, atol=1e-6)


def test_the_density_is_the_joint_of_weights_and_targets_at_any_depth():
    # Four layers, of which the middle ones are stacked, inputs fed, classes as targets.
    model = start(2, 2, 2, 3, likelihood=Softmax(), d_in=2, feed_inputs=True)
    assert len(model.blocks) < 4
    X = jax.random.normal(jax.random.key(1), (5, 2))
    Y = jnp.array([[0], [2], [1], [1], [0]])
    target = Target(at_prior(model), X, Y, None, jnp.ones(()))
    W = model.draw_noise(key=KEY)
    F, fed = X, np.asarray(X)
    for number, layer in enumerate(model.layers):
        inputs = F if number == 0 else jnp.concatenate([F, fed], axis=1)
        matrices = [part for block in W for part in (block.W if block.W.ndim == 3 else [block.W])]
        F = layer.Phi(inputs) @ matrices[number]
    log_p = jax.nn.log_softmax(F)[jnp.arange(5), Y[:, 0]].sum()
    prior = sum(-0.5 * float(jnp.sum(block.W**2)) for block in W)
    assert float(target((W, None))) == pytest.approx(float(log_p) + prior, rel=1e-4)


@pytest.mark.slow
def test_deep_models_of_classes_are_sampled():
    model = start(2, 2, 2, 3, likelihood=Softmax(), d_in=2, feed_inputs=True)
    X, Y = jax.random.normal(jax.random.key(1), (5, 2)), jnp.array([[0], [2], [1], [1], [0]])
    draws = sample_weights(model, X, Y, n_samples=500, n_warmup=300, n_chains=2, key=KEY)
    assert draws.F.shape == (2, 500, 5, 3)
    assert draws.rhat.max() < 1.1


def test_theta_agrees_with_quadrature_over_the_exact_evidence(line):
    x, y = line
    model = start(1, n_rf=2)
    nodes = np.linspace(-5, 5, 50)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    log_prior = -0.5 * np.sum(grid**2, axis=1)
    center = np.array([0.0, 0.0, np.log(0.1)])
    epsilon = np.asarray(model.layers[0].features.spectrum.epsilon, np.float64)
    deviation = 0.5
    theta = center + deviation * grid
    Z = np.asarray(x)[None] * (epsilon[0] * np.exp(-theta[:, [1]]))[:, None, :]
    Phi = (
        np.exp(0.5 * theta[:, 0])[:, None, None]
        * np.concatenate([np.cos(Z), np.sin(Z)], -1)
        / np.sqrt(2)
    )
    S = Phi @ Phi.transpose(0, 2, 1) + np.exp(theta[:, 2])[:, None, None] * np.eye(8)
    targets = np.asarray(y, np.float64)[:, 0]
    quadratic = np.einsum(
        "i,gi->g",
        targets,
        np.linalg.solve(S, np.broadcast_to(targets, (len(S), 8))[..., None])[..., 0],
    )
    log_posterior = log_prior - 0.5 * quadratic - 0.5 * np.linalg.slogdet(S)[1]
    posterior = np.exp(log_posterior - log_posterior.max())
    posterior /= posterior.sum()

    draws = sample_weights(
        model, x, y, n_samples=1500, n_warmup=500, n_chains=4, theta_center=model,
        theta_deviation=deviation, key=KEY,
    )  # fmt: skip
    assert draws.theta is not None
    kernel = draws.theta.blocks[0].features.kernel
    found = np.stack(
        [kernel.log_variance, kernel.log_lengthscale[..., 0], draws.theta.likelihood.log_noise_variance[..., 0]],
        axis=-1,
    )  # fmt: skip
    assert np.abs(z_scores(found, posterior @ theta)).max() < 4
    assert np.abs(z_scores(found**2, posterior @ theta**2)).max() < 4
    with pytest.raises(ValueError, match="theta of its own"):
        _ = draws.posterior
    assert draws.functions(x).shape == (4, 1500, 8, 1)


def test_learned_frequencies_count_with_their_prior_given_theta(line):
    x, y = line
    model = start(1, omega=VarFixed)
    from bochner.mcmc.weights import _theta_of

    theta, W = _theta_of(model), model.draw_noise(key=KEY)
    target = Target(at_prior(model), x, y, theta, jnp.ones(()))
    log_lengthscale = lambda tree: tree.blocks[0].features.kernel.log_lengthscale  # noqa: E731
    moved = eqx.tree_at(log_lengthscale, theta, log_lengthscale(theta) + 0.3)
    Omega = np.asarray(model.layers[0].features.spectrum.Omega(model.layers[0].features.kernel))
    # Functions do not see the lengthscale here: what changes is theta's prior and that of Omega.
    expected = -0.5 * 0.3**2 + Omega.size * 0.3 - 0.5 * np.sum(Omega**2) * (np.exp(0.6) - 1)
    assert float(target((W, moved)) - target((W, theta))) == pytest.approx(expected, rel=1e-3)


def test_frequencies_drawn_anew_are_refused(line):
    with pytest.raises(ValueError, match="fixed frequencies"):
        sample_weights(start(1, omega=VarResampled), *line, key=KEY)
