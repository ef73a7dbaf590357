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
        least_rows: smaller tables are not for it.
        most_rows: larger tables are not for it.
        not_for: further tables that are not.
        seconds: what a fit may take where that is not the suite's limit.
        one_split_above: rows above which it has one split, as it takes long.
    """

    module: str
    kind: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    packages: tuple[str, ...] = ()
    least_rows: int = 0
    most_rows: int = 10**9
    not_for: tuple[str, ...] = ()
    seconds: float | None = None
    one_split_above: int = 10**9


_HOUR = 3_600.0  # ours is told by its seconds, and not stopped
_LONG: dict[str, Any] = {"seconds": 1_800.0, "one_split_above": 5_000}
_OF_TORCH: dict[str, Any] = {"packages": ("gpytorch", "torch"), **_LONG}
_MOST_IN_ROWS = 2_222
"""Rows of the largest table whose training part is fitted exactly; larger ones have landmarks and a deep model."""

_IN_PIXELS = ("mnist", "optdigits")  # the default has no landmarks for them
_TAKING_PART: dict[str, dict[str, Any]] = {
    "constant": {},
    "linear": {},
    "exact": {"most_rows": _MOST_IN_ROWS},
    "landmarks": {"least_rows": _MOST_IN_ROWS + 1, "not_for": _IN_PIXELS},
    "deep": {"least_rows": _MOST_IN_ROWS + 1, "not_for": _IN_PIXELS},
}
"""Kinds of our members, and the tables for which the default has them beside others."""


def without(kind: str) -> str:
    """Name our default less a kind of member.

    Example:
        >>> from benchmarks.suite.systems import without
        >>> without("deep")
        'bochner without deep'
    """
    return f"bochner without {kind}"


_ABLATIONS = {
    without(kind): Place("ours", "Ours", {"without": kind}, seconds=_HOUR, **tables)
    for kind, tables in _TAKING_PART.items()
}
PLACES = {
    "bochner": Place("ours", "Ours", seconds=_HOUR),
    "bochner, deep alone": Place("ours", "Ours", {"alone": "deep"}, seconds=_HOUR),
    "bochner, exact alone": Place(
        "ours", "Ours", {"alone": "exact"}, seconds=_HOUR, not_for=("mnist",)
    ),
    "bochner, paper": Place("ours", "Ours", {"preset": "paper"}, seconds=_HOUR),
    **_ABLATIONS,
    "constant": Place("constant", "Constant"),
    "linear": Place("linear", "Linear"),
    "LightGBM": Place("lightgbm_trees", "LightGBM", packages=("lightgbm",)),
    "CatBoost": Place("catboost_trees", "CatBoost", packages=("catboost",)),
    "HistGradientBoosting": Place("histogram_trees", "HistogramTrees"),
    "exact GP": Place("exact_gp", "ExactGP", most_rows=3_000),
    "NGBoost": Place("ngboost_trees", "NGBoost", packages=("ngboost",)),
    "RealMLP": Place("real_mlp", "RealMLP", packages=("pytabkit", "torch"), **_LONG),
    "GPyTorch SVGP": Place(
        "gpytorch_models", "Processes", {"n_layers": 1, "n_inducing": 512}, **_OF_TORCH
    ),
    "GPyTorch DGP": Place(
        "gpytorch_models", "Processes", {"n_layers": 2, "n_inducing": 128}, **_OF_TORCH
    ),
}
NAMES = tuple(PLACES)
"""All systems."""

USUAL = tuple(name for name in NAMES if name not in _ABLATIONS)
"""Those that a run without further words has."""

OURS = tuple(name for name in NAMES if name.startswith("bochner"))
"""Those of this project; the first is the default, and the one that is ranked."""

KINDS = tuple(_TAKING_PART)
"""Kinds of our members that a run may leave out."""


def make(name: str) -> System:
    """Give a system by name."""
    place = PLACES[name]
    module = importlib.import_module(f"benchmarks.suite.systems.{place.module}")
    return getattr(module, place.kind)(**place.settings)
