"""Boosted trees as the suite of the benchmarks has them, behind the interface of the baselines: one set of rivals."""

import dataclasses
import math

import numpy as np
import pyarrow as pa

from benchmarks.suite import systems
from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from experiments.baselines.interface import ClassificationPredictor, Observer, RegressionPredictor
from experiments.baselines.predictive import GaussianMixture


@dataclasses.dataclass(frozen=True)
class BoostingRegressor:
    """A system of the suite on arrays, with as much time as it wants.

    Attributes:
        system: its name there.
    """

    system: str

    def __post_init__(self):
        systems.make(self.system)  # which tells at once where a package is missing

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        predictor = _fitted(self.system, X, y, None, seed)

        def predict(X_new: np.ndarray) -> GaussianMixture:
            found = predictor(_table(X_new))
            assert isinstance(found, Regression)  # as the target is a number
            assert isinstance(found.law, GaussianMixture)  # as boosted trees predict
            return found.law

        return predict


@dataclasses.dataclass(frozen=True)
class BoostingClassifier:
    """The same for classes.

    Attributes:
        system: its name there.
    """

    system: str

    def __post_init__(self):
        systems.make(self.system)  # which tells at once where a package is missing

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        predictor = _fitted(self.system, X, y, np.arange(int(y.max()) + 1), seed)

        def predict(X_new: np.ndarray) -> np.ndarray:
            found = predictor(_table(X_new))
            assert isinstance(found, Classes)  # as the target is a class
            return found.probabilities

        return predict


def _fitted(
    system: str, X: np.ndarray, y: np.ndarray, classes: np.ndarray | None, seed: int
) -> systems.Predictor:
    rows = TrainingRows(_table(X), y, "y", classes, None, seed)
    return systems.make(system).fit(rows, systems.Clock(math.inf))


def _table(X: np.ndarray) -> pa.Table:
    return pa.table({f"x{number}": column for number, column in enumerate(np.asarray(X).T)})
