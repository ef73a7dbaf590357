import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from bochner.prediction import metrics
from experiments.baselines import GaussianMixture, classification_scores, regression_scores

MEANS = np.array([[0.0, 5.0], [3.0, 5.5]])
DEVIATIONS = np.array([[1.0, 0.1], [0.5, 2.0]])
LAW = GaussianMixture(MEANS, DEVIATIONS)


def density(y, row):
    return np.mean(stats.norm.pdf(y, MEANS[:, row], DEVIATIONS[:, row]))


def test_log_density_is_that_of_the_mixture():
    y = np.array([0.7, 4.9])
    np.testing.assert_allclose(
        LAW.log_density(y), [np.log(density(y[0], 0)), np.log(density(y[1], 1))], rtol=1e-12
    )


@pytest.mark.parametrize("row", [0, 1])
def test_moments_are_those_of_the_mixture(row):
    mean = quad(lambda y: y * density(y, row), -15, 25, points=[5.0], limit=500)[0]
    second = quad(lambda y: y**2 * density(y, row), -15, 25, points=[5.0], limit=500)[0]
    np.testing.assert_allclose(LAW.mean[row], mean, rtol=1e-6)
    np.testing.assert_allclose(LAW.variance[row], second - mean**2, rtol=1e-5)


def test_quantiles_invert_the_distribution_function():
    levels = [0.01, 0.3, 0.5, 0.95]
    found = LAW.quantiles(levels)
    reached = stats.norm.cdf(found[None], MEANS[..., None], DEVIATIONS[..., None]).mean(axis=0)
    np.testing.assert_allclose(reached, np.broadcast_to(levels, reached.shape), atol=1e-10)


def test_crps_is_the_integral_of_the_squared_distance_of_distribution_functions():
    y = 1.2

    def integrand(t):
        reached = np.mean(stats.norm.cdf(t, MEANS[:, 0], DEVIATIONS[:, 0]))
        return (reached - (t >= y)) ** 2

    expected = quad(integrand, -10, 15, points=[y], limit=500)[0]
    one_row = GaussianMixture(MEANS[:, :1], DEVIATIONS[:, :1])
    np.testing.assert_allclose(one_row.crps(np.array([y])), expected, rtol=1e-6)


def test_rescaling_changes_the_density_by_the_jacobian():
    y = np.array([0.7, 4.9])
    moved = LAW.rescaled(center=10.0, scale=3.0)
    np.testing.assert_allclose(
        moved.log_density(10 + 3 * y), LAW.log_density(y) - np.log(3), rtol=1e-12
    )


def test_regression_scores_agree_with_the_metrics_of_the_library():
    generator = np.random.default_rng(0)
    mean, y = generator.normal(size=(2, 500))
    law = GaussianMixture.of_one(mean, 1.5)
    scores = regression_scores(law, y)
    samples = mean[:, None] + 1.5 * generator.normal(size=(500, 2000))
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    assert scores["mnll"] == pytest.approx(-stats.norm.logpdf(y, mean, 1.5).mean())
    assert scores["crps"] == pytest.approx(metrics.crps(y, samples), rel=0.01)
    assert scores["coverage_90"] == pytest.approx(np.mean(np.abs(y - mean) < 1.6449 * 1.5))


def test_a_certain_and_wrong_classifier_has_a_finite_mnll():
    scores = classification_scores(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0]))
    assert np.isfinite(scores["mnll"])
    assert scores["mnll"] > 40
    assert scores["error_rate"] == 0.5


def test_laws_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match="two matrices of one shape"):
        GaussianMixture(np.zeros((1, 3)), np.ones((1, 2)))
