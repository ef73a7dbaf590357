"""What fitted estimators predict of rows as named columns, as `bochner predict` and others write them."""

from typing import Any

import numpy as np

Columns = dict[str, Any]

_BETWEEN = "|"


def columns_of_numbers(
    model: Any, X: Any, coverage: float, levels: Any = (), groups: Any = None
) -> Columns:
    """Predict mean, deviation, interval and quantiles of one target.

    Example:
        >>> from bochner import Constant, DeepGPRegressor
        >>> from bochner.estimators.predicted_columns import columns_of_numbers
        >>> model = DeepGPRegressor(Constant()).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0])
        >>> list(columns_of_numbers(model, [[0.5]], 0.9, [0.25]))
        ['mean', 'std', 'lower', 'upper', 'q0.25']
    """
    ends = [(1 - coverage) / 2, (1 + coverage) / 2]
    found = model.predict_summary(X, [*ends, *levels], groups=groups)
    quantiles = found["quantiles"]
    named = {f"q{level:g}": quantiles[:, 2 + i] for i, level in enumerate(levels)}
    return {
        "mean": found["mean"],
        "std": found["std"],
        "lower": quantiles[:, 0],
        "upper": quantiles[:, 1],
        **named,
    }


def columns_of_classes(model: Any, X: Any, coverage: float, groups: Any = None) -> Columns:
    """Predict the class and the probability of each; of a calibrated model also the set of plausible ones.

    Example:
        >>> from bochner import Constant, DeepGPClassifier
        >>> from bochner.estimators.predicted_columns import columns_of_classes
        >>> model = DeepGPClassifier(Constant()).fit([[0.0], [1.0], [2.0]], ["red", "green", "red"])
        >>> columns_of_classes(model, [[0.5]], 0.9)["class"]
        ['red']
    """
    probabilities = model.predict_proba(X)
    labels = model.classes_.tolist()
    chosen = [labels[i] for i in probabilities.argmax(axis=1)]
    found: Columns = {
        "class": chosen,
        **{f"probability_{label}": probabilities[:, i] for i, label in enumerate(labels)},
    }
    if model.fitted_.calibration is not None or groups is not None:
        sets = model.predict_set(X, coverage, groups=groups)
        names = np.array([str(label) for label in labels], dtype=object)
        found["set"] = [_BETWEEN.join(names[row]) for row in sets]
    return found
