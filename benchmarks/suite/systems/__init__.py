"""The systems by name, one file each; a file is imported when its system is asked for.

To add a system, write a file with a class that is a `System`, and add a line to `PLACES`.
"""

import dataclasses
import importlib
import time
from collections.abc import Callable, Mapping
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

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        """Learn from training rows, at the best setting that a user would find in the time."""
        ...

    def law(self, classification: bool) -> str:
        """Say in a few words what is predicted for a row."""
        ...


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a system is, and which fits are for it; known without importing it.

    Attributes:
        module: the file in this folder.
        kind: its class.
        settings: what the class is made with.
        packages: whose versions a record holds.
        most_rows: larger tables are not for it.
        seconds: what a fit may take where that is not the suite's limit.
        one_split_above: rows above which it has one split, as it takes long.
    """

    module: str
    kind: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    packages: tuple[str, ...] = ()
    most_rows: int = 10**9
    seconds: float | None = None
    one_split_above: int = 10**9


_HOUR = 3_600.0  # ours is told by its seconds, and not stopped
_LONG: dict[str, Any] = {"seconds": 1_800.0, "one_split_above": 5_000}
PLACES = {
    "bochner": Place("ours", "Ours", seconds=_HOUR),
    "bochner, paper": Place("ours", "Ours", {"settings": {"preset": "paper"}}, seconds=_HOUR),
    "constant": Place("constant", "Constant"),
    "linear": Place("linear", "Linear"),
    "LightGBM": Place("lightgbm_trees", "LightGBM", packages=("lightgbm",)),
    "CatBoost": Place("catboost_trees", "CatBoost", packages=("catboost",)),
    "HistGradientBoosting": Place("histogram_trees", "HistogramTrees"),
    "exact GP": Place("exact_gp", "ExactGP", most_rows=3_000),
    "NGBoost": Place("ngboost_trees", "NGBoost", packages=("ngboost",)),
    "RealMLP": Place("real_mlp", "RealMLP", packages=("pytabkit", "torch"), **_LONG),
    "GPyTorch SVGP": Place("gpytorch_processes", "Sparse", packages=("gpytorch", "torch"), **_LONG),
    "GPyTorch DGP": Place("gpytorch_processes", "Deep", packages=("gpytorch", "torch"), **_LONG),
}
NAMES = tuple(PLACES)
"""All systems."""

OURS = tuple(name for name in NAMES if name.startswith("bochner"))
"""Those of this project; the first is the default, and the one that is ranked."""


def make(name: str) -> System:
    """Give a system by name."""
    place = PLACES[name]
    module = importlib.import_module(f"benchmarks.suite.systems.{place.module}")
    return getattr(module, place.kind)(**place.settings)
