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
from benchmarks.suite.systems.boosting import Fitted, Pace, at_least, log_density, must_end, search
from experiments.baselines.predictive import GaussianMixture

# Categories by themselves in place of all their combinations, which takes half the time.
_SIMPLE = {"max_ctr_complexity": 1, "one_hot_max_size": 16}
_CHOICES: list[dict[str, Any]] = [
    {"depth": depth, "l2_leaf_reg": l2, "random_strength": strength, **others}
    for depth, l2, strength, others in (
        (6, 3.0, 1.0, {}),
        (6, 1.0, 0.0, _SIMPLE),
        (4, 0.1, 0.0, _SIMPLE),
        (8, 3.0, 1.0, {"max_ctr_complexity": 2}),
        (2, 1.0, 1.0, {}),
        (6, 1.0, 0.1, {"grow_policy": "Lossguide", "max_leaves": 8, **_SIMPLE}),
        (8, 1.0, 0.1, {"rsm": 0.7, **_SIMPLE}),
        (4, 10.0, 3.0, {"rsm": 0.5}),
        (3, 1.0, 0.1, _SIMPLE),
        (7, 3.0, 1.0, {"grow_policy": "Depthwise", "min_data_in_leaf": 10, **_SIMPLE}),
        (6, 10.0, 3.0, {"max_ctr_complexity": 2}),
        (10, 1.0, 0.1, {"grow_policy": "Lossguide", "max_leaves": 31, "rsm": 0.7, **_SIMPLE}),
    )
]
_CHOICES_OF_DEVIATION = [_CHOICES[number] for number in (0, 7, 2, 4, 3)]
_SLOWEST_RATE = 0.05
_SHARE_OF_MEAN, _SHARE_OF_ALL = 0.6, 0.85


class CatBoost:
    """The mean by squared error; classes by cross entropy."""

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "Gaussian, one deviation or by row"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        if rows.classes is not None:
            loss = "Logloss" if len(rows.classes) == 2 else "MultiClass"
            fit = _Fit(rows, loss, clock, _SHARE_OF_ALL)
            found = search(rows, clock, _SHARE_OF_ALL, _CHOICES, fit)
            model = fit.final(found.settings, found.n_trees)
            return lambda inputs: Classes(
                model.predict(_readable(rows.frame(inputs))[0], prediction_type="Probability")
            )
        fit = _Fit(rows, "RMSE", clock, _SHARE_OF_MEAN)
        found = search(rows, clock, _SHARE_OF_MEAN, _CHOICES, fit)
        residuals = rows.y[found.rows] - found.predicted
        deviation = float(np.sqrt(np.mean(residuals**2)))
        of_mean = fit.final(found.settings, found.n_trees)
        fit_both = _Fit(rows, "RMSEWithUncertainty", clock, _SHARE_OF_ALL - _SHARE_OF_MEAN)
        other = search(rows, clock, _SHARE_OF_ALL, _CHOICES_OF_DEVIATION, fit_both, enough=1)
        errors = rows.y[other.rows] - other.predicted[:, 0]
        raw = at_least(np.sqrt(other.predicted[:, 1]), residuals)
        # One factor for all rows makes the squared errors right in the mean.
        factor = float(np.sqrt(np.mean((errors / raw) ** 2)))
        by_row = None
        if log_density(errors, factor * raw) > log_density(residuals, deviation):
            by_row = fit_both.final(other.settings, other.n_trees)

        def predict(inputs: pa.Table) -> Prediction:
            frame = _readable(rows.frame(inputs))[0]
            mean = of_mean.predict(frame)
            if by_row is None:
                return Regression(GaussianMixture.of_one(mean, deviation))
            center, variance = by_row.predict(frame, prediction_type="RMSEWithUncertainty").T
            deviations = factor * at_least(np.sqrt(variance), residuals)
            return Regression(GaussianMixture.of_one(center, deviations), mean=mean)

        return predict


def _readable(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Give categories as text, a missing one too, and the names of these columns."""
    text = [name for name in frame.columns if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    values = {name: frame[name].astype(object).fillna("(missing)").astype(str) for name in text}
    return frame.assign(**values), text


class _Fit:
    """Fits of one loss to the rows of one table."""

    def __init__(self, rows: TrainingRows, loss: str, clock: Clock, share: float):
        self.X, self.text = _readable(rows.frame.rows)
        self.y, self.seed, self.loss, self.clock = rows.y, rows.seed, loss, clock
        self.task: dict[str, Any] = {"loss_function": loss}
        if loss == "MultiClass":  # some of which may have no row in a fold
            self.task["classes_count"] = int(rows.y.max()) + 1
        self.pace = Pace(0.1)
        self.pace = Pace.in_time(
            rows, clock, share, lambda n: self.final(_CHOICES[0], n), slowest=_SLOWEST_RATE
        )

    def __call__(
        self, settings: Mapping[str, Any], kept: np.ndarray, held_out: np.ndarray
    ) -> Fitted:
        model = self._model(settings, self.pace.most_trees)
        pool = self._pool(held_out)
        model.fit(
            self._pool(kept),
            eval_set=pool,
            early_stopping_rounds=self.pace.patience,
            # Its time grows with the square of the number of trees.
            callbacks=[self] if self.pace.is_tight else None,
        )
        kinds = {"RMSE": "RawFormulaVal", "RMSEWithUncertainty": "RMSEWithUncertainty"}
        predicted = model.predict(pool, prediction_type=kinds.get(self.loss, "Probability"))
        loss = model.get_best_score()["validation"][self.loss]
        if self.loss == "RMSE":
            loss = loss**2  # which averages over folds
        return Fitted(loss, model.get_best_iteration() + 1, np.asarray(predicted))

    def final(self, settings: Mapping[str, Any], n_trees: int) -> catboost.CatBoost:
        return self._model(settings, n_trees).fit(self._pool(np.arange(len(self.y))))

    def after_iteration(self, info: Any) -> bool:
        """Say whether CatBoost, which calls this after each tree, may add another."""
        return not must_end(self.clock)

    def _model(self, settings: Mapping[str, Any], n_trees: int) -> catboost.CatBoost:
        return catboost.CatBoost(
            {
                "iterations": n_trees,
                "learning_rate": self.pace.rate,
                "random_seed": self.seed,
                "thread_count": 1,
                "verbose": False,
                "allow_writing_files": False,
                **self.task,
                **settings,
            }
        )

    def _pool(self, numbers: np.ndarray) -> catboost.Pool:
        return catboost.Pool(self.X.iloc[numbers], self.y[numbers], cat_features=self.text)
