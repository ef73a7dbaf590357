"""Scikit-learn's histogram gradient boosting as it comes: what a user has without choosing anything."""

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from experiments.baselines.predictive import GaussianMixture

_N_FOLDS = 5
_MOST_CATEGORIES = 255  # that it takes


class HistogramTrees:
    """One deviation for all rows, that of rows left out; or class probabilities."""

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "Gaussian, one deviation"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        X, y = _readable(rows.frame.rows), rows.y
        if rows.classes is not None:
            model = HistGradientBoostingClassifier(random_state=rows.seed).fit(X, y)
            return lambda inputs: Classes(model.predict_proba(_readable(rows.frame(inputs))))
        left_out = np.empty(len(y))
        for kept, held_out in rows.folds(_N_FOLDS):
            model = HistGradientBoostingRegressor(random_state=rows.seed)
            left_out[held_out] = model.fit(X.iloc[kept], y[kept]).predict(X.iloc[held_out])
        deviation = float(np.sqrt(np.mean((y - left_out) ** 2)))
        regressor = HistGradientBoostingRegressor(random_state=rows.seed).fit(X, y)

        def predict(inputs: pa.Table) -> Prediction:
            mean = regressor.predict(_readable(rows.frame(inputs)))
            return Regression(GaussianMixture.of_one(mean, deviation))

        return predict


def _readable(frame: pd.DataFrame) -> pd.DataFrame:
    """Give columns of too many categories as their codes."""
    codes = {
        name: frame[name].cat.codes
        for name in frame.columns
        if isinstance(frame[name].dtype, pd.CategoricalDtype)
        and len(frame[name].cat.categories) > _MOST_CATEGORIES
    }
    return frame.assign(**codes)
