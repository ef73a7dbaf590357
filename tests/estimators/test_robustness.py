"""Raw data as they come: glitches, constant columns, rows far away, inputs that do not matter."""

import warnings

import numpy as np
import pandas as pd
import pytest

from bochner import Deep, DeepGPRegressor
from tests.deep_alone import deep_regressor
from tests.estimators import problems
from tests.estimators.problems import SMALL

SETTINGS = SMALL | {"max_steps": 600, "preprocessing": "robust"}
X, Y = problems.numbers(200)


def error(model):
    x, y = problems.numbers(500, seed=1)
    return np.sqrt(np.mean((model.predict(x) - y) ** 2))


@pytest.fixture(scope="module")
def clean():
    return deep_regressor(**SETTINGS).fit(X, Y)


def test_glitches_and_a_constant_column_cost_no_accuracy(clean):
    dirty = np.column_stack([X, np.full(len(X), -4e7)])
    dirty[13, 0], dirty[77, 1] = 1e5, -1e5
    model = deep_regressor(**SETTINGS).fit(dirty, Y)
    x, y = problems.numbers(500, seed=1)
    found = model.predict(np.column_stack([x, np.full(500, -4e7)]))
    assert np.sqrt(np.mean((found - y) ** 2)) < error(clean) + 0.1 * np.std(y)
    assert error(clean) < 0.25 * np.std(y)


def test_plain_standardization_does_not_survive_glitches(clean):
    dirty = X.copy()
    dirty[13, 0] = 1e5
    model = deep_regressor(**SETTINGS | {"preprocessing": "standard"}).fit(dirty, Y)
    assert error(model) > 2 * error(clean)


def test_rows_far_away_are_counted_in_a_warning(clean):
    x = X[:5].copy()
    x[1, 0], x[4, 2] = 1e7, -1e7
    with pytest.warns(UserWarning, match="2 of 5 rows hold values far outside.*clipped"):
        clean.predict(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clean.predict(X)


@pytest.mark.filterwarnings("ignore:.*far outside")
def test_the_deviation_does_not_shrink_far_away():
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, size=(200, 1))
    y = np.sin(4 * x[:, 0]) + 0.05 * generator.normal(size=200)
    model = DeepGPRegressor(Deep(max_steps=2000, n_mc_predict=400), random_state=0).fit(x, y)
    _, (left, right) = model.predict(np.array([[-1.0], [1.0]]), return_std=True)
    _, below = model.predict(np.array([[-10.0], [-1e3], [-1e9]]), return_std=True)
    _, above = model.predict(np.array([[10.0], [1e3], [1e9]]), return_std=True)
    assert below.min() >= left
    assert above.min() >= right
    assert np.ptp(below[1:]) == np.ptp(above[1:]) == 0.0


def test_an_explanation_finds_the_one_input_that_matters():
    settings = SETTINGS | {"max_steps": 1500, "theta_from": 0, "ard": True, "omega": "prior-fixed"}
    model = deep_regressor(**settings).fit(*problems.numbers(400))
    shares = model.explain().columns
    assert next(iter(shares)) == "column 0"
    assert max(shares["column 1"], shares["column 2"]) < 0.1 < 0.8 < shares["column 0"]


ROUNDING = np.random.default_rng(0).integers(-4, 5, size=len(X)) * np.spacing(1e9)


def test_columns_and_targets_that_vary_by_rounding_are_named_in_a_warning():
    settings = SETTINGS | {"max_steps": 5}
    frame = pd.DataFrame(X * 1e-15, columns=["a", "b", "c"]).assign(offset=1e9 + ROUNDING, one=7.0)
    with pytest.warns(
        UserWarning, match=r"^'offset' treated as constant: .*last of the 16 digits"
    ) as caught:
        deep_regressor(**settings).fit(frame, Y)
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="^'column 3' treated as constant"):
        deep_regressor(**settings).fit(frame.to_numpy(), Y)
    with pytest.warns(UserWarning, match="^'target 1 of y' treated as constant"):
        deep_regressor(**settings).fit(X, np.stack([Y, 1e9 + ROUNDING], axis=1))
    with pytest.warns(UserWarning, match="treated as constant") as caught:
        deep_regressor(**settings).fit(frame.assign(price=1e9 + ROUNDING), "price")
    told = [str(warning.message).partition(":")[0] for warning in caught]
    found = [one for one in told if "treated as constant" in one]
    assert found == ["'offset' treated as constant", "'price' treated as constant"]


def test_what_varies_or_is_constant_brings_no_warning():
    table = np.column_stack([X * 1e-15, np.full(len(X), 0.1), X[:, 0] + 1e9])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deep_regressor(**SETTINGS | {"max_steps": 5}).fit(table, 1e-15 * Y)
        # Columns have no scale of their own here.
        settings = SETTINGS | {"max_steps": 5, "preprocessing": "unit"}
        deep_regressor(**settings).fit(np.column_stack([X, 1e9 + ROUNDING]), Y)


def test_large_offsets_of_inputs_cost_no_accuracy(clean):
    # In single precision the fractions of such numbers are lost before they are centered.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moved = deep_regressor(**SETTINGS).fit(X + 1e9, Y)
    np.testing.assert_allclose(moved.predict(X[:20] + 1e9), clean.predict(X[:20]), rtol=0.05)
