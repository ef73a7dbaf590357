"""Simple models of many rows: no matrix of all pairs, and judged by the same rows as all members."""

import numpy as np
import pytest

from bochner import Constant, DeepGPClassifier, DeepGPRegressor, Exact, Linear
from bochner.exact import process

SIMPLE = [("constant", Constant()), ("linear", Linear())]
N = 4_100


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, X @ [1.0, 2.0] + 0.1 * rng.normal(size=N)


@pytest.fixture
def largest(monkeypatch):
    """The sizes of the matrices that exact processes factorize."""
    sizes = []
    factorized = process.factorize
    monkeypatch.setattr(process, "factorize", lambda M: sizes.append(len(M)) or factorized(M))
    return sizes


def test_a_plane_of_many_rows_needs_no_matrix_of_all_pairs(largest):
    X, y = table()
    model = DeepGPRegressor(SIMPLE, random_state=0).fit(X, y)
    assert max(largest, default=0) <= 1_000
    assert model.summary_["n_rows"] == 410
    assert model.summary_["linear"] == pytest.approx(
        -np.log(0.1) - 0.5 * np.log(2 * np.pi) - 0.5, abs=0.1
    )
    np.testing.assert_allclose(model.predict(X[:5]), y[:5], atol=0.5)


def test_classes_of_many_rows_are_as_frugal(largest):
    X, y = table()
    model = DeepGPClassifier(SIMPLE, random_state=0).fit(X, y > 0)
    assert max(largest, default=0) <= 1_000
    assert model.summary_["n_rows"] == 410
    assert model.score(X, y > 0) > 0.97


@pytest.mark.slow
def test_exact_models_of_many_rows_are_judged_by_the_rows_of_all_members():
    X, y = table()
    model = DeepGPRegressor([("linear", Linear()), ("exact", Exact())], max_seconds=0.1).fit(X, y)
    assert model.summary_["n_rows"] == 410
