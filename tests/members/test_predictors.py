"""What mixtures predict is made of what their members predict."""

import jax
import numpy as np
import pytest

from bochner.fitting.rows import Rows
from bochner.members.parts import DeepPart, RowsPart
from bochner.members.predictors import SideBySide, StackClassifier, StackRegressor, with_draws
from tests.members.tables import curve, sides


def rows_of(model, X, y):
    return Rows(X, model.fitted_.task.targets(y, X), np.ones(len(X)))


def test_a_mixture_has_members_with_weight(mixture, class_mixture):
    for model, kind in ((mixture, StackRegressor), (class_mixture, StackClassifier)):
        predictor = model.fitted_.predictor
        assert isinstance(predictor, kind)
        assert predictor.weights.sum() == pytest.approx(1.0)
        assert np.all(predictor.weights > 0)
        assert all(isinstance(part, RowsPart | DeepPart) for part in predictor.parts)


def test_mean_and_density_are_those_of_the_members(mixture):
    X, y = curve(20, seed=1)
    predictor = mixture.fitted_.predictor
    laws = [part.law(X) for part in predictor.parts]
    mean = sum(w * law.moments()[0] for w, law in zip(predictor.weights, laws, strict=True))
    np.testing.assert_allclose(mixture.predict(X), mean)
    density = sum(
        w * np.exp(law.log_density(y)) for w, law in zip(predictor.weights, laws, strict=True)
    )
    np.testing.assert_allclose(mixture.log_prob(X, y), np.log(density))


def test_quantiles_hold_their_share(mixture):
    X, y = curve(500, seed=2)
    low, middle, high = mixture.predict_quantiles(X, [0.05, 0.5, 0.95]).T
    assert np.all((low < middle) & (middle < high))
    assert 0.8 < np.mean((low <= y) & (y <= high)) < 0.98


def test_probabilities_are_those_of_the_members(class_mixture):
    X, y = sides(20, seed=1)
    predictor = class_mixture.fitted_.predictor
    found = sum(
        w * part.probabilities(X)
        for w, part in zip(predictor.weights, predictor.parts, strict=True)
    )
    np.testing.assert_allclose(class_mixture.predict_proba(X), found, rtol=1e-6)
    places = np.searchsorted(class_mixture.classes_, y)
    np.testing.assert_allclose(
        class_mixture.log_prob(X, y), np.log(class_mixture.predict_proba(X)[np.arange(20), places])
    )


def test_many_rows_are_taken_in_parts(mixture, class_mixture, monkeypatch):
    X, y = curve(23, seed=1)
    summary = mixture.predict_summary(X, [0.1, 0.9])
    density, probabilities = mixture.log_prob(X, y), class_mixture.predict_proba(X)
    monkeypatch.setattr("bochner.members.predictors._CHUNK", 10)
    for name, values in mixture.predict_summary(X, [0.1, 0.9]).items():
        np.testing.assert_allclose(values, summary[name], rtol=1e-5)
    np.testing.assert_allclose(mixture.log_prob(X, y), density, rtol=1e-5)
    np.testing.assert_allclose(class_mixture.predict_proba(X), probabilities, rtol=1e-5)


def test_samples_follow_the_predictions(mixture, class_mixture):
    X, _ = curve(6, seed=3)
    mean, std = mixture.predict(X, return_std=True)
    samples = mixture.sample_y(X, 4_000)
    assert np.abs((samples.mean(axis=1) - mean) / std).max() < 0.1
    np.testing.assert_allclose(samples.std(axis=1), std, rtol=0.15)
    drawn = class_mixture.sample_y(X, 4_000)
    shares = np.stack([(drawn == name).mean(axis=1) for name in class_mixture.classes_], axis=1)
    np.testing.assert_allclose(shares, class_mixture.predict_proba(X), atol=0.04)


def test_functions_average_to_the_predictions(mixture, class_mixture):
    X, _ = curve(10, seed=4)
    values = np.stack([f(X) for f in mixture.sample_functions(150)])
    epistemic, _ = mixture.predict_variance(X)
    # A deep member's mean is itself that of a few functions.
    assert np.abs(values.mean(axis=0) - mixture.predict(X)).max() < 0.3
    assert 0.3 < np.median(values.var(axis=0) / epistemic) < 3
    values = np.stack([f(X) for f in class_mixture.sample_functions(150)])
    np.testing.assert_allclose(values.sum(axis=2), 1.0, rtol=1e-5)
    assert np.abs(values.mean(axis=0) - class_mixture.predict_proba(X)).max() < 0.15


def test_targets_side_by_side_are_independent(two_targets):
    X, y = curve(20, seed=1)
    Y = y[:, None] * [1.0, -100.0]
    predictor = two_targets.fitted_.predictor
    assert isinstance(predictor, SideBySide)
    both = predictor.log_density(rows_of(two_targets, X, Y))
    each = [
        one.log_density(Rows(X, Y[:, [i]], np.ones(20))) for i, one in enumerate(predictor.targets)
    ]
    np.testing.assert_allclose(both, each[0] + each[1])
    np.testing.assert_allclose(two_targets.log_prob(X, Y), both)
    mean, std = two_targets.predict(X, return_std=True)
    np.testing.assert_allclose(mean[:, 1], -100 * mean[:, 0], rtol=0.02)
    np.testing.assert_allclose(std[:, 1], 100 * std[:, 0], rtol=0.1)
    assert two_targets.predict_interval(X).shape == (20, 2, 2)
    assert two_targets.sample_y(X, 5).shape == (20, 2, 5)
    assert two_targets.sample_functions(2)[0](X).shape == (20, 2)
    samples = two_targets.sample_y(X[:1], 2_000)[0]
    assert abs(np.corrcoef(samples)[0, 1]) < 0.1


def test_the_summary_of_several_targets_adds_up(two_targets):
    summary = two_targets.summary_
    assert {"constant", "linear", "log_likelihood", "n_rows"} == set(summary)
    assert summary["n_rows"] == 40
    for number in (0, 1):
        assert any(one["name"].startswith(f"target {number}: sum") for one in two_targets.members_)
    best = [
        max(
            one["log_likelihood"]
            for one in two_targets.members_
            if one["name"].startswith(f"target {i}: constant")
        )
        for i in (0, 1)
    ]
    assert summary["constant"] == pytest.approx(sum(best))
    assert summary["log_likelihood"] > summary["linear"]


def test_draws_of_deep_members_alone_can_be_changed(mixture, two_targets):
    X, _ = curve(5)
    fitted = with_draws(mixture.fitted_, 7)
    assert [fit.config.n_mc_predict for fit in fitted.predictor.deep] == [7] * len(
        fitted.predictor.deep
    )
    before = [part.law(X).moments()[0] for part in mixture.fitted_.predictor.in_rows]
    after = [part.law(X).moments()[0] for part in fitted.predictor.in_rows]
    np.testing.assert_array_equal(before, after)
    same = with_draws(two_targets.fitted_, 7).predictor.summary(X)["mean"]
    np.testing.assert_array_equal(same, two_targets.predict(X))


def test_the_key_decides_what_is_drawn(mixture):
    X, _ = curve(5)
    predictor = mixture.fitted_.predictor
    first, again, other = (predictor.samples(X, 3, jax.random.key(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


def test_a_column_of_one_target_gives_vectors_as_scikit_learn_does():
    from bochner import DeepGPRegressor, Linear

    X, y = curve(20)
    model = DeepGPRegressor(Linear(), random_state=0).fit(X, y[:, None])
    assert model.predict(X).shape == (20,)
    assert model.predict_interval(X).shape == (20, 2)
