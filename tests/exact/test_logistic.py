"""Logistic Gaussian processes against an independent optimum, and against what the prior says."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from bochner.exact.logistic import Shapes, gram, most_probable, preconditioners

N, M, CELLS = 60, 4, 5


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(N, M))
    places = rng.integers(0, CELLS, N)
    places[features[:, 0] > 0.5] = 4
    counts = rng.integers(1, 4, N).astype(float)
    shapes = Shapes.of(np.bincount(places, counts, CELLS), amplitude=2.0, width=0.2)
    return features, places, counts, shapes


def fitted(features, places, counts, shapes, **options):
    factors = preconditioners(gram(features, counts), shapes)
    return most_probable(features, places, counts, shapes, factors, n_steps=200, **options)


def log_posterior(W, features, places, counts, shapes):
    logits = features @ W @ shapes.directions + np.log(shapes.frequencies)
    own = logits[np.arange(len(places)), places] - scipy.special.logsumexp(logits, axis=1)
    return counts @ own - 0.5 * np.sum(W**2)


def test_it_finds_the_mode_that_a_plain_search_finds(table):
    W = fitted(*table)
    shape = W.shape
    plain = scipy.optimize.minimize(
        lambda w: -log_posterior(w.reshape(shape), *table), np.zeros(W.size), method="BFGS"
    )
    assert log_posterior(W, *table) == pytest.approx(-plain.fun, abs=1e-2)
    features, shapes = table[0], table[-1]
    np.testing.assert_allclose(
        shapes.probabilities(features @ W),
        shapes.probabilities(features @ plain.x.reshape(shape)),
        atol=0.01,
    )


def test_weights_are_repeated_rows_and_rows_of_weight_zero_are_not_seen(table):
    features, places, counts, shapes = table
    repeated = np.repeat(np.arange(N), counts.astype(int))
    W = fitted(features[repeated], places[repeated], np.ones(len(repeated)), shapes)
    np.testing.assert_allclose(fitted(*table), W, atol=0.01)
    some = counts * (np.arange(N) % 3 > 0)
    other = np.where(some > 0, places, (places + 1) % CELLS)
    np.testing.assert_array_equal(
        fitted(features, places, some, shapes), fitted(features, other, some, shapes)
    )


def test_where_features_say_nothing_cells_are_as_frequent_as_in_training_rows(table):
    _, places, counts, shapes = table
    W = fitted(np.zeros((N, M)), places, counts, shapes)
    frequencies = (np.bincount(places, counts, CELLS) + 0.5) / (counts.sum() + 0.5 * CELLS)
    np.testing.assert_allclose(shapes.probabilities(np.zeros((1, M)) @ W)[0], frequencies)


def test_the_prior_is_smooth_and_changes_no_mean():
    q = np.full(20, 5.0)
    shapes = Shapes.of(q, amplitude=3.0, width=0.3)
    middles = (np.arange(20) + 0.5) / 20
    K = 9 * np.exp(-0.5 * ((middles[:, None] - middles) / 0.3) ** 2)
    centering = np.eye(20) - np.full((20, 20), 1 / 20)
    expected = centering @ K @ centering
    found = shapes.directions.T @ shapes.directions
    np.testing.assert_allclose(found, expected, atol=0.01 * np.trace(expected))
    assert len(shapes.directions) < 8


def test_single_precision_finds_the_same(table):
    features, places, counts, shapes = table
    single = fitted(features.astype(np.float32), places, counts, shapes)
    np.testing.assert_allclose(single, fitted(*table), atol=0.02)


def test_past_the_deadline_one_step_is_made(table):
    features, places, counts, shapes = table
    stopped = fitted(features, places, counts, shapes, until=0.0)
    prior = log_posterior(np.zeros_like(stopped), *table)
    assert prior < log_posterior(stopped, *table) < log_posterior(fitted(*table), *table)
