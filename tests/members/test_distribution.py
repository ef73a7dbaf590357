"""The distribution object says what the methods of the estimator say."""

import dataclasses

import numpy as np
import pytest
from scipy import integrate

from bochner import Deep, DeepGPRegressor, Exact, Linear
from bochner.members.distribution import PredictiveDistribution
from bochner.members.laws import GaussianDraws, Mixture
from bochner.members.predictors import DeepRegressor
from tests.members.tables import SIMPLE, curve


@pytest.fixture(scope="module")
def model():
    X, y = curve(40)
    return DeepGPRegressor([*SIMPLE, ("exact", Exact())], random_state=0).fit(X, np.exp(y / 10))


@pytest.fixture(scope="module")
def rows():
    return curve(7, seed=1)[0]


def test_it_agrees_with_the_predictions_of_the_estimator(model, rows):
    found = model.predict_dist(rows)
    mean, std = model.predict(rows, return_std=True)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.std, std)
    np.testing.assert_allclose(found.variance, std**2)
    np.testing.assert_allclose(found.ppf([0.05, 0.95]), model.predict_interval(rows))
    np.testing.assert_allclose(found.log_prob(mean), model.log_prob(rows, mean))
    assert len(found) == 7


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_with_gaps_have_the_mixture_over_training_rows(model, rows):
    X = rows.copy()
    X[0, 0] = np.nan
    found = model.predict_dist(X)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.std, std)
    np.testing.assert_allclose(found.log_prob(mean), model.log_prob(X, mean))
    assert found.std[0] > 1.5 * model.predict_dist(rows).std[0]


def test_whole_numbers_have_steps():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(90, 1))
    y = np.rint(3 + x[:, 0] + 0.3 * generator.normal(size=90))
    model = DeepGPRegressor(Linear(), random_state=0).fit(x, y)
    assert model.fitted_.predictor.lattice is not None
    found = model.predict_dist(x[:5])
    np.testing.assert_array_equal(found.cdf(3.0), found.cdf(3.9))
    steps = found.cdf(3.0) - found.cdf(2.0)
    np.testing.assert_allclose(np.exp(found.log_prob(3.0)), steps)
    np.testing.assert_array_equal(found.ppf(0.5), model.predict_quantiles(x[:5], [0.5])[:, 0])


def test_its_parts_agree_with_each_other(model, rows):
    found = model.predict_dist(rows)
    quantiles = found.ppf([0.1, 0.5, 0.9])
    np.testing.assert_allclose(found.cdf(quantiles), np.tile([0.1, 0.5, 0.9], (7, 1)), atol=1e-6)
    low, high = found.ppf(0.2)[0], found.ppf(0.7)[0]
    density = integrate.quad(lambda y: np.exp(found.log_prob(y)[0]), low, high)[0]
    assert density == pytest.approx(0.5, abs=1e-4)
    assert found.ppf(0.5).shape == found.cdf(1.0).shape == found.log_prob(1.0).shape == (7,)
    assert found.log_prob(quantiles).shape == (7, 3)


def test_samples_follow_it(model, rows):
    found = model.predict_dist(rows)
    drawn = found.sample(4000, random_state=1)
    assert drawn.shape == (7, 4000)
    z = (drawn.mean(axis=1) - found.mean) / (found.std / np.sqrt(4000))
    assert np.abs(z).max() < 5
    np.testing.assert_array_equal(found.sample(3), found.sample(3))
    assert not np.array_equal(found.sample(3), found.sample(3, random_state=5))


def test_two_gaussians_against_their_closed_form():
    law = GaussianDraws(np.array([[0.0], [4.0]]), np.ones((2, 1)))
    found = PredictiveDistribution(Mixture(np.ones(1), [law]), seed=0)
    assert (found.mean[0], found.variance[0]) == pytest.approx((2.0, 5.0))
    assert found.cdf(2.0)[0] == pytest.approx(0.5)
    assert found.ppf(0.5)[0] == pytest.approx(2.0)
    assert found.log_prob(2.0)[0] == pytest.approx(np.log(np.exp(-2) / np.sqrt(2 * np.pi)))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda found: found.ppf(1.5), "`q` must be one or several levels"),
        (lambda found: found.cdf([1.0, 2.0]), "an entry for each of the 7 rows"),
        (lambda found: found.sample(0), "`n_samples`"),
    ],
)
def test_what_has_no_answer_is_refused(model, rows, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(model.predict_dist(rows))


def test_several_targets_and_other_laws_are_refused():
    X, y = curve(30)
    two = DeepGPRegressor(SIMPLE, random_state=0).fit(X, np.column_stack([y, -y]))
    with pytest.raises(ValueError, match="for one target; this model has 2"):
        two.predict_dist(X)
    tiny = Deep(n_layers=1, n_random_features=4, max_steps=2, n_mc_predict=4)
    deep = DeepGPRegressor(tiny, random_state=0).fit(X, y)
    found = deep.predict_dist(X[:5])
    np.testing.assert_allclose(found.mean, deep.predict(X[:5]), rtol=1e-4)
    fit = deep.fitted_.deep
    other = dataclasses.replace(fit.config, likelihood="student-t")
    with pytest.raises(ValueError, match="likelihood='student-t'"):
        DeepRegressor(dataclasses.replace(fit, config=other)).law(X)
