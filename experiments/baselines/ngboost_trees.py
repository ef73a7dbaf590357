"""NGBoost: natural gradients boost the parameters of a predictive law, by default a Gaussian."""

import dataclasses
from typing import Any

import ngboost
import numpy as np
from ngboost.distns import Normal, k_categorical

from experiments.baselines.boosting import validation_parts
from experiments.baselines.interface import ClassificationPredictor, Observer, RegressionPredictor
from experiments.baselines.predictive import GaussianMixture


@dataclasses.dataclass(frozen=True)
class _Settings:
    """The largest number of trees (the 2000 of its paper), and when to stop adding them; the rest as it comes."""

    max_trees: int = 2_000
    patience: int = 50

    def fit_all(self, X: np.ndarray, y: np.ndarray, seed: int, law: Any) -> ngboost.NGBoost:
        """Choose the number of trees on held-out rows, then fit that many on all rows."""
        rounds = []
        for kept, held_out in validation_parts(len(y), seed):
            model = self._new(self.max_trees, seed, law)
            model.fit(
                X[kept],
                y[kept],
                X_val=X[held_out],
                Y_val=y[held_out],
                early_stopping_rounds=self.patience,
            )
            best = model.best_val_loss_itr
            rounds.append((self.max_trees if best is None else best) + 1)
        return self._new(round(float(np.mean(rounds))), seed, law).fit(X, y)

    @staticmethod
    def _new(n_trees: int, seed: int, law: Any) -> ngboost.NGBoost:
        return ngboost.NGBoost(Dist=law, n_estimators=n_trees, random_state=seed, verbose=False)


@dataclasses.dataclass(frozen=True)
class NGBoostRegressor(_Settings):
    """A Gaussian with a mean and a deviation for each row."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        model = self.fit_all(X, y, seed, Normal)

        def predict(X_new: np.ndarray) -> GaussianMixture:
            law = model.pred_dist(X_new)
            return GaussianMixture.of_one(law.loc, law.scale)

        return predict


@dataclasses.dataclass(frozen=True)
class NGBoostClassifier(_Settings):
    """Class probabilities."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        model = self.fit_all(X, y, seed, k_categorical(int(y.max()) + 1))
        return lambda X_new: model.pred_dist(X_new).class_probs()
