"""LightGBM: its number of trees and of leaves chosen on held-out rows, then fitted anew on all of them."""

import dataclasses
from typing import Any

import lightgbm
import numpy as np

from experiments.baselines.boosting import validation_parts
from experiments.baselines.interface import ClassificationPredictor, Observer, RegressionPredictor
from experiments.baselines.predictive import GaussianMixture

_ROWS_FOR_THREADS = 20_000


@dataclasses.dataclass(frozen=True)
class _Settings:
    """Sizes of the trees to try, the largest number of trees, and when to stop adding them."""

    n_leaves: tuple[int, ...] = (8, 31, 127)
    max_trees: int = 3_000
    learning_rate: float = 0.05
    patience: int = 50

    def parameters(self, n_rows: int, n_leaves: int, seed: int, task: dict[str, Any]) -> dict:
        return {
            "num_leaves": n_leaves,
            "learning_rate": self.learning_rate,
            "bagging_fraction": 0.9,
            "bagging_freq": 1,
            "feature_fraction": 0.9,
            "min_data_in_leaf": 5 if n_leaves < 31 else 20,
            "seed": seed,
            # Threads that wait for each other cost small tables more than they bring.
            "num_threads": 1 if n_rows < _ROWS_FOR_THREADS else 0,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
            **task,
        }

    def choose(
        self, X: np.ndarray, y: np.ndarray, seed: int, task: dict[str, Any]
    ) -> tuple[lightgbm.Booster, np.ndarray, np.ndarray]:
        """Give the booster fitted on all rows, the rows that were held out, and what was predicted for them."""
        found = []
        for n_leaves in self.n_leaves:
            parameters = self.parameters(len(y), n_leaves, seed, task)
            losses, rounds, rows, predicted = [], [], [], []
            for kept, held_out in validation_parts(len(y), seed):
                training = lightgbm.Dataset(X[kept], y[kept])
                booster = lightgbm.train(
                    parameters,
                    training,
                    self.max_trees,
                    valid_sets=[lightgbm.Dataset(X[held_out], y[held_out], reference=training)],
                    callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
                )
                (loss,) = booster.best_score["valid_0"].values()
                losses.append(loss)
                rounds.append(booster.best_iteration)
                rows.append(held_out)
                predicted.append(booster.predict(X[held_out]))
            found.append(
                (np.mean(losses), n_leaves, round(float(np.mean(rounds))), rows, predicted)
            )
        _, n_leaves, n_trees, rows, predicted = min(found, key=lambda one: one[0])
        booster = lightgbm.train(
            self.parameters(len(y), n_leaves, seed, task), lightgbm.Dataset(X, y), max(n_trees, 1)
        )
        return booster, np.concatenate(rows), np.concatenate(predicted)


@dataclasses.dataclass(frozen=True)
class LightGBMRegressor(_Settings):
    """Least squares, and one deviation for all rows: that of the residuals of held-out rows."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        booster, rows, predicted = self.choose(X, y, seed, {"objective": "regression"})
        deviation = float(np.sqrt(np.mean((y[rows] - predicted) ** 2)))
        return lambda X_new: GaussianMixture.of_one(np.asarray(booster.predict(X_new)), deviation)


@dataclasses.dataclass(frozen=True)
class LightGBMClassifier(_Settings):
    """Cross entropy."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        n_classes = int(y.max()) + 1
        task: dict[str, Any] = {"objective": "binary"}
        if n_classes > 2:
            task = {"objective": "multiclass", "num_class": n_classes}
        booster, _, _ = self.choose(X, y, seed, task)

        def predict(X_new: np.ndarray) -> np.ndarray:
            found = np.asarray(booster.predict(X_new))
            return np.stack([1 - found, found], axis=1) if n_classes == 2 else found

        return predict
