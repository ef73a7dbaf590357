"""What each likelihood is for, through the estimators."""

import numpy as np
import pytest
from scipy import stats

from tests.deep_alone import deep_classifier, deep_regressor
from tests.estimators import problems
from tests.estimators.problems import SMALL

SETTINGS = SMALL | {"max_steps": 1000}
SHALLOW = SMALL | {"max_steps": 400, "n_layers": 1}


def test_heteroscedastic_noise_is_found_where_it_is():
    generator = np.random.default_rng(0)
    X = generator.uniform(-2, 2, size=(400, 1))
    deviation = np.where(X[:, 0] > 0, 1.0, 0.1)
    y = X[:, 0] + deviation * generator.normal(size=400)
    settings = SETTINGS | {"learning_rate": 0.03, "max_steps": 2000}
    varying = deep_regressor(**settings, likelihood="heteroscedastic").fit(X, y)
    constant = deep_regressor(**settings, likelihood="gaussian").fit(X, y)
    grid = np.array([[-1.5], [-1.0], [1.0], [1.5]])
    _, noise = varying.predict_variance(grid)
    np.testing.assert_allclose(np.sqrt(noise), [0.1, 0.1, 1.0, 1.0], rtol=0.5)
    _, noise = constant.predict_variance(grid)
    assert np.ptp(noise) < 1e-6
    assert varying.evaluate(X, y)["mnll"] < constant.evaluate(X, y)["mnll"] - 0.3


def test_student_t_noise_resists_outliers():
    generator = np.random.default_rng(1)
    X = generator.uniform(-2, 2, size=(200, 1))
    truth = np.sin(2 * X[:, 0])
    y = truth + 0.1 * generator.normal(size=200)
    y[::10] += generator.choice([-10.0, 10.0], size=20)
    error = {}
    for name in ("student-t", "gaussian"):
        model = deep_regressor(**SETTINGS, likelihood=name).fit(X, y)
        error[name] = np.sqrt(np.mean((model.predict(X) - truth) ** 2))
    assert error["student-t"] < 0.25
    assert error["student-t"] < 0.5 * error["gaussian"]


def test_counts_have_whole_quantiles_that_cover_them():
    X, y = problems.counts(300)
    model = deep_regressor(**SETTINGS, likelihood="poisson").fit(X, y)
    quantiles = model.predict_quantiles(X, [0.05, 0.5, 0.95])
    np.testing.assert_array_equal(quantiles, np.round(quantiles))
    assert quantiles.min() >= 0
    assert 0.85 < np.mean((y >= quantiles[:, 0]) & (y <= quantiles[:, 2])) <= 1.0
    samples = model.sample_y(X, 10)
    np.testing.assert_array_equal(samples, np.round(samples))
    np.testing.assert_allclose(model.predict(X).mean(), y.mean(), rtol=0.15)
    rate = np.exp(1.0 + X[:, 0])
    assert np.corrcoef(model.predict(X), rate)[0, 1] > 0.95


def test_counts_that_vary_more_than_poisson_ones_are_predicted_as_by_their_own_law():
    generator = np.random.default_rng(0)
    X = generator.uniform(-2, 2, size=(400, 1))
    rate = np.exp(1.0 + X[:, 0])
    y = generator.poisson(rate * generator.gamma(1.5, 1 / 1.5, size=400)).astype(float)
    model = deep_regressor(**SHALLOW, likelihood="negative-binomial").fit(X[:200], y[:200])
    found = model.evaluate(X[200:], y[200:])
    own = stats.nbinom(1.5, 1.5 / (1.5 + rate[200:])).logpmf(y[200:])
    assert found["mnll"] < -own.mean() + 0.1
    assert found["mnll"] < -stats.poisson(rate[200:]).logpmf(y[200:]).mean() - 0.1
    assert 0.85 < found["coverage_90"] < 1
    quantiles = model.predict_quantiles(X, [0.05, 0.95])
    np.testing.assert_array_equal(quantiles, np.round(quantiles))


def test_positive_targets_have_positive_quantiles_that_cover_them():
    generator = np.random.default_rng(0)
    X = generator.uniform(-2, 2, size=(400, 1))
    mean = np.exp(X[:, 0])
    y = mean * generator.gamma(2.0, 0.5, size=400)
    model = deep_regressor(**SHALLOW, likelihood="gamma").fit(X[:200], y[:200])
    found = model.evaluate(X[200:], y[200:])
    assert found["mnll"] < -stats.gamma(2.0, scale=mean[200:] / 2).logpdf(y[200:]).mean() + 0.1
    assert 0.82 < found["coverage_90"] < 0.98
    assert model.predict_quantiles(X, [0.001, 0.05]).min() > 0
    assert model.sample_y(X, 5).min() > 0


def test_bernoulli_and_softmax_agree_on_two_classes():
    X, y = problems.classes(300, n_classes=2)
    settings = SETTINGS | {"max_steps": 600}
    one = deep_classifier(**settings, likelihood="bernoulli").fit(X, y)
    two = deep_classifier(**settings, likelihood="softmax").fit(X, y)
    assert one.model_.layers[-1].width == 1
    assert two.model_.layers[-1].width == 2
    assert np.mean(one.predict(X) == two.predict(X)) > 0.95
    assert np.abs(one.predict_proba(X) - two.predict_proba(X)).mean() < 0.05
    assert min(one.score(X, y), two.score(X, y)) > 0.95


@pytest.mark.parametrize("likelihood", ["gaussian", "heteroscedastic", "student-t"])
def test_intervals_hold_their_share_of_new_rows(likelihood):
    X, y = problems.numbers(300)
    model = deep_regressor(**SETTINGS, likelihood=likelihood).fit(X, y)
    found = model.evaluate(*problems.numbers(1000, seed=1))
    assert 0.8 < found["coverage_90"] < 0.99
