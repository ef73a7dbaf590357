"""A fitted estimator given further rows: in closed form where its members have one, by a few steps elsewhere."""

import dataclasses
import math
from typing import Any

import numpy as np

from bochner.exact.classes import ClassPart
from bochner.exact.densities import DensityPart
from bochner.exact.rows import Rows as EncodedRows
from bochner.exact.updating import Further, updated_class_part, updated_part
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.resolving import Asked
from bochner.fitting.rows import Rows
from bochner.fitting.training import fit_more
from bochner.members.fitted import Fitted
from bochner.members.parts import AbstractPart, DeepPart, RowsPart
from bochner.members.predictors import (
    AbstractPredictor,
    DeepClassifier,
    DeepRegressor,
    SideBySide,
    StackClassifier,
    StackRegressor,
)

_LEAST_STEPS, _PASSES = 100, 2


def updated(fitted: Fitted, rows: Rows, asked: Asked, forgetting: float = 0.0) -> Fitted:
    """Learn from further rows; weights of members, their tails and the calibration stay.

    Args:
        fitted: what was fitted.
        rows: checked, in their own units.
        asked: the call.
        forgetting: the share of the weight of all rows before it that each row takes.
    """
    rows = rows[rows.weights > 0]
    shares = (1 - forgetting) ** np.arange(len(rows) - 1, -1, -1.0)
    update = _Update(rows, shares, (1 - forgetting) ** len(rows), fitted.total_weight, asked)
    return dataclasses.replace(
        fitted,
        predictor=update.of(fitted.predictor),
        left_out=None,  # the fits without folds have not seen the rows
        fits=(),
        total_weight=update.kept * fitted.total_weight + float(shares @ rows.weights),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Update:
    rows: Rows
    shares: np.ndarray
    kept: float
    weight_before: float
    asked: Asked

    def of(self, predictor: AbstractPredictor) -> AbstractPredictor:
        """Give the predictor that has seen the rows, too."""
        if isinstance(predictor, DeepRegressor | DeepClassifier):
            return dataclasses.replace(predictor, fit=self._few_steps(predictor.fit))
        if isinstance(predictor, SideBySide):
            targets = [
                dataclasses.replace(self, rows=self.rows.target(i)).of(one)
                for i, one in enumerate(predictor.targets)
            ]
            return SideBySide(tuple(targets))  # pyright: ignore[reportArgumentType]
        assert isinstance(predictor, StackRegressor | StackClassifier)
        encoded: dict[int, Further] = {}
        parts = tuple(self._of_part(part, encoded) for part in predictor.members)
        return dataclasses.replace(predictor, members=parts)

    def _of_part(self, part: AbstractPart, encoded: dict[int, Further]) -> AbstractPart:
        if isinstance(part, DeepPart):
            return DeepPart(self._few_steps(part.fit))
        assert isinstance(part, RowsPart)
        further = encoded.get(id(part.columns))
        if further is None:
            further = encoded[id(part.columns)] = self._further(part.columns(self.rows.X))
        if isinstance(part.part, DensityPart):
            return part
        if isinstance(part.part, ClassPart):
            return dataclasses.replace(part, part=updated_class_part(part.part, further))
        y = further.targets
        extent = min(part.extent[0], float(y.min())), max(part.extent[1], float(y.max()))
        return dataclasses.replace(part, part=updated_part(part.part, further), extent=extent)

    def _further(self, rows: EncodedRows) -> Further:
        targets, weights = self.rows.Y[:, 0], self.rows.weights
        return Further(rows, targets, weights, self.shares, self.kept, self.weight_before)

    def _few_steps(self, fit: DeepFit) -> DeepFit:
        """Train for two passes over the rows and a hundred steps at least, within the budget of the fit."""
        config = fit.config
        passes = math.ceil(_PASSES * len(self.rows) / config.batch_size)
        wanted = max(_LEAST_STEPS, passes)
        steps = wanted if config.max_steps is None else min(config.max_steps, wanted)
        theta_from: Any = config.theta_from
        if isinstance(theta_from, int) and theta_from >= steps:
            theta_from = "never"
        few = dataclasses.replace(
            config, max_steps=steps, theta_from=theta_from, validation_fraction=0.0
        )
        weight = self.kept * fit.total_weight
        started = dataclasses.replace(fit, config=few, total_weight=weight)
        faded = dataclasses.replace(self.rows, weights=self.shares * self.rows.weights)
        trained = fit_more(self.asked, started, faded)
        kept = ("max_steps", "theta_from", "validation_fraction")
        config = dataclasses.replace(
            trained.config, **{name: getattr(fit.config, name) for name in kept}
        )
        return dataclasses.replace(trained, config=config)
