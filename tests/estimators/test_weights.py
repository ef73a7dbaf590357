import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.bound import estimate_bound
from bochner.rows.table import Table
from tests import examples
from tests.estimators import problems
from tests.estimators.problems import SMALL

COUNTS = np.array([1, 3, 0, 2, 5, 1, 1, 4])


def gradient(model, table, noise):
    """The gradient of the bound over all rows of a table."""

    def bound(model):
        parts = (table.X, table.Y, table.weights, noise, DrawWeights())
        return estimate_bound(model, *parts, scale=1.0).elbo

    return eqx.filter_jit(eqx.filter_grad(bound))(model)


def test_the_gradient_of_weighted_rows_is_that_of_repeated_rows(x64):
    model = examples.deep_gp(2, feed_inputs=True, d_out=1)
    X = np.asarray(examples.inputs(len(COUNTS)))
    Y = np.sin(X[:, :1])
    noise = model.draw_noise((3,), key=jax.random.key(0))
    rows = np.repeat(np.arange(len(COUNTS)), COUNTS)
    weighted = gradient(model, Table.of(X, Y, COUNTS, dtype=jnp.float64), noise)
    repeated = gradient(model, Table.of(X[rows], Y[rows], dtype=jnp.float64), noise)
    for leaf, other in zip(jax.tree.leaves(weighted), jax.tree.leaves(repeated), strict=True):
        np.testing.assert_allclose(leaf, other, rtol=1e-9, atol=1e-10)


def test_rows_of_no_weight_teach_nothing():
    X, y = problems.numbers()
    lies = np.where(X[:, 0] > 0, y + 1000.0, y)
    weights = (X[:, 0] <= 0).astype(float)
    settings = SMALL | {"max_steps": 300, "preprocessing": "standard"}
    model = DeepGPRegressor(**settings).fit(X, np.where(weights > 0, y, y.mean()), weights)
    assert model.total_weight_ == weights.sum()
    liar = DeepGPRegressor(**settings).fit(X, lies)
    honest = X[:, 0] <= 0
    error = np.sqrt(np.mean((model.predict(X[honest]) - y[honest]) ** 2))
    assert error < 5.0
    assert np.abs(liar.predict(X[~honest]) - y[~honest]).mean() > 100


def test_balanced_class_weights_are_those_of_their_rows():
    X, y = problems.classes(n_classes=2)
    rare = np.concatenate([np.flatnonzero(y == "blue")[:10], np.flatnonzero(y == "green")])
    X, y = X[rare], y[rare]
    share = np.array([np.mean(y == name) for name in y])
    by_option = DeepGPClassifier(class_weight="balanced", **SMALL).fit(X, y)
    by_rows = DeepGPClassifier(**SMALL).fit(X, y, sample_weight=0.5 / share)
    by_names = DeepGPClassifier(
        class_weight={name: 0.5 / np.mean(y == name) for name in ("blue", "green")}, **SMALL
    ).fit(X, y)
    expected = by_rows.predict_proba(X)
    np.testing.assert_allclose(by_option.predict_proba(X), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(by_names.predict_proba(X), expected, rtol=1e-3, atol=1e-4)
    plain = DeepGPClassifier(**SMALL).fit(X, y)
    assert np.mean(plain.predict_proba(X)[:, 0] < expected[:, 0]) > 0.9


def test_the_bound_counts_total_weight():
    X, y = problems.numbers(100)
    settings = SMALL | {"batch_size": 100, "max_steps": 50}
    once = DeepGPRegressor(**settings).fit(X, y)
    thrice = DeepGPRegressor(**settings).fit(X, y, sample_weight=np.full(100, 3.0))
    assert (once.total_weight_, thrice.total_weight_) == (100.0, 300.0)
    first = [record["ell"] for record in (once.history_[0], thrice.history_[0])]
    assert first[1] == pytest.approx(3 * first[0], rel=1e-3)
