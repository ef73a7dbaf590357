"""What chains sample, against SciPy and quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bochner.exact.columns import Columns
from bochner.exact.kernels import Constant
from bochner.exact.parts import Part
from bochner.exact.process import Process
from bochner.exact.transforms import Standardized
from bochner.gp.layers import LayerSettings
from bochner.gp.model import DeepGP
from bochner.likelihoods import Gaussian, HeteroscedasticGaussian, Softmax
from bochner.mcmc.deep_target import DeepTarget
from bochner.mcmc.parameters_target import ParametersTarget
from bochner.mcmc.rotations import Effort, sample
from bochner.prediction.statistics import Moments
from bochner.rows.table import Table

KEY = jax.random.key(0)


def deep_model(likelihood, n_functions, seed=0):
    settings = [
        LayerSettings(2, n_rf=3, log_var=-2.0),
        LayerSettings(n_functions, n_rf=4, log_var=-2.0),
    ]
    return DeepGP.start(settings, likelihood, d_in=2, feed_inputs=True, key=jax.random.key(seed))


def table_of(n=7, integers=False):
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(n, 2)), generator.normal(size=(n, 1))
    return Table.of(X, (Y > 0).astype(int) if integers else Y)


def by_hand(model, table, z):
    """Features of the last layer and log noise at weights given as one vector, by NumPy."""
    W1, W2 = z[:12].reshape(6, 2), z[12:].reshape(8, -1)
    first, last = model.layers
    X = np.asarray(table.X)
    F = np.asarray(first.Phi(table.X)) @ W1
    Phi = np.asarray(last.Phi(jnp.concatenate([F, X], axis=1)), np.float64)
    if W2.shape[1] == 1:
        return Phi, np.full(len(X), float(model.likelihood.log_noise_variance[0]))
    scale = 1e-3 + np.logaddexp(0, np.asarray(model.likelihood.constant) + Phi @ W2[:, 1:] / 4)
    return Phi, 2 * np.log(scale[:, 0])


@pytest.fixture(scope="module", params=["gaussian", "heteroscedastic"])
def integrated(request):
    if request.param == "gaussian":
        models = [deep_model(Gaussian.start(1, noise_variance=0.1), 1, seed) for seed in (0, 1)]
    else:
        models = [deep_model(HeteroscedasticGaussian.start(1, 0.1), 2, seed) for seed in (0, 1)]
    table = table_of()
    return models, table, DeepTarget(models, table)


def test_the_last_layer_is_integrated_out(integrated):
    models, table, target = integrated
    y = np.asarray(table.Y)[:, 0]
    Z = target.starts(models, 2, key=KEY)
    assert Z.shape[0] == 4
    values, gradients = target(Z)
    watched = target.watched(Z)
    constant = -0.5 * len(y) * np.log(2 * np.pi)
    for i, model in enumerate(np.repeat(np.arange(2), 2)):
        Phi, log_noise = by_hand(models[model], table, Z[i])
        law = stats.multivariate_normal(np.zeros(len(y)), Phi @ Phi.T + np.diag(np.exp(log_noise)))
        assert values[i] + constant == pytest.approx(law.logpdf(y), rel=1e-4)
        covariance = np.asarray(law.cov)
        others = np.arange(len(y)) != 3
        k = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, 3])
        mean, variance = k @ y[others], covariance[3, 3] - k @ covariance[others, 3]
        np.testing.assert_allclose(
            watched[i][[3, 10]], [mean, np.log(variance)], rtol=1e-3, atol=1e-4
        )
    along = np.random.default_rng(1).normal(size=Z.shape)
    step = 1e-2
    difference = (target(Z + step * along)[0] - target(Z - step * along)[0]) / (2 * step)
    np.testing.assert_allclose(np.sum(gradients * along, axis=1), difference, rtol=0.02, atol=0.05)


def test_draws_predict_by_the_exact_last_layer(integrated):
    models, table, target = integrated
    Z = target.starts(models[:1], 1, key=KEY)
    # The same hidden weights many times: what varies is the last layer, whose posterior is known.
    positions = np.repeat(np.stack([Z, Z]), 400, axis=1)
    found = target.posterior(positions, key=KEY).map_rows(Moments(), np.asarray(table.X))
    y, means = np.asarray(table.Y)[:, 0], []
    for model in models:
        Phi, log_noise = by_hand(model, table, Z[0])
        K = Phi @ Phi.T
        means.append(K @ np.linalg.solve(K + np.diag(np.exp(log_noise)), y))
    np.testing.assert_allclose(found["mean"][:, 0], np.mean(means, axis=0), atol=0.08)


def test_of_classes_all_weights_are_sampled():
    model, table = deep_model(Softmax(), 2), table_of(integers=True)
    target = DeepTarget([model], table)
    Z = target.starts([model], 2, key=KEY)
    values, _ = target(Z)
    Phi, _ = by_hand(deep_model(Gaussian.start(1), 1), table, np.append(Z[0][:12], np.zeros(8)))
    F = Phi @ Z[0][12:].reshape(8, 2)
    expected = jax.nn.log_softmax(jnp.asarray(F))[jnp.arange(7), table.Y[:, 0]].sum()
    assert values[0] == pytest.approx(float(expected), rel=1e-3)
    np.testing.assert_allclose(target.watched(Z)[0], F.ravel(), atol=1e-4)
    predicted = target.posterior(Z[None], key=KEY)
    assert predicted.noise[0].W.shape[:2] == (2, 1)


def test_hyper_parameters_agree_with_quadrature():
    generator = np.random.default_rng(0)
    y = 3.0 + 2.0 * generator.normal(size=8)
    rows = Columns.learn([np.arange(8.0)])([np.arange(8.0)])
    transform = Standardized(2.0, 2.0)
    process = Process.condition(Constant(), np.zeros(1), rows, transform(y), np.full(8, 0.5))
    part = Part("constant covariance", "sum", transform, process, 0.5)
    target = ParametersTarget(part, rows, y)
    starts = generator.standard_normal((4, 2))
    # What is found in a first round gives the units of the second, and changes nothing of where chains go.
    first = sample(
        target, starts, Effort(n_chains=4, ess=50), seed=0, told=lambda share, text: None
    )
    target.moved_to(first.positions.reshape(-1, 2).astype(np.float64))
    effort = Effort(n_chains=4, ess=1000)
    chains = sample(target, starts, effort, seed=0, told=lambda share, text: None)
    v = np.stack([target.v(z) for z in chains.positions.reshape(-1, 2)])

    t = transform(y)
    prior = target._prior
    axes = [
        m + d * np.linspace(-6, 6, 241) for m, d in zip(prior.values, prior.deviations, strict=True)
    ]
    noise, variance = (grid.ravel() for grid in np.meshgrid(*axes, indexing="ij"))
    s, c = np.exp(noise) + 1e-6, np.exp(variance)
    # Of a constant and noise the covariance has two eigenvalues.
    along, across = len(t) * np.mean(t) ** 2, np.sum((t - np.mean(t)) ** 2)
    log_p = -0.5 * (np.log(s + 8 * c) + along / (s + 8 * c) + 7 * np.log(s) + across / s)
    log_p -= 0.5 * ((noise - prior.values[0]) / prior.deviations[0]) ** 2
    log_p -= 0.5 * ((variance - prior.values[1]) / prior.deviations[1]) ** 2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    grid = np.stack([noise, variance], axis=1)
    mean = p @ grid
    deviation = np.sqrt(p @ (grid - mean) ** 2)
    np.testing.assert_allclose(v.mean(axis=0), mean, atol=0.15 * deviation.max())
    np.testing.assert_allclose(v.std(axis=0), deviation, rtol=0.12)
