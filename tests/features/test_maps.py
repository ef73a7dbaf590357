"""A feature map that the library does not have, by its one file and its line in the registry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from scipy import stats

from bochner import Deep, DeepGPRegressor, load
from bochner.distributed.blueprint import described, skeleton
from bochner.features import FEATURE_MAPS
from bochner.features.maps import AbstractDrawnFeatures, AbstractFeatureMap
from bochner.gp.layers import Layer, LayerSettings
from bochner.gp.model import DeepGP
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.inference.objectives import Evidence
from bochner.likelihoods import Gaussian
from bochner.rows.table import Table
from bochner.training import Stage, trainable
from tests import examples

NAME = "affine"


class AffineFeatures(AbstractDrawnFeatures):
    log_scale: Float[Array, "..."]

    def variance(self):
        return jnp.ones(())

    def columns(self, inputs):
        F = jnp.concatenate(inputs)
        return jnp.concatenate([jnp.exp(self.log_scale)[:, None] * F, jnp.ones((1, F.shape[1]))])


class Affine(AbstractFeatureMap):
    """The covariance `1 + sum_i (scale_i x_i) (scale_i x'_i)`, whose scales are learned with theta."""

    log_scale: Float[Array, "..."]

    @classmethod
    def start(cls, settings, *, d_in, key):
        return cls(jnp.zeros(d_in))

    @property
    def d_in(self):
        return self.log_scale.shape[-1]

    @property
    def n_features(self):
        return self.d_in + 1

    def covariance(self, X, X2):
        return 1.0 + (X * jnp.exp(2 * self.log_scale)[None, :]) @ X2.T

    def draw(self, noise):
        return AffineFeatures(self.log_scale)

    def trainable(self, *, theta, omega):
        return jax.tree.map(lambda _: theta, self)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(FEATURE_MAPS, NAME, Affine)


def shaken(n_layers=1, **options):
    settings = [LayerSettings(2, features=Affine, **options) for _ in range(n_layers - 1)]
    settings.append(LayerSettings(1, features=Affine, **options))
    start = Gaussian.start(1, noise_variance=0.3)
    key = jax.random.key(0)
    return examples.shaken(DeepGP.start(settings, start, d_in=2, feed_inputs=True, key=key))


def test_features_have_the_covariance(x64):
    layer = examples.shaken(Layer.start(LayerSettings(1, features=Affine), d_in=3, key=jax.random.key(0)))  # fmt: skip
    X, X2 = examples.inputs(5, 3), examples.inputs(4, 3, seed=1)
    expected = layer.features.covariance(X, X2)
    np.testing.assert_allclose(layer.Phi(X) @ layer.Phi(X2).T, expected, rtol=1e-10)


def test_outputs_are_features_times_weights_layer_by_layer(x64):
    model, X = shaken(4), np.asarray(examples.inputs(6, 2))
    noise = model.draw_noise(key=jax.random.key(1))
    drawn = [noise[0].W, *noise[1].W, noise[2].W]  # the second and third layer are a stack
    F = X
    for number, (layer, W) in enumerate(zip(model.layers, drawn, strict=True)):
        inputs = np.concatenate([F, X], axis=1) if number else X
        Phi = np.c_[inputs * np.exp(layer.features.log_scale), np.ones(len(X))]
        F = Phi @ np.asarray(layer.q_W.sample(W))
    np.testing.assert_allclose(model(jnp.asarray(X), noise, DrawWeights()), F, rtol=1e-8)


def test_the_evidence_is_that_of_linear_regression(x64):
    model, X = shaken(), np.asarray(examples.inputs(6, 2))
    y = np.sin(X[:, :1])
    noise = model.draw_noise((1,), key=jax.random.key(1))
    found = Evidence().fit(model, Table.of(X, y), noise, DrawWeights(), one_at_a_time=False)
    covariance = np.array(model.layers[0].features.covariance(X, X), float)
    covariance += float(jnp.exp(model.likelihood.log_noise_variance[0])) * np.eye(6)
    law = stats.multivariate_normal(np.zeros(6), covariance)  # pyright: ignore[reportArgumentType]
    expected = law.logpdf(y[:, 0])
    assert float(found) == pytest.approx(float(expected), rel=1e-4)


def test_the_local_reparameterization_has_its_moments(x64):
    layer, X = shaken().layers[0], examples.inputs(6, 2)
    local = LocalReparameterization()
    features = layer.features.draw(None)
    _, variance = features.moments(local.backend, (X.T,), layer.q_W.mean, layer.q_W.variance)
    expected = np.einsum("nf,fd->dn", np.asarray(layer.Phi(X)) ** 2, layer.q_W.variance)
    np.testing.assert_allclose(variance, expected, rtol=1e-10)


def test_its_parameters_are_learned_with_theta():
    for theta in (True, False):
        marks = trainable(shaken(), Stage(theta=theta, omega=True, n_mc=1))
        assert marks.layers[0].features.log_scale is theta


def test_workers_make_it_by_name(registered):
    model = shaken(2)
    found = skeleton(described(model, DrawWeights(), 1))
    assert jax.tree.structure(found) == jax.tree.structure(model)


@pytest.mark.parametrize("objective", ["elbo", "evidence"])
def test_an_estimator_learns_with_it_and_its_file_predicts_the_same(
    objective, registered, tmp_path
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = 2.0 * X[:, 0] - X[:, 1] + 0.05 * rng.normal(size=40)
    deep = Deep(
        n_layers=1, kernel=NAME, objective=objective, max_steps=200, theta_from=0, n_mc_predict=20,
        learning_rate=0.05, schedule="constant", initial_log_var=-6.0,
        **({} if objective == "evidence" else {"calibration": "none"}),
    )  # fmt: skip
    model = DeepGPRegressor(deep, random_state=0).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 0.2
    assert np.any(np.asarray(model.model_.each()[0].layers[0].features.log_scale) != 0)
    model.save(tmp_path / "model.bochner")
    np.testing.assert_array_equal(load(tmp_path / "model.bochner").predict(X), model.predict(X))
