"""CatBoost, whose regression gives each row a mean and a variance of its own."""

import dataclasses
from typing import Any

import catboost
import numpy as np

from experiments.baselines.boosting import chosen_depth
from experiments.baselines.interface import ClassificationPredictor, Observer, RegressionPredictor
from experiments.baselines.predictive import GaussianMixture


@dataclasses.dataclass(frozen=True)
class _Settings:
    """Depths of the trees to try, the largest number of trees, and when to stop adding them."""

    depths: tuple[int, ...] = (4, 6, 8)
    max_trees: int = 3_000
    learning_rate: float = 0.05
    patience: int = 50

    def parameters(self, seed: int, depth: int, n_trees: int, **task: Any) -> dict[str, Any]:
        return {
            "iterations": n_trees,
            "learning_rate": self.learning_rate,
            "depth": depth,
            "random_seed": seed,
            "verbose": False,
            "allow_writing_files": False,
            **task,
        }

    def fit_all(self, X: np.ndarray, y: np.ndarray, seed: int, **task: Any) -> catboost.CatBoost:
        """Choose depth and number of trees on held-out rows, then fit that many on all rows."""

        def losses_by_tree(depth: int, kept: np.ndarray, held_out: np.ndarray) -> list[float]:
            model = catboost.CatBoost(self.parameters(seed, depth, self.max_trees, **task))
            held_out_rows = catboost.Pool(X[held_out], y[held_out])
            model.fit(X[kept], y[kept], eval_set=held_out_rows, early_stopping_rounds=self.patience)
            return model.get_evals_result()["validation"][task["loss_function"]]

        depth, n_trees = chosen_depth(self.depths, len(y), seed, losses_by_tree)
        return catboost.CatBoost(self.parameters(seed, depth, n_trees, **task)).fit(X, y)


@dataclasses.dataclass(frozen=True)
class CatBoostRegressor(_Settings):
    """Gaussian likelihood with a mean and a variance for each row (`RMSEWithUncertainty`)."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        model = self.fit_all(X, y, seed, loss_function="RMSEWithUncertainty")

        def predict(X_new: np.ndarray) -> GaussianMixture:
            mean, variance = model.predict(X_new, prediction_type="RMSEWithUncertainty").T
            return GaussianMixture.of_one(mean, np.sqrt(variance))

        return predict


@dataclasses.dataclass(frozen=True)
class CatBoostClassifier(_Settings):
    """Cross entropy."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        loss = "Logloss" if int(y.max()) == 1 else "MultiClass"
        model = self.fit_all(X, y, seed, loss_function=loss)
        return lambda X_new: np.asarray(model.predict(X_new, prediction_type="Probability"))
