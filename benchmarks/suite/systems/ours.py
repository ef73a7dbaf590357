"""This project, fitted to tables by the names of their columns as a user would."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import COVERAGES, Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor

_N_DRAWS = 400
_GROUP = "group of the row"
_LEVELS = [level for coverage in COVERAGES for level in ((1 - coverage) / 2, (1 + coverage) / 2)]


@dataclasses.dataclass(frozen=True)
class _Law:
    """The predictive laws of a fitted model at some rows."""

    model: Any
    inputs: pa.Table

    @functools.cached_property
    def _summary(self) -> dict[str, np.ndarray]:
        return self.model.predict_summary(self.inputs, _LEVELS)

    @property
    def mean(self) -> np.ndarray:
        return self._summary["mean"]

    def log_density(self, y: np.ndarray) -> np.ndarray:
        return self.model.log_prob(self.inputs, y)

    def interval(self, coverage: float) -> np.ndarray:
        first = 2 * COVERAGES.index(coverage)
        return self._summary["quantiles"][:, first : first + 2]


@dataclasses.dataclass(frozen=True)
class _LawOfPoints(_Law):
    """The predictive laws of a model whose targets are on a lattice."""

    def ranks(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rounded = self.model.predict_dist(self.inputs).law
        below = rounded.cdf((y - rounded.lattice.step)[None])[0]
        return below, rounded.cdf(y[None])[0]


@dataclasses.dataclass(frozen=True)
class Ours:
    """An estimator with no option set, or with one.

    Attributes:
        preset: of the estimator.
        alone: the one member to fit, "deep" or "exact"; the latter means landmarks where the rows are many.
        without: the kind of member to leave out of those that a table would have.
    """

    preset: str = "auto"
    alone: str | None = None
    without: str | None = None

    @property
    def _is_deep(self) -> bool:
        return self.alone == "deep" or self.preset != "auto"

    def law(self, classification: bool) -> str:
        if classification:
            return "probabilities"
        return "mixture of Gaussians" if self._is_deep else "mixture of laws of unlike members"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        from bochner import DeepGPClassifier, DeepGPRegressor

        kind = DeepGPRegressor if rows.classes is None else DeepGPClassifier
        table, told = rows.table, {}
        if rows.groups is not None and (rows.groups.in_time or self._is_deep):
            # Random rows would be neighbors of those that they judge, and a deep model alone holds out random ones.
            kept, held_out = rows.held_out(0.1)
            table, told = table.take(kept), {"validation": table.take(held_out)}
        elif rows.groups is not None:
            table = table.append_column(_GROUP, pa.array(rows.groups.of_rows))
            told = {"groups": _GROUP}
        model: Any = kind(preset=self.preset, random_state=rows.seed)
        model.set_params(members=self._members(model, table, rows.target))
        model.fit(table, rows.target, **told)

        def predict(inputs: pa.Table) -> Prediction:
            about = {"members": model.members_}
            if rows.classes is not None:
                return Classes(_in_all_classes(model, inputs, rows.classes), about)
            draws = model.sample_y(inputs, _N_DRAWS)
            return Regression(_law(model, inputs), draws=draws, about=about)

        return predict

    def _members(self, model: Any, table: pa.Table, target: str) -> Any:
        """Give what the estimator takes as `members`."""
        from bochner import Deep, Exact, Landmarks
        from bochner.members.auto import MOST_EXACT

        if self.alone == "deep":
            return Deep()
        if self.alone == "exact":
            return Exact() if table.num_rows <= MOST_EXACT else Landmarks()
        if self.without is None:
            return "auto"
        return [one for one in _chosen_by_size(model, table, target) if one[0] != self.without]


def _chosen_by_size(model: Any, table: pa.Table, target: str) -> Any:
    """Give the members that an estimator with no option set has for a table, with their names."""
    from bochner.members.auto import auto_members
    from bochner.members.fit import Form
    from bochner.members.training import Training
    from bochner.tables.encoding import Encoder

    inputs = table.drop_columns([name for name in (target, _GROUP) if name in table.column_names])
    encoder = Encoder.learn(inputs)
    asked, rows, task, _ = model.prepared(encoder(inputs), table[target].to_numpy())
    return auto_members(Training(rows, task, Form(encoder).sources(rows.X.shape[1]), asked))


def _law(model: Any, inputs: pa.Table) -> _Law:
    from bochner.members.whole_numbers import Rounded

    of_points = isinstance(model.predict_dist(inputs.slice(0, 1)).law, Rounded)
    return (_LawOfPoints if of_points else _Law)(model, inputs)


def _in_all_classes(model: Any, inputs: pa.Table, classes: np.ndarray) -> np.ndarray:
    """Give probabilities with a column for each class of the table, those that were held out included."""
    found = np.zeros((inputs.num_rows, len(classes)))
    found[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(inputs)
    return found
