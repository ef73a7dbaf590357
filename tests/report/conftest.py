"""Models fitted once for all tests of the report, and what it shows of them."""

import pytest

from bochner import DeepGPClassifier, DeepGPRegressor
from tests.deep_alone import deep_classifier, deep_regressor
from tests.estimators import problems

HOSTILE = '<script>alert("1")</script>'


@pytest.fixture(scope="package")
def regressor():
    """A regressor of three inputs; tests must not change it."""
    return deep_regressor(**problems.SMALL).fit(*problems.numbers())


@pytest.fixture(scope="package")
def classifier():
    """A classifier of three classes named by text; tests must not change it."""
    return deep_classifier(**problems.SMALL).fit(*problems.classes())


@pytest.fixture(scope="package")
def stack():
    """A regressor of three inputs by the members that suit so few rows; tests must not change it."""
    return DeepGPRegressor(random_state=0).fit(*problems.numbers())


@pytest.fixture(scope="package")
def stack_of_classes():
    """The same for three classes."""
    return DeepGPClassifier(random_state=0).fit(*problems.classes())
