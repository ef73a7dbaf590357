"""Scores against `scoringrules`, and what a calibration error is by chance."""

import numpy as np
import pytest
import scoringrules

from benchmarks.suite.scores import Classes, Regression
from bochner.prediction import metrics
from experiments.baselines.predictive import GaussianMixture

GENERATOR = np.random.default_rng(0)
Y, MEAN = GENERATOR.normal(size=50), GENERATOR.normal(size=50)
DEVIATION = GENERATOR.uniform(0.5, 2, size=50)


def test_scores_of_gaussians_are_those_of_scoringrules():
    scores, densities = Regression(GaussianMixture.of_one(MEAN, DEVIATION)).scores(Y)
    np.testing.assert_allclose(-densities, scoringrules.logs_normal(Y, MEAN, DEVIATION))
    expected = scoringrules.crps_normal(Y, MEAN, DEVIATION).mean()
    assert scores["crps"] == pytest.approx(expected)
    assert GaussianMixture.of_one(MEAN, DEVIATION).crps(Y) == pytest.approx(expected)


def test_scores_of_mixtures_are_those_of_scoringrules():
    means, deviations = np.stack([MEAN, MEAN + 1]), np.stack([DEVIATION, 2 * DEVIATION])
    scores, densities = Regression(GaussianMixture(means, deviations)).scores(Y)
    np.testing.assert_allclose(-densities, scoringrules.logs_mixnorm(Y, means.T, deviations.T))
    expected = scoringrules.crps_mixnorm(Y, means.T, deviations.T).mean()
    assert scores["crps"] == pytest.approx(expected, rel=1e-6)


def test_the_score_of_draws_is_near_that_of_their_law():
    law = GaussianMixture.of_one(MEAN, DEVIATION)
    draws = MEAN[:, None] + DEVIATION[:, None] * GENERATOR.normal(size=(50, 2_000))
    scores, _ = Regression(law, draws=draws).scores(Y)
    assert scores["crps"] == pytest.approx(law.crps(Y), rel=0.03)
    assert metrics.crps(Y, draws) == pytest.approx(law.crps(Y), rel=0.03)


def test_the_mean_by_squared_error_is_scored_where_it_is_given():
    law = GaussianMixture.of_one(MEAN, DEVIATION)
    assert Regression(law, mean=Y).scores(Y)[0]["rmse"] == 0.0


def test_two_classes_have_twice_the_brier_score_of_scoringrules():
    p, labels = GENERATOR.uniform(size=80), GENERATOR.integers(0, 2, size=80)
    scores, logs = Classes(np.stack([1 - p, p], axis=1)).scores(labels)
    assert scores["brier"] == pytest.approx(2 * scoringrules.brier_score(labels, p).mean())
    np.testing.assert_allclose(logs, np.log(np.where(labels == 1, p, 1 - p)))


def test_a_class_without_probability_has_a_finite_score():
    _, logs = Classes(np.array([[1.0, 0.0]])).scores(np.array([1]))
    assert np.isfinite(logs).all()


def test_right_probabilities_err_by_chance_and_overconfident_ones_by_more():
    p = GENERATOR.dirichlet([1.0, 1.0, 1.0], size=400)
    labels = np.array([GENERATOR.choice(3, p=row) for row in p])
    right = Classes(p).scores(labels)[0]
    assert right["ece"] < 1.2 * right["ece_by_chance"]
    sharp = p**4 / (p**4).sum(axis=1, keepdims=True)
    wrong = Classes(sharp).scores(labels)[0]
    assert wrong["ece"] > wrong["ece_by_chance"] + 0.05
