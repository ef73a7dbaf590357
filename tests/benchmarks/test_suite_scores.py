"""Scores against `scoringrules`, and what a calibration error is by chance."""

import numpy as np
import pytest
import scipy.stats
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


class WholeNumbers(GaussianMixture):
    """Gaussians rounded to whole numbers."""

    def ranks(self, y):
        low, high = (
            scipy.stats.norm(self.means[0], self.deviations[0]).cdf(y + z) for z in (-0.5, 0.5)
        )
        return low, high


def test_randomized_ranks_of_right_laws_of_whole_numbers_are_covered_as_often_as_said():
    mean = np.linspace(0, 3, 200_000)
    law = WholeNumbers.of_one(mean, 0.4)
    y = np.rint(np.random.default_rng(1).normal(mean, 0.4))
    scores, _ = Regression(law).scores(y)
    found = [scores[f"coverage_{percent}"] for percent in (50, 90, 99)]
    np.testing.assert_allclose(found, [0.5, 0.9, 0.99], atol=0.004)
    low, high = np.rint(law.interval(0.5)).T
    assert metrics.coverage(y, low, high) > 0.7  # what intervals of whole numbers cannot help


def test_randomized_ranks_are_the_mean_over_drawn_ones():
    law, y = WholeNumbers.of_one(MEAN, DEVIATION), np.rint(Y)
    below, up_to = law.ranks(y)
    ranks = below + np.random.default_rng(2).uniform(size=(20_000, 1)) * (up_to - below)
    drawn = np.mean(np.abs(ranks - 0.5) <= 0.25)
    assert Regression(law).scores(y)[0]["coverage_50"] == pytest.approx(drawn, abs=0.005)


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
