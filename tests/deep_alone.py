"""Estimators of a deep model alone, from settings of both in one dictionary."""

from typing import Any

import numpy as np

from bochner import Deep, DeepGPClassifier, DeepGPRegressor
from bochner.fitting.config import Config
from bochner.fitting.declared import declared
from bochner.fitting.task import Classification, Regression

_OF_DEEP = declared().keys() - {"preset"}


def deep_regressor(**settings: Any) -> DeepGPRegressor:
    """A regressor; small tables are trained on the bound unless told otherwise: it compiles in half the time."""
    return _estimator(DeepGPRegressor, settings)


def deep_classifier(**settings: Any) -> DeepGPClassifier:
    """The same for classes."""
    return _estimator(DeepGPClassifier, settings)


def parameters_of(estimator: Any) -> dict[str, Any]:
    """All parameters, members as they are written, so that they can be compared."""
    found = estimator.get_params()
    written = {name for name in found if name == "members" or hasattr(found[name], "get_params")}
    return {name: repr(v) if name in written else v for name, v in found.items()}


def settled(estimator: Any, n_rows: int, X: np.ndarray) -> Config:
    """The configuration that a deep model of so many rows like X would have, without a fit."""
    asked = estimator._asked()
    classes = isinstance(estimator, DeepGPClassifier)
    task = Classification(np.array([0, 1])) if classes else Regression()
    return asked.resolved(asked.situation(n_rows, X, task), task)


def _estimator(kind: Any, settings: dict[str, Any]) -> Any:
    deep = {name: value for name, value in settings.items() if name in _OF_DEEP}
    rest = {name: value for name, value in settings.items() if name not in _OF_DEEP}
    return kind(Deep(**{"objective": "elbo", **deep}), **rest)
