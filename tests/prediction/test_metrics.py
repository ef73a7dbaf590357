import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import brier_score_loss, log_loss, root_mean_squared_error

from bochner.prediction import metrics


def classes(n=200, n_classes=3, seed=0):
    """Labels and probabilities that know something of them."""
    generator = np.random.default_rng(seed)
    probabilities = generator.dirichlet(np.ones(n_classes), size=n)
    labels = np.array([generator.choice(n_classes, p=p) for p in probabilities])
    return labels, probabilities


def brute_force_crps(y, samples):
    scores = []
    for truth, row in zip(y.ravel(), samples.reshape(-1, samples.shape[-1]), strict=True):
        error = np.mean([abs(sample - truth) for sample in row])
        pairs = [abs(a - b) for i, a in enumerate(row) for j, b in enumerate(row) if i != j]
        scores.append(error - 0.5 * np.mean(pairs))
    return np.mean(scores)


@pytest.mark.parametrize("shape", [(5,), (3, 2)])
def test_crps_is_the_double_sum_over_different_samples(shape):
    generator = np.random.default_rng(1)
    y, samples = generator.normal(size=shape), generator.normal(size=(*shape, 9))
    assert metrics.crps(y, samples) == pytest.approx(brute_force_crps(y, samples), rel=1e-12)


def test_crps_of_gaussian_samples_converges_to_the_closed_form():
    generator, n_rows, n_draws = np.random.default_rng(2), 400, 1000
    y, mean, deviation = generator.normal(size=(3, n_rows))
    deviation = 0.2 + np.abs(deviation)
    z = (y - mean) / deviation
    exact = deviation * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))
    samples = mean[:, None] + deviation[:, None] * generator.normal(size=(n_rows, n_draws))
    each = np.array([metrics.crps(y[i : i + 1], samples[i : i + 1]) for i in range(n_rows)])
    errors = each - exact
    assert abs(errors.mean()) / (errors.std() / math.sqrt(n_rows)) < 4
    assert metrics.crps(y, samples) == pytest.approx(each.mean(), rel=1e-12)


def test_crps_is_unbiased_with_few_samples():
    generator = np.random.default_rng(3)
    truth = np.zeros(20_000)
    exact = 2 * norm.pdf(0) - 1 / math.sqrt(math.pi)
    few = generator.normal(size=(20_000, 3))
    each = [metrics.crps(truth[i : i + 100], few[i : i + 100]) for i in range(0, 20_000, 100)]
    z = (np.mean(each) - exact) / (np.std(each) / math.sqrt(len(each)))
    assert abs(z) < 4


def test_crps_of_a_single_sample_is_the_absolute_error():
    y, samples = np.array([1.0, 2.0]), np.array([[0.0], [5.0]])
    assert metrics.crps(y, samples) == pytest.approx(2.0)


def test_brier_of_two_classes_is_twice_that_of_scikit_learn():
    labels, probabilities = classes(n_classes=2)
    expected = 2 * brier_score_loss(labels, probabilities[:, 1])
    assert metrics.brier(labels, probabilities) == pytest.approx(expected, rel=1e-12)


def test_brier_is_zero_for_certain_truth_and_two_for_certain_error():
    labels = np.array([0, 2, 1])
    certain = np.eye(3)[labels]
    assert metrics.brier(labels, certain) == 0.0
    assert metrics.brier((labels + 1) % 3, certain) == 2.0


def test_ece_weighs_each_bin_by_its_rows():
    # Bin 14: confidence 0.95, half right. Bin 9: confidence 0.62, all right. 15 bins of width 1/15.
    probabilities = np.array([[0.95, 0.05], [0.95, 0.05], [0.38, 0.62]])
    labels = np.array([0, 1, 1])
    expected = (2 * abs(0.95 - 0.5) + abs(0.62 - 1.0)) / 3
    assert metrics.ece(labels, probabilities) == pytest.approx(expected)


def test_ece_by_bins_equals_a_loop_over_them():
    labels, probabilities = classes(n=500, n_classes=4)
    top, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    expected = 0.0
    for k in range(15):
        inside = (top >= k / 15) & ((top < (k + 1) / 15) | (k == 14))
        if inside.any():
            expected += inside.mean() * abs(top[inside].mean() - right[inside].mean())
    assert metrics.ece(labels, probabilities) == pytest.approx(expected)


def test_ece_counts_a_probability_of_one_in_the_last_bin():
    _, _, count = metrics.calibration_bins(np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert count.tolist() == [0] * 14 + [2]
    assert metrics.ece(np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]])) == 0.5


def test_ece_falls_to_zero_for_probabilities_that_are_true():
    small = metrics.ece(*classes(n=500))
    large = metrics.ece(*classes(n=50_000))
    assert large < 0.02
    assert large < small


def test_rmse_and_mnll_agree_with_scikit_learn():
    generator = np.random.default_rng(4)
    y, mean = generator.normal(size=(2, 50))
    assert metrics.rmse(y, mean) == pytest.approx(root_mean_squared_error(y, mean))
    labels, probabilities = classes()
    own = np.log(probabilities[np.arange(len(labels)), labels])
    assert metrics.mnll(own) == pytest.approx(log_loss(labels, probabilities))


def test_error_rate_compares_labels_of_any_kind():
    assert metrics.error_rate(np.array(["a", "b"]), np.array(["a", "a"])) == 0.5


def test_coverage_counts_the_ends_of_an_interval_as_inside():
    y = np.array([0.0, 1.0, 1.1, -0.1])
    assert metrics.coverage(y, np.zeros(4), np.ones(4)) == 0.5
