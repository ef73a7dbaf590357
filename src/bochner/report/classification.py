"""What the report shows of predicted classes: metrics, confusions, reliability, worst rows."""

from typing import Any

import numpy as np

from bochner.estimators import DeepGPClassifier
from bochner.prediction import metrics
from bochner.report.regression import N_WORST


def class_findings(
    model: DeepGPClassifier, X: np.ndarray, y: np.ndarray, measured: dict[str, float]
) -> dict[str, Any]:
    """Collect what a classifier's predictions of rows show beyond what was measured."""
    observed = np.asarray(y).reshape(-1)
    log_prob = np.asarray(model.log_prob(X, y))
    labels = np.searchsorted(model.classes_, observed)
    probabilities = model.predict_proba(X)
    predicted = probabilities.argmax(axis=1)
    classes = model.classes_.tolist()
    confusions = np.zeros((len(classes), len(classes)), int)
    np.add.at(confusions, (labels, predicted), 1)
    confidence, accuracy, count = metrics.calibration_bins(labels, probabilities)
    constant = constant_metrics(confusions.sum(axis=1))
    worst = np.argsort(log_prob, kind="stable")[:N_WORST]
    return {
        "task": "classification",
        "target": {"classes": classes, "counts": confusions.sum(axis=1)},
        "metrics": [
            {"name": name, "value": value, "constant": constant[name]}
            for name, value in (measured | {"auc": metrics.auc(labels, probabilities)}).items()
        ],
        "confusions": confusions,
        "calibration": {"confidence": confidence, "accuracy": accuracy, "count": count},
        "worst": [
            {
                "row": row,
                "observed": classes[labels[row]],
                "observed_probability": probabilities[row, labels[row]],
                "predicted": classes[predicted[row]],
                "predicted_probability": probabilities[row, predicted[row]],
                "log_prob": log_prob[row],
            }
            for row in worst
        ],
    }


def constant_metrics(counts: np.ndarray) -> dict[str, float | None]:
    """Measure the shares of the classes as everyone's probabilities, on the rows that were counted.

    Example:
        >>> import numpy as np
        >>> from bochner.report.classification import constant_metrics
        >>> constant_metrics(np.array([30, 10]))["error_rate"]
        0.25
    """
    shares = counts[counts > 0] / counts.sum()
    return {
        "error_rate": float(1 - shares.max()),
        "mnll": float(-np.sum(shares * np.log(shares))),
        "brier": float(1 - np.sum(shares**2)),
        "auc": 0.5,
        "ece": None,  # nothing is less telling, and nothing better calibrated
    }
