"""RealMLP with its tuned defaults: the mean of networks that each leave out, and are stopped by, a fold of the rows."""

import logging
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor
from sklearn.impute import SimpleImputer

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from experiments.baselines.predictive import GaussianMixture

_N_FOLDS = 5
_N_EPOCHS = 256  # its default
_ENOUGH_EPOCHS = 64
_ROWS_OF_PILOT, _EPOCHS_OF_PILOT = 4_096, 2
_SHARE_OF_FIRST, _SHARE_OF_ALL = 0.75, 0.9


class RealMLP:
    """One deviation for all rows, that of rows left out; classes by cross entropy without label smoothing."""

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "Gaussian, one deviation"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
        torch.set_num_threads(1)
        X, y = _Readable(rows.frame.rows), rows.y
        parts = rows.folds(_N_FOLDS)
        if rows.groups is not None and rows.groups.in_time:
            parts = [rows.held_out(1 / _N_FOLDS)]
        n_epochs = _epochs_in_time(rows, X.rows, clock)
        clock.stopped |= n_epochs < _ENOUGH_EPOCHS
        models: list[Any] = []
        errors: list[np.ndarray] = []
        started = clock.used()
        for number, (kept, held_out) in enumerate(parts):
            one_more = (clock.used() - started) / max(number, 1)
            if number and clock.used() + one_more > _SHARE_OF_ALL * clock.limit:
                break
            model = _network(rows, n_epochs, rows.seed + number)
            model.fit(X.rows.iloc[kept], y[kept], X.rows.iloc[held_out], y[held_out])
            models.append(model)
            if rows.classes is None:
                errors.append(y[held_out] - np.ravel(model.predict(X.rows.iloc[held_out])))
        if rows.classes is not None:
            return lambda inputs: Classes(
                np.mean([_probabilities(model, X(rows.frame(inputs)), rows) for model in models], 0)
            )
        deviation = float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))

        def predict(inputs: pa.Table) -> Prediction:
            frame = X(rows.frame(inputs))
            mean = np.mean([np.ravel(model.predict(frame)) for model in models], axis=0)
            return Regression(GaussianMixture.of_one(mean, deviation))

        return predict


class _Readable:
    """Numbers without missing values, with columns that say where these were; categories as they are."""

    def __init__(self, frame: pd.DataFrame):
        self._numbers = [name for name in frame.columns if frame[name].dtype == float]
        self._imputer = SimpleImputer(add_indicator=True, keep_empty_features=True)
        self._imputer.set_params(strategy="median").set_output(transform="pandas")
        if self._numbers:
            self._imputer.fit(frame[self._numbers])
        self.rows = self(frame)

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        others = frame.drop(columns=self._numbers)
        if not self._numbers:
            return others
        filled: Any = self._imputer.transform(frame[self._numbers])
        return pd.concat([filled.astype(np.float32), others], axis=1)


def _network(rows: TrainingRows, n_epochs: int, seed: int) -> Any:
    settings: dict[str, Any] = {
        "device": "cpu",
        "random_state": seed,
        "n_threads": 1,
        "n_epochs": n_epochs,
    }
    if rows.classes is None:
        return RealMLP_TD_Regressor(**settings)
    return RealMLP_TD_Classifier(val_metric_name="cross_entropy", use_ls=False, **settings)


def _epochs_in_time(rows: TrainingRows, X: pd.DataFrame, clock: Clock) -> int:
    """Give the number of epochs of a network, from the time that a part of the rows takes."""
    kept, held_out = rows.held_out(1 / _N_FOLDS)
    some = np.random.default_rng(rows.seed).permutation(kept)[:_ROWS_OF_PILOT]
    if len(some) < _ROWS_OF_PILOT:
        return _N_EPOCHS
    if rows.classes is not None:  # one row of each at least
        some = np.union1d(some, np.unique(rows.y, return_index=True)[1])
    judged = held_out[: _ROWS_OF_PILOT // 4]
    started = clock.used()
    pilot = _network(rows, _EPOCHS_OF_PILOT, rows.seed)
    pilot.fit(X.iloc[some], rows.y[some], X.iloc[judged], rows.y[judged])
    seconds = (clock.used() - started) / _EPOCHS_OF_PILOT * len(kept) / len(some)
    return int(np.clip(_SHARE_OF_FIRST * clock.left() / seconds, 1, _N_EPOCHS))


def _probabilities(model: Any, frame: pd.DataFrame, rows: TrainingRows) -> np.ndarray:
    """Give probabilities with a column for each class, those without a row in a fold included."""
    assert rows.classes is not None
    found = np.zeros((len(frame), len(rows.classes)))
    found[:, model.classes_] = model.predict_proba(frame)
    return found
