"""LightGBM: a dozen settings with early stopping; one deviation, or one by row, as held-out rows prefer."""

from collections.abc import Mapping
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from benchmarks.suite.systems.boosting import Fitted, at_least, log_density, search
from experiments.baselines.predictive import GaussianMixture

_CHOICES = [
    {"num_leaves": leaves, "min_data_in_leaf": least, "feature_fraction": columns, "lambda_l2": l2}
    for leaves, least, columns, l2 in (
        (31, 20, 1.0, 0.0),
        (7, 5, 1.0, 1.0),
        (15, 3, 0.7, 1.0),
        (127, 20, 0.7, 1.0),
        (4, 10, 1.0, 1.0),
        (31, 5, 0.5, 0.1),
        (63, 50, 0.9, 5.0),
        (15, 20, 0.5, 10.0),
        (7, 2, 0.6, 0.0),
        (255, 10, 0.8, 1.0),
        (31, 2, 0.9, 1.0),
        (3, 5, 0.7, 0.0),
    )
]
_CHOICES_OF_DEVIATION = [
    {"num_leaves": leaves, "min_data_in_leaf": least, "feature_fraction": 0.8, "lambda_l2": 5.0}
    for leaves, least in ((4, 20), (15, 20), (31, 50))
]
_MOST_TREES, _PATIENCE = 5_000, 50
_RATE_OF_FEW, _RATE_OF_MANY, _MANY = 0.03, 0.08, 20_000
_SHARE_OF_MEAN = 0.6
# The mean of the log of a squared standard Gaussian, which the log of a squared residual errs by.
_LOG_CHI_SQUARE = -1.2704


class LightGBM:
    """The mean by squared error; classes by cross entropy."""

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "Gaussian, one deviation or by row"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        if rows.classes is not None:
            return _classes(rows, clock)
        X, y = rows.frame.rows, rows.y
        task = {"objective": "regression"}
        found = search(rows, clock, _SHARE_OF_MEAN, _CHOICES, _fitter(X, y, rows.seed, task))
        model = _final(X, y, rows.seed, task, found.settings, found.n_trees)
        residuals = y[found.rows] - found.predicted
        deviation = float(np.sqrt(np.mean(residuals**2)))
        of_deviation = _deviation_by_row(rows, clock, found.rows, residuals, deviation)

        def predict(inputs: pa.Table) -> Prediction:
            frame = rows.frame(inputs)
            mean = np.asarray(model.predict(frame))
            deviations = deviation if of_deviation is None else of_deviation(frame)
            return Regression(GaussianMixture.of_one(mean, deviations))

        return predict


def _deviation_by_row(
    rows: TrainingRows, clock: Clock, numbers: np.ndarray, residuals: np.ndarray, deviation: float
) -> Any:
    """Learn the log of squared held-out residuals; None where one deviation for all rows has the higher density."""
    X = rows.frame.rows.iloc[numbers]
    floor = 1e-4 * deviation**2
    logs = np.log(residuals**2 + floor)
    judged = TrainingRows(rows.inputs.take(numbers), logs, rows.target, None, None, rows.seed)
    task = {"objective": "regression"}
    found = search(judged, clock, 1.0, _CHOICES_OF_DEVIATION, _fitter(X, logs, rows.seed, task))
    held_out = residuals[found.rows]

    def deviations(predicted: np.ndarray, factor: float) -> np.ndarray:
        return at_least(factor * np.exp(0.5 * (predicted - _LOG_CHI_SQUARE)), residuals)

    # One factor for all rows makes the squared errors right in the mean.
    raw = deviations(found.predicted, 1.0)
    factor = float(np.sqrt(np.mean((held_out / raw) ** 2)))
    if log_density(held_out, factor * raw) <= log_density(held_out, deviation):
        return None
    model = _final(X, logs, rows.seed, task, found.settings, found.n_trees)
    return lambda frame: deviations(np.asarray(model.predict(frame)), factor)


def _classes(rows: TrainingRows, clock: Clock) -> Predictor:
    assert rows.classes is not None
    X, n_classes = rows.frame.rows, len(rows.classes)
    task: dict[str, Any] = {"objective": "binary"}
    if n_classes > 2:
        task = {"objective": "multiclass", "num_class": n_classes}
    found = search(rows, clock, 1.0, _CHOICES, _fitter(X, rows.y, rows.seed, task))
    model = _final(X, rows.y, rows.seed, task, found.settings, found.n_trees)

    def predict(inputs: pa.Table) -> Prediction:
        p = np.asarray(model.predict(rows.frame(inputs)))
        return Classes(np.stack([1 - p, p], axis=1) if n_classes == 2 else p)

    return predict


def _parameters(seed: int, n_rows: int, task: Mapping[str, Any], settings: Mapping) -> dict:
    return {
        "learning_rate": _RATE_OF_FEW if n_rows < _MANY else _RATE_OF_MANY,
        "bagging_fraction": 0.9,
        "bagging_freq": 1,
        "seed": seed,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
        **settings,
        **task,
    }


def _fitter(X: pd.DataFrame, y: np.ndarray, seed: int, task: Mapping[str, Any]) -> Any:
    def fit(settings: Mapping[str, Any], kept: np.ndarray, held_out: np.ndarray) -> Fitted:
        training = lightgbm.Dataset(X.iloc[kept], y[kept])
        booster = lightgbm.train(
            _parameters(seed, len(y), task, settings),
            training,
            _MOST_TREES,
            valid_sets=[lightgbm.Dataset(X.iloc[held_out], y[held_out], reference=training)],
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
        )
        (loss,) = booster.best_score["valid_0"].values()
        return Fitted(loss, booster.best_iteration, np.asarray(booster.predict(X.iloc[held_out])))

    return fit


def _final(
    X: pd.DataFrame,
    y: np.ndarray,
    seed: int,
    task: Mapping[str, Any],
    settings: Mapping[str, Any],
    n_trees: int,
) -> lightgbm.Booster:
    return lightgbm.train(
        _parameters(seed, len(y), task, settings), lightgbm.Dataset(X, y), n_trees
    )
