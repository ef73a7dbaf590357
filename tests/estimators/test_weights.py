import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import is_regressor

from bochner import Constant, DeepGPClassifier, DeepGPRegressor, Exact, Linear
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.bound import estimate_bound
from bochner.rows.table import Table
from tests import examples
from tests.deep_alone import deep_classifier, deep_regressor
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
    model = deep_regressor(**settings).fit(X, np.where(weights > 0, y, y.mean()), weights)
    assert model.total_weight_ == weights.sum()
    liar = deep_regressor(**settings).fit(X, lies)
    honest = X[:, 0] <= 0
    error = np.sqrt(np.mean((model.predict(X[honest]) - y[honest]) ** 2))
    assert error < 5.0
    assert np.abs(liar.predict(X[~honest]) - y[~honest]).mean() > 100


def test_balanced_class_weights_are_those_of_their_rows():
    X, y = problems.classes(n_classes=2)
    rare = np.concatenate([np.flatnonzero(y == "blue")[:10], np.flatnonzero(y == "green")])
    X, y = X[rare], y[rare]
    share = np.array([np.mean(y == name) for name in y])
    by_option = deep_classifier(**SMALL, class_weight="balanced").fit(X, y)
    by_rows = deep_classifier(**SMALL).fit(X, y, sample_weight=0.5 / share)
    by_names = deep_classifier(
        **SMALL, class_weight={name: 0.5 / np.mean(y == name) for name in ("blue", "green")}
    ).fit(X, y)
    expected = by_rows.predict_proba(X)
    np.testing.assert_allclose(by_option.predict_proba(X), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(by_names.predict_proba(X), expected, rtol=1e-3, atol=1e-4)
    plain = deep_classifier(**SMALL).fit(X, y)
    assert np.mean(plain.predict_proba(X)[:, 0] < expected[:, 0]) > 0.9


def test_the_bound_counts_total_weight():
    X, y = problems.numbers(100)
    settings = SMALL | {"batch_size": 100, "max_steps": 50}
    once = deep_regressor(**settings).fit(X, y)
    thrice = deep_regressor(**settings).fit(X, y, sample_weight=np.full(100, 3.0))
    assert (once.total_weight_, thrice.total_weight_) == (100.0, 300.0)
    first = [record["ell"] for record in (once.history_[0], thrice.history_[0])]
    assert first[1] == pytest.approx(3 * first[0], rel=1e-3)


# Mixtures of models in the space of rows.

MEMBERS = [("constant", Constant()), ("linear", Linear()), ("exact", Exact())]


def mixture(task="numbers"):
    kind = DeepGPRegressor if task == "numbers" else DeepGPClassifier
    return kind(MEMBERS, random_state=0)


def predicted(model, X):
    return model.predict(X, return_std=True) if is_regressor(model) else model.predict_proba(X)


@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_in_a_mixture_rows_of_no_weight_are_as_if_they_were_not_there(task):
    X, y = problems.numbers(60) if task == "numbers" else problems.classes(60)
    weights = (np.arange(60) % 3 > 0).astype(float)
    model = mixture(task).fit(X, y, sample_weight=weights)
    alone = mixture(task).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(predicted(model, X), predicted(alone, X))
    assert model.summary_ == alone.summary_


@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_in_a_mixture_the_same_weight_for_all_rows_changes_nothing(task):
    X, y = problems.numbers(60) if task == "numbers" else problems.classes(60)
    once, thrice = mixture(task).fit(X, y), mixture(task).fit(X, y, sample_weight=np.full(60, 3.0))
    assert (once.total_weight_, thrice.total_weight_) == (60.0, 180.0)
    np.testing.assert_array_equal(predicted(thrice, X), predicted(once, X))


def test_in_a_mixture_heavy_rows_draw_predictions_to_them():
    generator = np.random.default_rng(0)
    X, high = generator.normal(size=(80, 2)), np.arange(80) % 2 == 0
    y = np.where(high, 1.0, -1.0) + 0.1 * generator.normal(size=80)
    for part, sign in ((high, 1.0), (~high, -1.0)):
        model = mixture().fit(X, y, sample_weight=np.where(part, 9.0, 1.0))
        assert model.predict(X).mean() == pytest.approx(0.8 * sign, abs=0.1)
    labels = np.where(high, "high", "low")
    for part, share in ((high, 0.9), (~high, 0.1)):
        model = mixture("classes").fit(X, labels, sample_weight=np.where(part, 9.0, 1.0))
        assert model.predict_proba(X)[:, 0].mean() == pytest.approx(share, abs=0.07)


def test_balanced_classes_count_the_same_in_a_mixture():
    X, y = problems.classes(60, n_classes=2)
    rare = np.concatenate([np.flatnonzero(y == "blue")[:8], np.flatnonzero(y == "green")])
    model = DeepGPClassifier([("constant", Constant())], class_weight="balanced").fit(
        X[rare], y[rare]
    )
    np.testing.assert_allclose(model.predict_proba(X), 0.5)
