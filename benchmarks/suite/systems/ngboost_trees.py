"""NGBoost: a Gaussian by row or class probabilities, boosted by natural gradients; a few settings, early stopping."""

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from ngboost import NGBClassifier, NGBRegressor
from ngboost.distns import Normal, k_categorical
from sklearn.tree import DecisionTreeRegressor

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from benchmarks.suite.systems.boosting import Fitted, Pace, must_end, search
from experiments.baselines.predictive import GaussianMixture

_CHOICES: list[dict[str, Any]] = [
    {"depth": depth, "least": least, "minibatch_frac": share, "col_sample": columns}
    for depth, least, share, columns in (
        (3, 1, 1.0, 1.0),
        (4, 5, 0.5, 0.7),
        (2, 5, 1.0, 0.7),
        (6, 10, 0.5, 0.7),
        (3, 20, 0.7, 1.0),
        (5, 2, 0.8, 0.4),
    )
]
_SLOWEST_RATE = 0.03
_SHARE_OF_ALL = 0.85


class NGBoost:
    """Its own law; text columns are one-hot."""

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "Gaussian by row"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        fit = _Fit(rows, clock)
        fit.pace = Pace.in_time(rows, clock, _SHARE_OF_ALL, fit.pilot, slowest=_SLOWEST_RATE)
        found = search(rows, clock, _SHARE_OF_ALL, _CHOICES, fit)
        model = fit.final(found.settings, found.n_trees)

        def predict(inputs: pa.Table) -> Prediction:
            law = model.pred_dist(rows.matrix(inputs))
            if rows.classes is not None:
                return Classes(law.class_probs())
            return Regression(GaussianMixture.of_one(law.loc, law.scale))

        return predict


class _OverError(Exception):
    """The time is used up, or no tree has helped for long."""


class _Fit:
    """Fits to the rows of one table."""

    def __init__(self, rows: TrainingRows, clock: Clock):
        self.X, self.y, self.seed, self.clock = rows.matrix.X, rows.y, rows.seed, clock
        self.classification = rows.classes is not None
        self.pace = Pace(0.1)

    def __call__(
        self, settings: Mapping[str, Any], kept: np.ndarray, held_out: np.ndarray
    ) -> Fitted:
        y = self.y
        if self.classification:  # some of which may have no row in a fold
            known = np.unique(y[kept])
            held_out = held_out[np.isin(y[held_out], known)]
            y = np.searchsorted(known, y)
        losses: list[float] = []

        def judge(law: Any, y_held_out: np.ndarray) -> float:
            losses.append(float(law.total_score(y_held_out)))
            best = int(np.argmin(losses))
            if must_end(self.clock) or len(losses) - best > self.pace.patience:
                raise _OverError
            return losses[-1]

        model = self._model(settings, self.pace.most_trees, y[kept])
        with contextlib.suppress(_OverError):
            model.fit(self.X[kept], y[kept], self.X[held_out], y[held_out], val_loss_monitor=judge)
        best = int(np.argmin(losses))
        return Fitted(losses[best], best + 1, np.empty(len(held_out)))

    def pilot(self, n_trees: int) -> None:
        self.final(_CHOICES[0], n_trees)

    def final(self, settings: Mapping[str, Any], n_trees: int) -> Any:
        return self._model(settings, n_trees, self.y).fit(self.X, self.y)

    def _model(self, settings: Mapping[str, Any], n_trees: int, y: np.ndarray) -> Any:
        tree = DecisionTreeRegressor(
            max_depth=settings["depth"],
            min_samples_leaf=settings["least"],
            random_state=self.seed,
        )
        law: Any = k_categorical(int(y.max()) + 1) if self.classification else Normal
        kind = NGBClassifier if self.classification else NGBRegressor
        return kind(
            Dist=law,
            Base=tree,
            n_estimators=n_trees,
            learning_rate=self.pace.rate,
            minibatch_frac=settings["minibatch_frac"],
            col_sample=settings["col_sample"],
            random_state=self.seed,
            verbose=False,
        )
