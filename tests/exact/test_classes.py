import numpy as np
import pytest
import scipy.special

from bochner.exact.classes import Classification, choose_temperature
from bochner.exact.columns import Columns
from bochner.exact.dirichlet import dirichlet_targets, probabilities
from tests.exact.tables import mixed_columns, numbers


def test_targets_have_the_moments_of_the_gamma_variables():
    strength, labels = 0.05, np.array([0, 2])
    targets, noise = dirichlet_targets(labels, 3, strength)
    a = np.full((2, 3), strength)
    a[[0, 1], [0, 2]] += 1
    np.testing.assert_allclose(np.exp(targets + noise / 2), a)
    np.testing.assert_allclose(np.expm1(noise) * np.exp(2 * targets + noise), a)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_means_over_functions(n_classes):
    rng = np.random.default_rng(100)
    mean, variance = 2 * rng.normal(size=(5, n_classes)), rng.random((5, n_classes))
    draws = mean + np.sqrt(variance) * rng.normal(size=(100_000, 5, n_classes))
    expected = scipy.special.softmax(draws / 0.7, axis=-1).mean(axis=0)
    np.testing.assert_allclose(
        probabilities(mean, variance, 0.7), expected, atol=0.02 if n_classes > 2 else 4e-3
    )


def test_temperature_is_found_and_stays_near_one_for_few_rows():
    rng = np.random.default_rng(100)
    mean = 2 * rng.normal(size=(3000, 2))
    p = probabilities(mean, np.full((3000, 2), 1e-9), 2.1)
    labels = (rng.random(3000) < p[:, 1]).astype(int)
    variance = np.full((3000, 2), 1e-9)
    assert choose_temperature(mean, variance, labels)[0] in (1.75, 2.1)
    assert choose_temperature(mean[:2], variance[:2], labels[:2])[0] in (0.85, 1.0, 1.2)


def test_classes_are_learned():
    columns = mixed_columns(260)
    labels = (columns[0] > 0) + (columns[3] == "red").astype(int)
    train, test = [c[:200] for c in columns], [c[200:] for c in columns]
    encoding = Columns.learn(train)
    model = Classification.fit(encoding(train), labels[:200], 3)
    p = model.predict_proba(encoding(test))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.mean(p.argmax(axis=1) == labels[200:]) > 0.9


def test_columns_of_noise_say_no_more_than_frequencies():
    rng = np.random.default_rng(100)
    rows, labels = numbers(250, 50), (rng.random(250) < 0.3).astype(int)
    model = Classification.fit(rows[:150], labels[:150], 2)
    p = model.predict_proba(rows[150:])[np.arange(100), labels[150:]]
    share = labels[:150].mean()
    expected = np.where(labels[150:] == 1, share, 1 - share)
    assert np.log(p).mean() > np.log(expected).mean() - 0.05


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "labels", [[0], [0, 1], [0, 0, 1], [1] * 20, [0] * 19 + [1], list(range(5)) * 4], ids=str
)
def test_no_labels_make_it_fail(labels):
    n = len(labels)
    columns = [np.arange(float(n)), np.ones(n)]
    encoding = Columns.learn(columns)
    model = Classification.fit(encoding(columns), np.array(labels), max(labels) + 2)
    p = model.predict_proba(encoding([np.array([0.0, 1e9, np.nan]), np.ones(3)]))
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
