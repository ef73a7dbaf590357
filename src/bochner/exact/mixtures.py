"""Stacks of exact models alone."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.classes import ClassPart, class_parts
from bochner.exact.landmark_classes import landmark_class_parts
from bochner.exact.landmark_regression import landmark_parts
from bochner.exact.laws import Mixture
from bochner.exact.parts import Part
from bochner.exact.regression import regression_parts
from bochner.exact.rows import Rows
from bochner.exact.sizes import whole_groups
from bochner.exact.stacking import mixed, stack

MOST_EXACT = 2000
"""Rows, beyond which there are landmarks."""
_N_JUDGED = 3000


@dataclasses.dataclass(frozen=True, eq=False)
class Regression:
    """A mixture of parts, with weights by left-out rows.

    Attributes:
        parts: the models.
        weights: of the models, of which the smallest are zero.
        extent: least and largest training target.

    Example:
        >>> import numpy as np
        >>> from bochner.exact import Columns, Regression
        >>> x = np.linspace(0, 6, 40)
        >>> columns = Columns.learn([x])
        >>> model = Regression.fit(columns([x]), np.sin(x))
        >>> law = model.predict(columns([np.array([1.0, 2.0])]))
        >>> np.abs(law.mean - np.sin([1.0, 2.0])).max() < 0.05
        np.True_
        >>> law.quantiles([0.05, 0.95]).shape
        (2, 2)
    """

    parts: list[Part]
    weights: Float[np.ndarray, " parts"]
    extent: tuple[float, float]

    @classmethod
    def fit(
        cls,
        rows: Rows,
        y: Float[np.ndarray, " n"],
        *,
        weights: Float[np.ndarray, " n"] | None = None,
        seed: int = 0,
        **options: Any,
    ) -> "Regression":
        """Fit parts, exact or on landmarks, and weigh them; the options are those of the functions that make parts."""
        if len(y) <= MOST_EXACT:
            judged = np.arange(len(y))
            parts = regression_parts(rows, y, weights=weights, seed=seed, **options)
        else:
            judged, _ = whole_groups(rows.groups(), _N_JUDGED, seed)
            parts = landmark_parts(rows, y, judged, weights=weights, seed=seed, **options)
        of_judged = None if weights is None else weights[judged]
        found = stack(np.stack([part.left_out for part in parts], axis=1), of_judged)
        return cls(parts, found, (float(np.min(y)), float(np.max(y))))

    def predict(self, rows: Rows) -> Mixture:
        """Predict the law of the target at each row."""
        kept = np.flatnonzero(self.weights)
        return Mixture(self.weights[kept], [self.parts[i].law(rows) for i in kept], self.extent)

    def left_out(self) -> Float[np.ndarray, " judged"]:
        """Give the log density of each judged training target when it is left out."""
        return mixed(np.stack([part.left_out for part in self.parts], axis=1), self.weights)


@dataclasses.dataclass(frozen=True, eq=False)
class Classification:
    """A mixture of parts, with weights by left-out rows.

    Attributes:
        parts: the models.
        weights: of the models, of which the smallest are zero.
        judged: the training rows that were left out.

    Example:
        >>> import numpy as np
        >>> from bochner.exact import Classification, Columns
        >>> x = np.linspace(0, 6, 60)
        >>> columns = Columns.learn([x])
        >>> model = Classification.fit(columns([x]), (np.sin(2 * x) > 0).astype(int), 2)
        >>> model.predict_proba(columns([np.array([0.8, 2.4])])).round(1).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """

    parts: list[ClassPart]
    weights: Float[np.ndarray, " parts"]
    judged: Int[np.ndarray, " judged"]

    @classmethod
    def fit(
        cls,
        rows: Rows,
        labels: Int[np.ndarray, " n"],
        n_classes: int,
        *,
        weights: Float[np.ndarray, " n"] | None = None,
        seed: int = 0,
        **options: Any,
    ) -> "Classification":
        """Fit parts, exact or on landmarks, and weigh them; the options are those of the functions that make parts."""
        options |= {"weights": weights, "seed": seed}
        if len(labels) <= MOST_EXACT:
            judged = np.arange(len(labels))
            parts = class_parts(rows, labels, n_classes, **options)
        else:
            judged, _ = whole_groups(rows.groups(), _N_JUDGED, seed)
            parts = landmark_class_parts(rows, labels, n_classes, judged, **options)
        places = np.arange(len(judged)), labels[judged]
        densities = np.log(np.stack([part.left_out[places] for part in parts], axis=1))
        found = stack(densities, None if weights is None else weights[judged])
        return cls(parts, found, judged)

    def predict_proba(self, rows: Rows) -> Float[np.ndarray, "n classes"]:
        """Compute the probability of each class at each row."""
        kept = np.flatnonzero(self.weights)
        return np.asarray(sum(self.weights[i] * self.parts[i].probabilities(rows) for i in kept))

    def left_out(self) -> Float[np.ndarray, "judged classes"]:
        """Give the probabilities of the classes for each judged training row when it is left out."""
        return np.einsum(
            "p,pnc->nc", self.weights, np.stack([part.left_out for part in self.parts])
        )
