"""What a fit gives: all that predicts, is saved and is told."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.sources import Reader
from bochner.fitting.task import AbstractTask, Classification
from bochner.members.calibration import Calibration
from bochner.members.cross import LeftOutScores
from bochner.members.predictors import (
    AbstractPredictor,
    DeepClassifier,
    DeepRegressor,
)
from bochner.members.stack import Standing
from bochner.tables.encoding import Encoder


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator without its parameters.

    Attributes:
        task: of the targets.
        predictor: of encoded rows.
        d_in: columns of the matrix that goes in.
        seed: of everything random.
        names: of the columns of a user's rows, where they have some.
        encoder: makes the matrix from a table of named columns; None where a matrix was given.
        target: name of the target's column, where it has one.
        standings: how each member did on rows that it has left out.
        summary: left-out metrics of the whole.
        total_weight: of the rows seen.
        background: some training rows, by which effects of columns are found.
        judging: how rows were chosen to be left out, in words; empty where at random.
        fingerprints: hashes by which training rows are known again; empty where not known.
        calibration: scores of rows that no part of the fit has seen; None where there are none.
        left_out: scores of training rows by fits without their folds; None where there are none.
        fits: these fits, one a fold.
    """

    task: AbstractTask
    predictor: AbstractPredictor
    d_in: int
    seed: int
    names: tuple[str, ...] | None = None
    encoder: Encoder | None = None
    target: str | None = None
    standings: tuple[Standing, ...] = ()
    summary: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    total_weight: float = 0.0
    background: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    judging: str = ""
    fingerprints: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint64))
    calibration: Calibration | None = None
    left_out: LeftOutScores | None = None
    fits: tuple["Fitted", ...] = ()

    @property
    def deep(self) -> DeepFit | None:
        """The first deep model that takes part, if any."""
        found = self.predictor.deep
        return found[0] if found else None

    @property
    def alone(self) -> DeepFit | None:
        """The deep model that predicts alone, if one does."""
        predictor = self.predictor
        return predictor.fit if isinstance(predictor, DeepRegressor | DeepClassifier) else None

    @property
    def n_rows_held(self) -> int:
        """How many training rows it holds, encoded, for models in the space of rows and for effects of columns."""
        held = [part.n_rows_held for part in self.predictor.parts]
        return max([len(self.background), *held])

    @property
    def reader(self) -> Reader:
        """How tables are read for it."""
        classes = self.task.classes if isinstance(self.task, Classification) else None
        return Reader(self.encoder, self.names, self.d_in, classes)

    @property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """The columns of the matrix that belong together."""
        if self.encoder is None:
            return tuple((place,) for place in range(self.d_in))
        return self.encoder.sources

    @property
    def n_columns(self) -> int:
        """How many columns rows have as a user gives them."""
        if self.names is not None or self.encoder is None:
            return self.d_in if self.names is None else len(self.names)
        return len(self.encoder.columns) + len(self.encoder.dropped)

    def columns_of(self, places: np.ndarray) -> list[str]:
        """Name the columns of a user's rows that some columns of the matrix come of."""
        if self.encoder is None:
            return [repr(self.column_names[place]) for place in places]
        by_column = zip(self.encoder.columns, self.encoder.sources_by_column, strict=True)
        return [repr(column.name) for column, own in by_column if {*sum(own, ())} & {*places}]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns of the matrix."""
        if self.encoder is not None:
            return self.encoder.feature_names
        return list(self.names or (f"column {i}" for i in range(self.d_in)))
