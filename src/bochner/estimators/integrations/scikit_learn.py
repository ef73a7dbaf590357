"""Scores of whole distributions by name, for scikit-learn's `GridSearchCV`, `cross_validate` and the like."""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import column_or_1d

from bochner.estimators import DeepGPClassifier, DeepGPRegressor
from bochner.fitting.config import check_choice
from bochner.prediction import metrics

_N_SAMPLES = 200  # for the CRPS, as `evaluate` draws


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a table with their targets, as one or several columns of numbers, or classes."""

    model: Any
    X: Any
    y: np.ndarray
    weights: Any

    def mean(self, of_rows: np.ndarray) -> float:
        """Average over rows by their weights, and over targets."""
        values = np.reshape(of_rows, (len(of_rows), -1)).mean(axis=1)
        return float(np.average(values, weights=self.weights))

    def interval(self, coverage: float) -> np.ndarray:
        """Give lower and upper ends."""
        return np.moveaxis(self.model.predict_interval(self.X, coverage), -1, 0)


def _targets(model: Any, X: Any, y: Any) -> np.ndarray:
    """Give targets in the shape of predictions, in which one column is a vector, or classes."""
    if isinstance(model, DeepGPClassifier):
        return column_or_1d(y)
    return model.fitted_.task.shaped(model.checked_rows(X, y).Y)


def _crps(rows: _Rows, coverage: float) -> float:
    return -rows.mean(metrics.crps_of_rows(rows.y, rows.model.sample_y(rows.X, _N_SAMPLES)))


def _log_score(rows: _Rows, coverage: float) -> float:
    return rows.mean(rows.model.log_prob(rows.X, rows.y))


def _interval_score(rows: _Rows, coverage: float) -> float:
    low, high = rows.interval(coverage)
    return -rows.mean(metrics.interval_score_of_rows(rows.y, low, high, coverage))


def _coverage(rows: _Rows, coverage: float) -> float:
    low, high = rows.interval(coverage)
    return rows.mean((low <= rows.y) & (rows.y <= high))


def _coverage_error(rows: _Rows, coverage: float) -> float:
    return -abs(_coverage(rows, coverage) - coverage)


def _brier(rows: _Rows, coverage: float) -> float:
    truth = rows.y[:, None] == rows.model.classes_[None]
    return -rows.mean(np.sum((rows.model.predict_proba(rows.X) - truth) ** 2, axis=1))


Score = Callable[[_Rows, float], float]
_SCORES: dict[type, dict[str, Score]] = {
    DeepGPRegressor: {
        "neg_log_score": _log_score,
        "neg_crps": _crps,
        "neg_interval_score": _interval_score,
        "coverage": _coverage,
        "neg_coverage_error": _coverage_error,
    },
    DeepGPClassifier: {"neg_log_score": _log_score, "neg_brier": _brier},
}

REGRESSION_SCORES = tuple(_SCORES[DeepGPRegressor])
"""Names of the scores of a `DeepGPRegressor`."""

CLASSIFICATION_SCORES = tuple(_SCORES[DeepGPClassifier])
"""Names of the scores of a `DeepGPClassifier`."""


@dataclasses.dataclass(eq=False)
class Scorer:
    """A score of predictive distributions, as scikit-learn calls it: greater is better, but for `"coverage"`.

    `"neg_crps"`, `"neg_log_score"` (the mean log density, or log probability of the class) and `"neg_brier"` are those
    of `evaluate` with the other sign. `"neg_interval_score"` is of central intervals; `"coverage"` is the share of
    targets inside them, and `"neg_coverage_error"` how far it is from what was asked, by which models can be chosen.

    Attributes:
        name: of the score, one of `REGRESSION_SCORES` or `CLASSIFICATION_SCORES`.
        coverage: of the intervals, where the score is of intervals.

    Example:
        >>> from sklearn.model_selection import GridSearchCV
        >>> from bochner import DeepGPRegressor, Exact, Linear
        >>> from bochner.estimators.integrations.scikit_learn import Scorer
        >>> X, y = [[0.1 * i] for i in range(30)], [0.01 * i * i for i in range(30)]
        >>> grid = {"members": [Linear(), Exact(kernel="rbf")]}
        >>> search = GridSearchCV(DeepGPRegressor(), grid, scoring=Scorer("neg_crps"), cv=3)
        >>> search.fit(X, y).best_params_
        {'members': Exact(kernel='rbf')}
    """

    name: str
    coverage: float = 0.9

    def __post_init__(self):
        check_choice("name", self.name, dict.fromkeys(REGRESSION_SCORES + CLASSIFICATION_SCORES))
        if not 0 < self.coverage < 1:
            raise ValueError(
                f"`coverage` must lie strictly between 0 and 1; got {self.coverage!r}."
            )
        self._request: Any = MetadataRequest(owner=f"Scorer({self.name!r})")
        self.set_score_request()

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the score of a fitted estimator.

        Args:
            estimator: one of ours, or a pipeline that ends with one.
            X: rows.
            y: their targets or classes.
            sample_weight: how often each row counts.
        """
        model = estimator
        while isinstance(model, Pipeline):
            X, model = model[:-1].transform(X), model[-1]
        for kind, offered in _SCORES.items():
            if isinstance(model, kind) and self.name in offered:
                rows = _Rows(model, X, _targets(model, X, y), sample_weight)
                return offered[self.name](rows, self.coverage)
        fitting = [kind.__name__ for kind, offered in _SCORES.items() if self.name in offered]
        raise TypeError(
            f"the score {self.name!r} is of a {' or a '.join(fitting)}, or of a pipeline that ends with one; got a "
            f"{type(model).__name__}."
        )

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Self:
        """Ask for weights of rows where scikit-learn routes metadata.

        Args:
            sample_weight: as for scikit-learn's own scorers: True, False, the name by which they are passed, or None.
        """
        self._request.score.add_request(param="sample_weight", alias=sample_weight)
        return self

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn what was asked for."""
        return self._request


def scorers(*names: str, coverage: float = 0.9) -> dict[str, Scorer]:
    """Give several scores by name, for the `scoring` of `cross_validate` and `GridSearchCV`.

    Args:
        *names: of the scores; without any all those of regression.
        coverage: of the intervals, where a score is of intervals.

    Example:
        >>> from sklearn.model_selection import cross_validate
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.estimators.integrations.scikit_learn import scorers
        >>> X, y = [[0.1 * i] for i in range(30)], [0.2 * (i % 3) + i for i in range(30)]
        >>> found = cross_validate(DeepGPRegressor(Linear()), X, y, scoring=scorers("neg_crps", "coverage"))
        >>> found["test_coverage"].shape
        (5,)
    """
    return {name: Scorer(name, coverage) for name in names or REGRESSION_SCORES}
