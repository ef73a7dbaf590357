import math

import numpy as np
import pytest
import scipy.special

from bochner.exact.classes import choose_temperature, class_parts
from bochner.exact.columns import Columns
from bochner.exact.dirichlet import dirichlet_targets, probabilities
from bochner.exact.landmark_classes import landmark_class_parts
from bochner.exact.mixtures import Classification
from tests.exact.tables import every_odd_table, mixed_columns, numbers


def test_targets_have_the_moments_of_the_gamma_variables():
    strength, labels = 0.05, np.array([0, 2])
    targets, noise = dirichlet_targets(labels, 3, strength)
    a = np.full((2, 3), strength)
    a[[0, 1], [0, 2]] += 1
    np.testing.assert_allclose(np.exp(targets + noise / 2), a)
    np.testing.assert_allclose(np.expm1(noise) * np.exp(2 * targets + noise), a)


def test_targets_are_those_of_the_paper():
    """Milios et al. (2018), equations 4 and 5: `s2 = log(1 / a + 1)` and `y = log a - s2 / 2`."""
    targets, noise = dirichlet_targets(np.array([1, 0]), 3, 0.01)
    of_class, of_others = math.log(1 / 1.01 + 1), math.log(1 / 0.01 + 1)
    is_class = np.array([[False, True, False], [True, False, False]])
    np.testing.assert_allclose(noise, np.where(is_class, of_class, of_others), rtol=1e-14)
    expected = np.where(is_class, math.log(1.01) - of_class / 2, math.log(0.01) - of_others / 2)
    np.testing.assert_allclose(targets, expected, rtol=1e-14)
    np.testing.assert_allclose([targets[0, 1], targets[0, 0]], [-0.334142, -6.912730], atol=1e-6)


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


@pytest.mark.filterwarnings("error")
@every_odd_table
def test_no_table_makes_it_fail(make):
    columns, y = make(np.random.default_rng(100))
    encoding = Columns.learn(columns)
    model = Classification.fit(encoding(columns), (y > np.median(y)).astype(int), 2)
    p = model.predict_proba(encoding([np.append(c, 1e3) for c in columns]))
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)


@pytest.mark.parametrize("kind", ["exact", "landmarks"])
def test_a_category_never_seen_is_uncertain(kind):
    color = np.repeat(["red", "green", "blue", "white"], 25)
    columns, labels = Columns.learn([color]), np.repeat([0, 1, 0, 1], 25)
    rows = columns([color])
    parts = (
        class_parts(rows, labels, 2)
        if kind == "exact"
        else landmark_class_parts(rows, labels, 2, np.arange(100))
    )
    for part in parts[1:]:
        p = part.probabilities(columns([np.array(["red", "green", "blue", "white", "new"])]))
        assert (p[range(4), [0, 1, 0, 1]] > 0.9).all()
        assert 0.3 < p[4, 0] < 0.7
