"""The acceptance tests of the defaults: a step without overshoot, and depth without divergence."""

import os
import warnings

import numpy as np
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, datasets
from bochner.cli.demo import step_function

GRID = np.linspace(-1.9, 1.9, 381)[:, None]
TRUTH = (GRID[:, 0] > 0).astype(float)
AWAY = np.abs(GRID[:, 0]) > 0.15  # about two gaps between the 100 points

needs_data = pytest.mark.skipif(
    not os.environ.get("BOCHNER_DATA"),
    reason="the environment variable BOCHNER_DATA does not name the folder of data files",
)


@pytest.fixture(scope="module")
def step():
    return DeepGPRegressor(max_steps=3000, random_state=0).fit(*step_function(100, seed=0))


def test_the_mean_does_not_overshoot_beyond_the_intervals(step):
    low, high = step.predict_interval(GRID, 0.9).T
    half_width = (high - low) / 2
    mean = step.predict(GRID)
    assert np.all(mean >= 0.0 - half_width)
    assert np.all(mean <= 1.0 + half_width)


def test_the_intervals_cover_the_step_away_from_the_jump_and_are_narrow(step):
    low, high = step.predict_interval(GRID, 0.9).T
    inside = (low <= TRUTH) & (high >= TRUTH)
    assert inside[AWAY].mean() > 0.95
    assert np.median(high - low) < 0.5  # of the step's height: they say something


def test_the_jump_is_sharp(step):
    mean = step.predict(GRID)
    assert np.abs(mean - TRUTH)[AWAY].max() < 0.1
    assert step.evaluate(*step_function(1000, seed=1))["rmse"] < 0.15


def train_deeply(data, max_rows, **settings):
    """Fit 30 layers with fed inputs; any warning is an error."""
    rows = np.random.default_rng(0).permutation(len(data.y))[:max_rows]
    kind = DeepGPClassifier if data.is_classification else DeepGPRegressor
    model = kind(n_layers=30, feed_inputs=True, random_state=0, **settings)
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
