"""Ridge and logistic regression on one-hot columns, the penalty chosen by rows left out."""

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from experiments.baselines.predictive import GaussianMixture

_PENALTIES = np.geomspace(1e-3, 1e5, 17)
_INVERSE_PENALTIES = np.geomspace(1e-4, 1e3, 8)
_N_FOLDS = 5
_MOST_ROWS_TO_CHOOSE = 10_000


class Linear:
    """One deviation for all rows, that of rows left out; or class probabilities."""

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "Gaussian, one deviation"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        return _regression(rows) if rows.classes is None else _classes(rows)


def _regression(rows: TrainingRows) -> Predictor:
    X, y = rows.matrix.X, rows.y
    penalty = float(RidgeCV(_PENALTIES).fit(X, y).alpha_)  # pyright: ignore[reportArgumentType]
    left_out = np.empty(len(y))
    for kept, held_out in rows.folds(_N_FOLDS):
        left_out[held_out] = Ridge(penalty).fit(X[kept], y[kept]).predict(X[held_out])
    deviation = np.sqrt(np.mean((y - left_out) ** 2))
    model = Ridge(penalty).fit(X, y)

    def predict(inputs: pa.Table) -> Prediction:
        return Regression(GaussianMixture.of_one(model.predict(rows.matrix(inputs)), deviation))

    return predict


def _classes(rows: TrainingRows) -> Predictor:
    X, y = rows.matrix.X, rows.y
    chosen = np.random.default_rng([rows.seed, 1]).permutation(len(y))[:_MOST_ROWS_TO_CHOOSE]
    losses = np.zeros(len(_INVERSE_PENALTIES))
    few = len(y) <= _MOST_ROWS_TO_CHOOSE
    for kept, held_out in rows.folds(_N_FOLDS) if few else [rows.held_out()]:
        kept, held_out = (part[np.isin(part, chosen)] for part in (kept, held_out))
        if len(np.unique(y[kept])) < 2:
            continue
        for number, inverse in enumerate(_INVERSE_PENALTIES):
            model = _logistic(inverse).fit(X[kept], y[kept])
            losses[number] += _loss(model, X[held_out], y[held_out])
    model = _logistic(_INVERSE_PENALTIES[np.argmin(losses)]).fit(X, y)
    return lambda inputs: Classes(model.predict_proba(rows.matrix(inputs)))


def _logistic(inverse_penalty: float) -> LogisticRegression:
    return LogisticRegression(C=inverse_penalty, max_iter=500)


def _loss(model: LogisticRegression, X: np.ndarray, y: np.ndarray) -> float:
    known = np.isin(y, model.classes_)
    logs = model.predict_log_proba(X[known])
    return -float(logs[np.arange(known.sum()), np.searchsorted(model.classes_, y[known])].sum())
