"""Models fitted once, whose functions are known: tests must not change them."""

import numpy as np
import pandas as pd
import pytest

from bochner import Deep, DeepGPClassifier, DeepGPRegressor, Exact
from tests.explaining.tables import additive, sectors


@pytest.fixture(scope="package")
def model():
    """The stack of a small table: waves, a plane, a category, and a column that says nothing."""
    frame, _ = additive()
    return DeepGPRegressor(random_state=0, max_seconds=60).fit(frame, "y")


@pytest.fixture(scope="package")
def explanation(model):
    return model.explain()


@pytest.fixture(scope="package")
def classifier():
    """The stack of three classes that the first column decides."""
    return DeepGPClassifier(random_state=0).fit(*sectors())


@pytest.fixture(scope="package")
def of_classes(classifier):
    return classifier.explain()


@pytest.fixture(scope="package")
def deep():
    """A deep model alone, of a function of the first of three columns."""
    X = np.random.default_rng(1).normal(size=(150, 3))
    settings = {"n_layers": 2, "width": 2, "n_random_features": 20, "objective": "elbo"}
    members = Deep(max_steps=300, n_mc_predict=50, n_members=1, learning_rate=0.02, **settings)
    return DeepGPRegressor(members, random_state=0).fit(X, 5 + 2 * np.sin(2 * X[:, 0]))


@pytest.fixture(scope="package")
def several():
    """Two targets of unlike units: the first is of column `a` alone, the second of `b`."""
    X = pd.DataFrame(np.random.default_rng(2).normal(size=(80, 2)), columns=["a", "b"])
    Y = np.column_stack([np.sin(2 * X["a"]), 1000 * X["b"]])
    return DeepGPRegressor(Exact(varying_noise=False), random_state=0).fit(X, Y)
