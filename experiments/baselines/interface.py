"""The one interface of all baselines: `fit(X, y, seed=...)` gives a function from inputs to predictive laws.

Inputs and targets are raw arrays; scaling is a baseline's own affair. Targets of classifiers are indices of classes.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from experiments.baselines.predictive import GaussianMixture

RegressionPredictor = Callable[[np.ndarray], GaussianMixture]
ClassificationPredictor = Callable[[np.ndarray], np.ndarray]
"""Gives the probability of each class, one line a row."""


class Observer:
    """Looks at a training at a few moments, evenly spaced in the logarithm of the steps; its clock stops meanwhile.

    Attributes:
        records: what was seen: steps, seconds of training, and what `look` gave.
    """

    def __init__(self, look: Callable[[Any], Mapping[str, float]], n_looks: int = 20):
        self._look, self._n_looks = look, n_looks
        self._moments: set[int] = set()
        self._started = time.monotonic()
        self._paused = 0.0
        self.records: list[dict[str, float]] = []

    def start(self, n_steps: int) -> None:
        """Start the clock of a training of so many steps."""
        moments = np.geomspace(min(100, n_steps), n_steps, self._n_looks)
        self._moments = set(moments.round().astype(int).tolist())
        self._started, self._paused = time.monotonic(), 0.0

    def is_due(self, step: int) -> bool:
        """Whether the training is looked at after this many steps."""
        return step in self._moments

    def steps_to_next(self, step: int) -> int:
        """How many steps from here to the next look."""
        return min(moment for moment in self._moments if moment > step) - step

    def seconds(self) -> float:
        """Give the time since the start, less what was spent looking."""
        return round(time.monotonic() - self._started - self._paused, 3)

    def see(self, step: int, predictor: Any) -> None:
        """Look at the training after a number of steps."""
        now, seconds = time.monotonic(), self.seconds()
        self.records.append({"step": step, "seconds": seconds, **self._look(predictor)})
        self._paused += time.monotonic() - now


class Regressor(Protocol):
    """A regression baseline; its settings are its fields."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        """Learn from rows; an observer sees the training under way, where it has steps worth looking at."""
        ...


class Classifier(Protocol):
    """A classification baseline; its settings are its fields."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        """Learn from rows whose targets are indices of classes, 0 to the largest seen."""
        ...
