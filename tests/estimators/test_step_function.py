"""The acceptance tests of the defaults: a step without overshoot, and depth without divergence."""

import os
import warnings

import numpy as np
import pytest

from bochner import Deep, DeepGPClassifier, DeepGPRegressor, datasets
from tests.estimators.problems import step_function

GRID = np.linspace(-1.9, 1.9, 381)[:, None]
TRUTH = (GRID[:, 0] > 0).astype(float)
AWAY = np.abs(GRID[:, 0]) > 0.15  # about two gaps between the 100 points

needs_data = pytest.mark.skipif(
    not os.environ.get("BOCHNER_DATA"),
    reason="the environment variable BOCHNER_DATA does not name the folder of data files",
)


@pytest.fixture(scope="module")
def deep_step():
    return DeepGPRegressor(Deep(max_steps=3000), random_state=0).fit(*step_function(100, seed=0))


@pytest.fixture(scope="module")
def steps():
    """Fits of the defaults to eight draws."""
    return [DeepGPRegressor(random_state=0).fit(*step_function(100, seed=s)) for s in range(8)]


def overshoot(model):
    """How far the mean is beyond the step, in half widths of the interval there."""
    low, high = model.predict_interval(GRID, 0.9).T
    mean = model.predict(GRID)
    return (np.maximum(mean - 1.0, -mean) / ((high - low) / 2)).max()


def covered_and_width(model):
    low, high = model.predict_interval(GRID, 0.9).T
    inside = (low <= TRUTH) & (high >= TRUTH)
    return inside[AWAY].mean(), np.median(high - low)


def error_away(model):
    return np.abs(model.predict(GRID) - TRUTH)[AWAY].max()


def test_the_mean_of_a_deep_model_does_not_overshoot_beyond_the_intervals(deep_step):
    assert overshoot(deep_step) <= 1


def test_the_intervals_of_a_deep_model_cover_the_step_and_are_narrow(deep_step):
    covered, width = covered_and_width(deep_step)
    assert covered > 0.95
    assert width < 0.5  # of the step's height: they say something


def test_the_jump_of_a_deep_model_is_sharp(deep_step):
    assert error_away(deep_step) < 0.1
    assert deep_step.evaluate(*step_function(1000, seed=1))["rmse"] < 0.15


def test_the_defaults_do_not_overshoot_beyond_the_intervals(steps):
    found = sorted(overshoot(model) for model in steps)
    assert found[-2] <= 1
    assert found[-1] < 1.5


def test_the_intervals_of_the_defaults_cover_the_step_and_are_narrow(steps):
    covered, widths = zip(*(covered_and_width(model) for model in steps), strict=True)
    assert min(covered) > 0.95
    assert max(widths) < 0.2


def test_the_jump_of_the_defaults_is_sharp(steps):
    errors = sorted(error_away(model) for model in steps)
    assert errors[-2] < 0.1
    assert errors[-1] < 0.15  # of the draw with the widest gap after the jump
    assert max(model.evaluate(*step_function(1000, seed=100))["rmse"] for model in steps) < 0.15


def train_deeply(data, max_rows, **settings):
    """Fit 30 layers with fed inputs; any warning is an error."""
    rows = np.random.default_rng(0).permutation(len(data.y))[:max_rows]
    kind = DeepGPClassifier if data.is_classification else DeepGPRegressor
    model = kind(Deep(n_layers=30, feed_inputs=True, **settings), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(data.X[rows], data.y[rows])
        bounds = np.array([record["elbo"] for record in model.history_])
        assert np.all(np.isfinite(bounds))
        assert bounds[-10:].mean() > bounds[:10].mean()
        assert all(np.isfinite(v) for v in model.evaluate(data.X[rows], data.y[rows]).values())


@needs_data
def test_thirty_layers_begin_to_train_without_divergence():
    train_deeply(
        datasets.load("yacht"),
        max_rows=308,
        max_steps=100,
        width=3,
        n_random_features=20,
        n_mc_predict=10,
        theta_from=0,
    )


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", [name for name in datasets.names() if name != "mnist"])
def test_thirty_layers_train_without_divergence(name):
    train_deeply(datasets.load(name), max_rows=10_000, max_steps=2000)
