"""Models fitted once for all tests of the report, and what it shows of them."""

import pytest

from bochner import DeepGPClassifier, DeepGPRegressor
from tests.estimators import problems

HOSTILE = '<script>alert("1")</script>'


@pytest.fixture(scope="package")
def regressor():
    """A regressor of three inputs; tests must not change it."""
    return DeepGPRegressor(**problems.SMALL).fit(*problems.numbers())


@pytest.fixture(scope="package")
def classifier():
    """A classifier of three classes named by text; tests must not change it."""
    return DeepGPClassifier(**problems.SMALL).fit(*problems.classes())
