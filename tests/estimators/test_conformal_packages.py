"""MAPIE and crepes calibrate our estimators in their own ways."""

import math

import numpy as np
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, Linear

N_CALIBRATED, N_NEW, COVERAGE = 400, 1000, 0.8
ERRORS = 4.0


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(100 + N_CALIBRATED + N_NEW, 2))
    y = X[:, 0] + generator.normal(size=len(X))
    return X, y, np.where(y > 0, "high", "low")


@pytest.fixture(scope="module")
def regressor(rows):
    return DeepGPRegressor(Linear(), random_state=0).fit(rows[0][:100], rows[1][:100])


@pytest.fixture(scope="module")
def classifier(rows):
    return DeepGPClassifier(Linear(), random_state=0).fit(rows[0][:100], rows[2][:100])


def parts(values):
    return values[100 : 100 + N_CALIBRATED], values[100 + N_CALIBRATED :]


def assert_held(inside):
    error = math.sqrt(COVERAGE * (1 - COVERAGE) * (1 / N_NEW + 1 / N_CALIBRATED))
    assert abs(np.mean(inside) - COVERAGE) < ERRORS * error


def test_mapie_calibrates_a_fitted_regressor(rows, regressor):
    mapie = pytest.importorskip("mapie.regression")
    (X, new_X), (y, new_y) = parts(rows[0]), parts(rows[1])
    around = mapie.SplitConformalRegressor(regressor, confidence_level=COVERAGE, prefit=True)
    means, intervals = around.conformalize(X, y).predict_interval(new_X)
    np.testing.assert_array_equal(means, regressor.predict(new_X))
    assert_held((intervals[:, 0, 0] <= new_y) & (new_y <= intervals[:, 1, 0]))


def test_mapie_fits_a_regressor_in_folds(rows):
    mapie = pytest.importorskip("mapie.regression")
    (X, new_X), (y, new_y) = parts(rows[0]), parts(rows[1])
    model = DeepGPRegressor(Linear(), random_state=0)
    around = mapie.CrossConformalRegressor(model, confidence_level=COVERAGE, cv=3)
    _, intervals = around.fit_conformalize(X, y).predict_interval(new_X)
    assert_held((intervals[:, 0, 0] <= new_y) & (new_y <= intervals[:, 1, 0]))


def test_mapie_calibrates_a_fitted_classifier(rows, classifier):
    mapie = pytest.importorskip("mapie.classification")
    (X, new_X), (y, new_y) = parts(rows[0]), parts(rows[2])
    around = mapie.SplitConformalClassifier(classifier, confidence_level=COVERAGE, prefit=True)
    _, sets = around.conformalize(X, y).predict_set(new_X)
    assert_held(sets[np.arange(N_NEW), np.searchsorted(classifier.classes_, new_y), 0])


def test_crepes_wraps_both(rows, regressor, classifier):
    crepes = pytest.importorskip("crepes")
    (X, new_X), (y, new_y), (labels, new_labels) = map(parts, rows)
    around = crepes.WrapRegressor(regressor)
    around.calibrate(X, y)
    low, high = around.predict_int(new_X, confidence=COVERAGE).T
    assert_held((low <= new_y) & (new_y <= high))
    around = crepes.WrapClassifier(classifier)
    around.calibrate(X, labels)
    sets = around.predict_set(new_X, confidence=COVERAGE)
    assert_held([label in found for label, found in zip(new_labels, sets, strict=True)])
