"""Models fitted once for all tests that only ask them something."""

import pytest

from tests.deep_alone import deep_classifier, deep_regressor
from tests.estimators import problems


@pytest.fixture(scope="package")
def regressor():
    """A regressor fitted to `problems.numbers()`; tests must not change it."""
    settings = problems.SMALL | {"max_steps": 400}
    return deep_regressor(**settings).fit(*problems.numbers())


@pytest.fixture(scope="package")
def classifier():
    """A classifier fitted to `problems.classes()`; tests must not change it."""
    settings = problems.SMALL | {"max_steps": 400}
    return deep_classifier(**settings).fit(*problems.classes())
