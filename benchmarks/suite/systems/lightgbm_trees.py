"""LightGBM: a dozen settings with early stopping; one deviation, or one by row, as held-out rows prefer."""

from collections.abc import Mapping
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
from lightgbm.callback import CallbackEnv, EarlyStopException

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from benchmarks.suite.systems.boosting import Fitted, Pace, at_least, log_density, must_end, search
from benchmarks.suite.tables import Groups
from experiments.baselines.predictive import GaussianMixture

# Its defaults join categories of fewer than 100 rows.
_SMALL_CATEGORIES = {"min_data_per_group": 5, "cat_smooth": 2.0, "max_cat_to_onehot": 16}
_CHOICES: list[dict[str, Any]] = [
    {
        "num_leaves": leaves,
        "min_data_in_leaf": least,
        "feature_fraction": columns,
        "bagging_fraction": share,
        "lambda_l2": l2,
        **others,
    }
    for leaves, least, columns, share, l2, others in (
        (31, 20, 1.0, 1.0, 0.0, {}),
        (7, 5, 1.0, 0.9, 1.0, _SMALL_CATEGORIES),
        (31, 5, 0.9, 0.9, 0.1, _SMALL_CATEGORIES),
        (127, 20, 0.7, 0.9, 1.0, {}),
        (15, 3, 0.7, 0.9, 1.0, _SMALL_CATEGORIES),
        (4, 10, 1.0, 0.9, 1.0, _SMALL_CATEGORIES),
        (63, 50, 0.9, 0.9, 5.0, {}),
        (31, 2, 0.9, 0.7, 1.0, _SMALL_CATEGORIES),
        (15, 20, 0.5, 0.9, 10.0, _SMALL_CATEGORIES),
        (255, 10, 0.8, 0.9, 1.0, {}),
        (7, 2, 0.6, 0.6, 0.0, _SMALL_CATEGORIES),
        (31, 5, 0.5, 0.9, 0.1, {"extra_trees": True, **_SMALL_CATEGORIES}),
    )
]
_CHOICES_OF_DEVIATION = [
    {"num_leaves": leaves, "min_data_in_leaf": least, "feature_fraction": 0.8, "lambda_l2": 5.0}
    for leaves, least in ((4, 20), (15, 20), (31, 50))
]
_PACE_OF_DEVIATION = Pace(0.05)
_SLOWEST_RATE = 0.03
_SHARE_OF_MEAN, _SHARE_OF_ALL = 0.65, 0.85
_SHARES_OF_VARIATION = (0.25, 0.5, 0.75, 1.0)  # of the log deviation between rows that is believed
_RANGE = (0.01, 0.99)


class LightGBM:
    """The mean by squared error; classes by cross entropy."""

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "Gaussian, one deviation or by row"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        if rows.classes is not None:
            return _classes(rows, clock)
        fit = _Fit(rows.frame.rows, rows.y, rows.seed, {"objective": "regression"}, clock)
        fit.pace = Pace.in_time(rows, clock, _SHARE_OF_MEAN, fit.pilot, slowest=_SLOWEST_RATE)
        found = search(rows, clock, _SHARE_OF_MEAN, _CHOICES, fit)
        model = fit.final(found.settings, found.n_trees)
        residuals = rows.y[found.rows] - found.predicted
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
    logs = np.log(residuals**2 + 1e-4 * deviation**2)
    groups = rows.groups and Groups(rows.groups.of_rows[numbers], rows.groups.in_time)
    judged = TrainingRows(rows.inputs.take(numbers), logs, rows.target, None, groups, rows.seed)
    task = {"objective": "regression"}
    fit = _Fit(rows.frame.rows.iloc[numbers], logs, rows.seed, task, clock, _PACE_OF_DEVIATION)
    found = search(judged, clock, _SHARE_OF_ALL, _CHOICES_OF_DEVIATION, fit, enough=0)
    held_out = residuals[found.rows]
    center, (low, high) = found.predicted.mean(), np.quantile(found.predicted, _RANGE)

    def raw(predicted: np.ndarray, share: float) -> np.ndarray:
        logs = center + share * (np.clip(predicted, low, high) - center)
        return at_least(np.exp(0.5 * logs), residuals)

    laws = []
    for share in _SHARES_OF_VARIATION:
        found_raw = raw(found.predicted, share)
        # One factor for all rows makes the squared errors right in the mean.
        factor = float(np.sqrt(np.mean((held_out / found_raw) ** 2)))
        laws.append((log_density(held_out, factor * found_raw), share, factor))
    best, share, factor = max(laws)
    if best <= log_density(held_out, deviation):
        return None
    model = fit.final(found.settings, found.n_trees)
    return lambda frame: factor * raw(np.asarray(model.predict(frame)), share)


def _classes(rows: TrainingRows, clock: Clock) -> Predictor:
    assert rows.classes is not None
    n_classes = len(rows.classes)
    task: dict[str, Any] = {"objective": "binary"}
    if n_classes > 2:
        task = {"objective": "multiclass", "num_class": n_classes}
    fit = _Fit(rows.frame.rows, rows.y, rows.seed, task, clock)
    fit.pace = Pace.in_time(rows, clock, _SHARE_OF_ALL, fit.pilot, slowest=_SLOWEST_RATE)
    found = search(rows, clock, _SHARE_OF_ALL, _CHOICES, fit)
    model = fit.final(found.settings, found.n_trees)

    def predict(inputs: pa.Table) -> Prediction:
        p = np.asarray(model.predict(rows.frame(inputs)))
        return Classes(np.stack([1 - p, p], axis=1) if n_classes == 2 else p)

    return predict


class _Fit:
    """Fits of one objective to the rows of one table."""

    def __init__(
        self,
        X: pd.DataFrame,
        y: np.ndarray,
        seed: int,
        task: Mapping[str, Any],
        clock: Clock,
        pace: Pace = Pace(0.1),  # noqa: B008, as it is frozen
    ):
        self.X, self.y, self.seed, self.task, self.clock = X, y, seed, task, clock
        self.pace = pace

    def __call__(
        self, settings: Mapping[str, Any], kept: np.ndarray, held_out: np.ndarray
    ) -> Fitted:
        training = lightgbm.Dataset(self.X.iloc[kept], self.y[kept])
        X = self.X.iloc[held_out]
        booster = lightgbm.train(
            self._parameters(settings),
            training,
            self.pace.most_trees,
            valid_sets=[lightgbm.Dataset(X, self.y[held_out], reference=training)],
            callbacks=[
                lightgbm.early_stopping(self.pace.patience, verbose=False),
                self._end_in_time,
            ],
        )
        (loss,) = booster.best_score["valid_0"].values()
        return Fitted(loss, booster.best_iteration, np.asarray(booster.predict(X)))

    def pilot(self, n_trees: int) -> None:
        self.final(_CHOICES[0], n_trees)

    def final(self, settings: Mapping[str, Any], n_trees: int) -> lightgbm.Booster:
        return lightgbm.train(self._parameters(settings), lightgbm.Dataset(self.X, self.y), n_trees)

    def _parameters(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "learning_rate": self.pace.rate,
            "bagging_freq": 1,
            "seed": self.seed,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
            **settings,
            **self.task,
        }

    def _end_in_time(self, environment: CallbackEnv) -> None:
        if must_end(self.clock):
            raise EarlyStopException(
                environment.iteration, environment.evaluation_result_list or []
            )
