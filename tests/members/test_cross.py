"""Intervals from fits without each fold: the definition, the bound, and the way through the estimators."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bochner import DeepGPRegressor, Linear, load
from bochner.estimators.files import from_parts, to_parts
from bochner.members.cross import LeftOutScores
from bochner.system.saving import ModelFileError

ERRORS = 4.0


def rows_of(n, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 2))
    return X, X[:, 0] + generator.normal(size=n)


@pytest.fixture(scope="module")
def crossed():
    X, y = rows_of(60)
    return DeepGPRegressor(Linear(), random_state=0).fit(X, y).cross_fit(X, y, n_folds=3)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_ends_are_those_of_the_definition(coverage):
    generator = np.random.default_rng(0)
    n, m, alpha = 23, 4, 1 - coverage
    fold = generator.integers(5, size=n)
    scores = generator.exponential(size=(n, 2))
    means = generator.normal(size=(5, m, 2))
    deviations = generator.exponential(size=(5, m, 2))
    found = LeftOutScores(scores, fold).interval(means, deviations, coverage)
    for j in range(m):
        for t in range(2):
            low = sorted(
                means[k, j, t] - s * deviations[k, j, t]
                for k, s in zip(fold, scores[:, t], strict=True)
            )
            high = sorted(
                means[k, j, t] + s * deviations[k, j, t]
                for k, s in zip(fold, scores[:, t], strict=True)
            )
            first = math.floor(round(alpha * (n + 1), 9))
            last = math.ceil(round((1 - alpha) * (n + 1), 9))
            np.testing.assert_allclose(found[j, t], [low[first - 1], high[last - 1]])


def test_the_bound_holds_for_an_unstable_way_to_learn():
    # Of the nearest row, which changes much when that is left out.
    generator, inside, n, n_folds = np.random.default_rng(0), [], 40, 5
    fold = np.arange(n) % n_folds
    for _ in range(1500):
        x = generator.normal(size=(n + 1, 2))
        y = x[:, 0] + generator.standard_t(2, size=n + 1)
        squares = np.sum((x[:n, None] - x[None]) ** 2, axis=2)
        nearest = np.array(
            [np.argmin(squares + 1e9 * (fold == k)[:, None], axis=0) for k in range(n_folds)]
        )
        predicted = y[nearest]
        scores = np.abs(y[:n] - predicted[fold, np.arange(n)])
        ones = np.ones((n_folds, 1, 1))
        left_out = LeftOutScores(scores[:, None], fold)
        low, high = left_out.interval(predicted[:, n:, None], ones, 0.9)[0, 0]
        inside.append(low <= y[n] <= high)
    error = math.sqrt(0.1 * 0.9 / len(inside))
    assert np.mean(inside) > 1 - 2 * 0.1
    assert abs(np.mean(inside) - 0.9) < 0.05 + ERRORS * error


def test_intervals_hold_as_a_rule_what_they_say(crossed):
    X, y = rows_of(2000, 1)
    low, high = crossed.predict_interval(X, 0.8, method="cross").T
    assert abs(np.mean((low <= y) & (y <= high)) - 0.8) < 4 * math.sqrt(0.16 * (1 / 60 + 1 / 2000))
    assert np.all(crossed.predict_interval(X[:5], 0.5, method="cross")[:, 0] > low[:5])
    ends = crossed.predict_interval(X[:2], 0.99, method="cross")
    assert np.all(np.isinf(ends))


def test_each_fit_is_one_of_the_other_rows(crossed):
    X, y = rows_of(60)
    fold = crossed.fitted_.left_out.fold
    assert np.bincount(fold).tolist() == [20, 20, 20]
    for number, fitted in enumerate(crossed.fitted_.fits):
        alone = DeepGPRegressor(Linear(), random_state=0).fit(X[fold != number], y[fold != number])
        found = fitted.predictor.summary(X)["mean"][:, 0]
        np.testing.assert_array_equal(found, alone.predict(X))
        mean, std = alone.predict(X[fold == number], return_std=True)
        wanted = np.abs(y[fold == number] - mean) / std
        np.testing.assert_allclose(crossed.fitted_.left_out.scores[fold == number, 0], wanted)


def test_tables_are_encoded_anew_in_each_fold():
    X, y = rows_of(60)
    color = np.where(np.arange(60) == 7, "rare", np.resize(["red", "blue"], 60))
    table = pd.DataFrame({"a": X[:, 0], "color": color, "id": np.arange(60.0), "y": y})
    model: Any = DeepGPRegressor(Linear(), random_state=0).fit(table, "y", ignore=["id"])
    model.cross_fit(table, "y", n_folds=2)
    counts = [len(fitted.encoder.feature_names) for fitted in model.fitted_.fits]
    whole = len(model.fitted_.encoder.feature_names)
    assert sorted(counts) == [whole - 1, whole]
    assert model.predict_interval(table, 0.8, method="cross").shape == (60, 2)


def test_several_targets_have_intervals_each():
    X, y = rows_of(40)
    Y = np.stack([y, 100 * y], axis=1)
    model = DeepGPRegressor(Linear(), random_state=0).fit(X, Y).cross_fit(X, Y, n_folds=2)
    found = model.predict_interval(X, 0.8, method="cross")
    assert found.shape == (40, 2, 2)
    np.testing.assert_allclose(100 * found[:, 0], found[:, 1], rtol=1e-6)


def test_fits_are_part_of_the_file_and_go_with_an_update(crossed, tmp_path):
    X, y = rows_of(20, 2)
    crossed.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    for coverage in (0.5, 0.9):
        found = loaded.predict_interval(X, coverage, method="cross")
        np.testing.assert_array_equal(found, crossed.predict_interval(X, coverage, method="cross"))
    with pytest.raises(ValueError, match="call `cross_fit` with the training rows first"):
        loaded.update(X, y).predict_interval(X, method="cross")


@pytest.mark.parametrize("change", ["scores", "fold", "negative", "fewer", "more", "nested"])
def test_changed_files_are_refused(crossed, change):
    arrays, header = to_parts(crossed)
    fitted = header["fitted"]
    if change == "scores":
        arrays = arrays | {"left_out.scores": np.zeros((60, 2))}
    elif change == "fold":
        arrays = arrays | {"left_out.fold": np.full(60, 3)}
    elif change == "negative":
        arrays = arrays | {"left_out.scores": np.full((60, 1), -1.0)}
    elif change == "fewer":
        fitted["fits"] = fitted["fits"][:2]
    elif change == "more":
        fitted["left_out"] = None
    else:
        fitted["fits"][0] = fitted["fits"][0] | {"left_out": {}}
    with pytest.raises(ModelFileError):
        from_parts(arrays, header)


def test_errors_say_what_to_do(crossed):
    X, y = rows_of(10)
    model = DeepGPRegressor(Linear(), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="call `cross_fit` with the training rows first"):
        model.predict_interval(X, method="cross")
    for n_folds in (1, 11):
        with pytest.raises(ValueError, match="`n_folds` must be from 2 to the number of rows, 10"):
            model.cross_fit(X, y, n_folds=n_folds)
    with pytest.raises(ValueError, match=r"Did you mean|method"):
        crossed.predict_interval(X, method="croos")
    with pytest.raises(ValueError, match="`groups` are for"):
        crossed.predict_interval(X, method="cross", groups=[1] * 10)
