"""The systems by name, one file each; a file is imported when its system is asked for.

To add a system, write a file with a class that is a `System`, and add a line to `_PLACES`.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression

Prediction = Regression | Classes
Predictor = Callable[[pa.Table], Prediction]
"""Gives predictions for the inputs of test rows."""


class Clock:
    """Counts the processor seconds of a fit.

    Attributes:
        limit: how many it may take.
        stopped: whether a system ended before it was done since they were used up.
    """

    def __init__(self, limit: float):
        self.limit, self.stopped = limit, False
        self._started = time.process_time()

    def used(self) -> float:
        """Processor seconds since the start."""
        return time.process_time() - self._started

    def left(self) -> float:
        """Processor seconds that are left."""
        return self.limit - self.used()

    def is_over(self, share: float = 1.0) -> bool:
        """Whether a share of the time is used up, in which case the system ends early, and the record says so."""
        if self.used() < share * self.limit:
            return False
        self.stopped = True
        return True


class System(Protocol):
    """Something that learns from rows and predicts others."""

    most_rows: int
    """Tables with more rows are not for it."""

    seconds: float | None
    """Processor seconds that a fit may take, where the suite's limit is not for it."""

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        """Learn from training rows, at the best setting that a user would find in the time."""
        ...

    def law(self, classification: bool) -> str:
        """Say in a few words what is predicted for a row."""
        ...


_PLACES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bochner": ("ours", "Ours", {}),
    "bochner, paper": ("ours", "Ours", {"settings": {"preset": "paper"}}),
    "constant": ("constant", "Constant", {}),
    "linear": ("linear", "Linear", {}),
    "LightGBM": ("lightgbm_trees", "LightGBM", {}),
    "CatBoost": ("catboost_trees", "CatBoost", {}),
    "HistGradientBoosting": ("histogram_trees", "HistogramTrees", {}),
    "NGBoost": ("ngboost_trees", "NGBoost", {}),
    "RealMLP": ("real_mlp", "RealMLP", {}),
    "exact GP": ("exact_gp", "ExactGP", {}),
    "GPyTorch SVGP": ("gpytorch_processes", "Sparse", {}),
    "GPyTorch DGP": ("gpytorch_processes", "Deep", {}),
}
NAMES = tuple(_PLACES)
"""All systems."""

OURS = tuple(name for name in NAMES if name.startswith("bochner"))
"""Those of this project; the first is the default, and the one that is ranked."""


def make(name: str) -> System:
    """Give a system by name."""
    module, kind, settings = _PLACES[name]
    place = importlib.import_module(f"benchmarks.suite.systems.{module}")
    return getattr(place, kind)(**settings)
