"""Means of a category's values: as in a random-effects model, and without a row's own target."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.rows.effects import folds_by_place, in_folds, learn_effects, with_effects
from bochner.rows.scaling import robust


def drawn(n_values=50, n_each=8, seed=0, deviation=1.0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(n_values), n_each))
    y = deviation * rng.normal(size=n_values)[codes] + rng.normal(size=len(codes))
    return np.column_stack([rng.normal(size=len(y)), codes]), y


def test_means_are_shrunken_as_by_the_analysis_of_variance():
    X, y = drawn()
    found = learn_effects(X, [1], y[:, None], np.ones(len(y)))[1][0]
    own = [y[X[:, 1] == value] for value in range(50)]
    means, within = np.array([one.mean() for one in own]), np.mean([one.var(ddof=1) for one in own])
    between = means.var(ddof=1) - within / 8
    expected = between / (between + within / 8) * (means - y.mean())
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_weights_count_like_rows():
    X, y = drawn(10)
    weights = np.random.default_rng(1).integers(1, 4, len(y))
    again = np.repeat(np.arange(len(y)), weights)
    once = learn_effects(X, [1], y[:, None], weights.astype(float))[1]
    np.testing.assert_allclose(
        once, learn_effects(X[again], [1], y[again, None], np.ones(len(again)))[1]
    )


def test_a_row_of_the_fit_never_sees_its_own_target():
    X, y = drawn()
    folds = np.arange(len(y)) % 5
    marked, weights = in_folds(X, [1], folds), np.ones(len(y))
    seen = with_effects(marked, learn_effects(marked, [1], y[:, None], weights), np)[:, 1]
    # Rows of a fold see the means of the other folds; the shrinkage alone is that of all.
    _, counts = np.unique(X[:, 1], return_counts=True)
    centered = np.array([y[X[:, 1] == value].mean() for value in range(50)]) - y.mean()
    of_all = learn_effects(X, [1], y[:, None], weights)[1][0]
    ratio = np.median(counts * (centered / of_all - 1))
    for fold in range(5):
        others = folds != fold
        own = X[folds == fold, 1].astype(int)
        counts, totals = np.array(
            [
                (np.sum(chosen), np.sum(y[chosen] - y[others].mean()))
                for chosen in (others & (X[:, 1] == value) for value in range(50))
            ]
        ).T
        np.testing.assert_allclose(seen[folds == fold], (totals / (counts + ratio))[own], rtol=1e-6)


def test_there_are_no_more_folds_than_fractions():
    X = np.full((1, 1), 7.0)
    assert np.floor(in_folds(X, [0], np.array([14])))[0, 0] == 7
    with pytest.raises(ValueError, match="there may be 15 folds; got 16"):
        in_folds(X, [0], np.array([15]))


@pytest.mark.parametrize("period", [1, 5, 8, 89, 144, 700, 1024])
def test_folds_by_place_are_as_if_at_random(period):
    places = np.arange(0, 5000 * period, period) + 10**9
    folds = folds_by_place(places, 5)
    counts = np.bincount(folds, minlength=5)
    assert len(counts) == 5
    assert np.all(np.abs(counts - 1000) < 130)  # four and a half deviations
    runs = folds.reshape(-1, 5)  # as of rows of a value, at every so many places
    assert abs(np.mean([len(set(run)) for run in runs]) - 5 * (1 - 0.8**5)) < 0.15


@pytest.mark.parametrize("seed", range(3))
def test_what_rows_of_the_fit_see_says_nothing_where_there_is_nothing(seed):
    X, _ = drawn(200, 4, seed)
    y = np.random.default_rng(seed + 10).normal(size=len(X))
    marked = in_folds(X, [1], np.arange(len(y)) % 5)
    # Shrunken by no more than a row's worth, as if effects were large.
    table = learn_effects(marked, [1], (y + 5 * np.sin(X[:, 1]))[:, None], np.ones(len(y)))
    seen = with_effects(marked, table, np)[:, 1] - 5 * np.sin(X[:, 1])
    in_sample = with_effects(X, table, np)[:, 1] - 5 * np.sin(X[:, 1])
    assert np.corrcoef(in_sample, y)[0, 1] > 0.4
    assert abs(np.corrcoef(seen, y)[0, 1]) < 0.12


def test_of_several_targets_it_is_what_tells_values_apart():
    X, y = drawn(30, 20, deviation=2.0)
    targets = np.column_stack([np.random.default_rng(3).normal(size=len(y)), y])
    found = learn_effects(X, [1], targets, np.ones(len(y)))[1][0]
    alone = learn_effects(X, [1], y[:, None], np.ones(len(y)))[1][0]
    assert np.corrcoef(found, alone)[0, 1] > 0.99


def test_values_that_are_not_known_have_the_mean_of_all_and_jax_the_same_numbers():
    X, y = drawn()
    marked = in_folds(X, [1], np.arange(len(y)) % 5)
    table = learn_effects(marked, [1], y[:, None], np.ones(len(y)))
    odd = np.array([[0.5, 50], [0.5, np.nan], [0.5, -1], [0.5, 1e9], [0.5, 3.0625], [0.5, 3]])
    found = with_effects(odd, table, np)
    assert found[:4, 1].tolist() == [0.0] * 4
    assert found[4, 1] == table[1][1, 3] != found[5, 1]
    again = jax.jit(lambda X: with_effects(X, table, jnp))(jnp.float32(odd))
    np.testing.assert_allclose(again, found, rtol=1e-6)


def test_one_value_a_row_and_one_for_all_do_no_harm():
    for codes in (np.arange(20.0), np.zeros(20)):
        X, y = codes[:, None], np.random.default_rng(0).normal(size=20)
        found = learn_effects(X, [0], y[:, None], np.ones(20))
        assert np.isfinite(found[0]).all()
        assert np.isfinite(robust(with_effects(X, found, np)).scale).all()
