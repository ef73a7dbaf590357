"""CatBoost: a dozen settings with early stopping; one deviation for all rows, or the law of `RMSEWithUncertainty`."""

from collections.abc import Mapping
from typing import Any

import catboost
import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from benchmarks.suite.systems.boosting import Fitted, at_least, log_density, search
from experiments.baselines.predictive import GaussianMixture

_CHOICES = [
    {"depth": depth, "l2_leaf_reg": l2, "random_strength": strength}
    for depth, l2, strength in (
        (6, 3.0, 1.0),
        (4, 1.0, 1.0),
        (8, 3.0, 1.0),
        (6, 1.0, 0.1),
        (3, 3.0, 1.0),
        (5, 10.0, 1.0),
        (7, 1.0, 3.0),
        (4, 3.0, 0.1),
        (2, 1.0, 1.0),
        (6, 10.0, 3.0),
        (8, 10.0, 0.1),
        (5, 0.5, 0.5),
    )
]
_CHOICES_OF_DEVIATION = [_CHOICES[number] for number in (1, 0, 4, 5)]
_MOST_TREES, _PATIENCE = 5_000, 50
_RATE_OF_FEW, _RATE_OF_MANY, _MANY = 0.05, 0.1, 10_000
_SHARE_OF_MEAN = 0.6


class CatBoost:
    """The mean by squared error; classes by cross entropy."""

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "Gaussian, one deviation or by row"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        X, text = _readable(rows.frame.rows)
        if rows.classes is not None:
            loss = "Logloss" if len(rows.classes) == 2 else "MultiClass"
            fit = _Fit(X, rows.y, text, rows.seed, loss)
            found = search(rows, clock, 1.0, _CHOICES, fit)
            model = fit.final(found.settings, found.n_trees)
            return lambda inputs: Classes(
                model.predict(_readable(rows.frame(inputs))[0], prediction_type="Probability")
            )
        fit = _Fit(X, rows.y, text, rows.seed, "RMSE")
        found = search(rows, clock, _SHARE_OF_MEAN, _CHOICES, fit)
        residuals = rows.y[found.rows] - found.predicted
        deviation = float(np.sqrt(np.mean(residuals**2)))
        of_mean = fit.final(found.settings, found.n_trees)
        with_deviation = _Fit(X, rows.y, text, rows.seed, "RMSEWithUncertainty")
        other = search(rows, clock, 1.0, _CHOICES_OF_DEVIATION, with_deviation)
        by_row = None
        if _density(rows.y[other.rows], other.predicted, residuals) > log_density(
            residuals, deviation
        ):
            by_row = with_deviation.final(other.settings, other.n_trees)

        def predict(inputs: pa.Table) -> Prediction:
            frame = _readable(rows.frame(inputs))[0]
            mean = of_mean.predict(frame)
            if by_row is None:
                return Regression(GaussianMixture.of_one(mean, deviation))
            center, variance = by_row.predict(frame, prediction_type="RMSEWithUncertainty").T
            law = GaussianMixture.of_one(center, at_least(np.sqrt(variance), residuals))
            return Regression(law, mean=mean)

        return predict


def _density(y: np.ndarray, predicted: np.ndarray, residuals: np.ndarray) -> float:
    return log_density(y - predicted[:, 0], at_least(np.sqrt(predicted[:, 1]), residuals))


def _readable(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Give categories as text, a missing one too, and the names of these columns."""
    text = [name for name in frame.columns if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    values = {name: frame[name].astype(object).fillna("(missing)").astype(str) for name in text}
    return frame.assign(**values), text


class _Fit:
    """Fits of one loss to the rows of one table."""

    def __init__(self, X: pd.DataFrame, y: np.ndarray, text: list[str], seed: int, loss: str):
        self.X, self.y, self.text, self.seed, self.loss = X, y, text, seed, loss

    def __call__(
        self, settings: Mapping[str, Any], kept: np.ndarray, held_out: np.ndarray
    ) -> Fitted:
        model = self._model(settings, _MOST_TREES)
        pool = self._pool(held_out)
        model.fit(self._pool(kept), eval_set=pool, early_stopping_rounds=_PATIENCE)
        kinds = {"RMSE": "RawFormulaVal", "RMSEWithUncertainty": "RMSEWithUncertainty"}
        predicted = model.predict(pool, prediction_type=kinds.get(self.loss, "Probability"))
        loss = model.get_best_score()["validation"][self.loss]
        if self.loss == "RMSE":
            loss = loss**2  # which averages over folds
        return Fitted(loss, model.get_best_iteration() + 1, np.asarray(predicted))

    def final(self, settings: Mapping[str, Any], n_trees: int) -> catboost.CatBoost:
        return self._model(settings, n_trees).fit(self._pool(np.arange(len(self.y))))

    def _model(self, settings: Mapping[str, Any], n_trees: int) -> catboost.CatBoost:
        return catboost.CatBoost(
            {
                "loss_function": self.loss,
                "iterations": n_trees,
                "learning_rate": _RATE_OF_FEW if len(self.y) < _MANY else _RATE_OF_MANY,
                "random_seed": self.seed,
                "thread_count": 1,
                "verbose": False,
                "allow_writing_files": False,
                **settings,
            }
        )

    def _pool(self, numbers: np.ndarray) -> catboost.Pool:
        return catboost.Pool(self.X.iloc[numbers], self.y[numbers], cat_features=self.text)
