"""Mixtures that are fitted once for all tests that only ask them something."""

import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, Exact
from tests.members import tables


@pytest.fixture(scope="package")
def mixture():
    """A regressor of members of each kind, fitted to `tables.curve()`; tests must not change it."""
    return DeepGPRegressor(tables.every_kind(), random_state=0).fit(*tables.curve())


@pytest.fixture(scope="package")
def class_mixture():
    """A classifier of the same, fitted to `tables.sides()`; tests must not change it."""
    return DeepGPClassifier(tables.every_kind(), random_state=0).fit(*tables.sides())


@pytest.fixture(scope="package")
def two_targets():
    """A regressor of two targets in unlike units."""
    X, y = tables.curve(40)
    members = [*tables.SIMPLE, ("exact", Exact())]
    return DeepGPRegressor(members, random_state=0).fit(X, _both(y))


def _both(y):
    return y[:, None] * [1.0, -100.0]
