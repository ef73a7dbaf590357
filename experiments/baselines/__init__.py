"""Baselines behind one interface, by name; each is imported when it is asked for, since most need the extra `bench`.

Example:
    >>> from experiments.baselines import classifier, regressor
    >>> lightgbm = regressor("lightgbm")  # doctest: +SKIP
    >>> law = lightgbm.fit(X, y, seed=0)(X_new)  # doctest: +SKIP
    >>> law.mean, law.log_density(y_new), law.interval(0.9)  # doctest: +SKIP
    >>> probabilities = classifier("catboost").fit(X, labels, seed=0)(X_new)  # doctest: +SKIP
"""

import importlib
from typing import Any

from experiments.baselines.interface import Classifier, Observer, Regressor
from experiments.baselines.predictive import (
    GaussianMixture,
    classification_scores,
    regression_scores,
)

__all__ = [
    "NAMES",
    "Classifier",
    "GaussianMixture",
    "Observer",
    "Regressor",
    "classification_scores",
    "classifier",
    "regression_scores",
    "regressor",
]

_PLACES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "lightgbm": ("boosting", "Boosting", {"system": "LightGBM"}),
    "catboost": ("boosting", "Boosting", {"system": "CatBoost"}),
    "ngboost": ("boosting", "Boosting", {"system": "NGBoost"}),
    "var-gp": ("gpytorch_processes", "GPyTorch", {"n_layers": 1, "n_inducing": 100}),
    "dgp-ep": ("dgp_ep", "DGPEP", {}),
    "dnn": ("dropout_network", "Dropout", {}),
    "mc-dropout": ("dropout_network", "Dropout", {"n_mc_predict": 100}),
    "dsvi-2": ("gpytorch_processes", "GPyTorch", {"n_layers": 2, "n_inducing": 128}),
    "dsvi-3": ("gpytorch_processes", "GPyTorch", {"n_layers": 3, "n_inducing": 128}),
}
NAMES = tuple(_PLACES)
"""Names that `regressor` and `classifier` know."""


def regressor(name: str, **settings: Any) -> Regressor:
    """Give a regression baseline by name, with other settings than its own where given."""
    return _make(name, "Regressor", settings)


def classifier(name: str, **settings: Any) -> Classifier:
    """Give a classification baseline by name, with other settings than its own where given."""
    return _make(name, "Classifier", settings)


def _make(name: str, kind: str, settings: dict[str, Any]) -> Any:
    if name not in _PLACES:
        raise ValueError(f"there is no baseline {name!r}. Known: {', '.join(NAMES)}.")
    module, prefix, own = _PLACES[name]
    try:
        found = importlib.import_module(f"experiments.baselines.{module}")
        return getattr(found, prefix + kind)(**{**own, **settings})
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the baseline {name!r} needs {error.name}: install the extra `bench`.", name=error.name
        ) from error
