"""This project, fitted to tables by the names of their columns as a user would."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor

_N_DRAWS = 400


@dataclasses.dataclass(frozen=True)
class _Law:
    """The predictive mixture of a fitted model at some rows."""

    model: Any
    inputs: pa.Table
    target: str

    @property
    def mean(self) -> np.ndarray:
        return self.model.predict(self.inputs)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        return self.model.log_prob(self.inputs, y)

    def interval(self, coverage: float) -> np.ndarray:
        return self.model.predict_interval(self.inputs, coverage)


@dataclasses.dataclass(frozen=True)
class Ours:
    """An estimator with some options set, or none.

    Attributes:
        settings: the options.
    """

    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "mixture of Gaussians"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        from bochner import DeepGPClassifier, DeepGPRegressor

        kind = DeepGPRegressor if rows.classes is None else DeepGPClassifier
        table, validation = rows.table, None
        if rows.groups is not None:  # random rows would be neighbors of those that they judge
            kept, held_out = rows.held_out(0.1)
            table, validation = table.take(kept), table.take(held_out)
        model = kind(random_state=rows.seed, **self.settings)
        model.fit(table, rows.target, validation=validation)

        def predict(inputs: pa.Table) -> Prediction:
            if isinstance(model, DeepGPClassifier):
                return Classes(_in_all_classes(model, inputs, rows.classes))
            return Regression(
                _Law(model, inputs, rows.target), draws=model.sample_y(inputs, _N_DRAWS)
            )

        return predict


def _in_all_classes(model: Any, inputs: pa.Table, classes: np.ndarray | None) -> np.ndarray:
    """Give probabilities with a column for each class of the table, those that were held out included."""
    assert classes is not None  # as the model is a classifier
    found = np.zeros((inputs.num_rows, len(classes)))
    found[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(inputs)
    return found
