"""What the report shows of predicted numbers: metrics, predictions, calibration, worst rows."""

from typing import Any

import numpy as np
from scipy import stats

from bochner.estimators import DeepGPRegressor
from bochner.likelihoods import REGRESSION_LIKELIHOODS
from bochner.prediction import metrics

N_WORST = 10
"""Rows listed as predicted worst."""
N_CHOSEN = 2_000
"""Rows whose predictions are drawn and whose intervals are judged, at most."""
LEVELS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
"""Stated coverages of the calibration plot."""


def number_findings(
    model: DeepGPRegressor, X: np.ndarray, y: np.ndarray, measured: dict[str, float]
) -> dict[str, Any]:
    """Collect what a regressor's predictions of rows show beyond what was measured.

    Quantiles cost more than anything else here, so on large tables they are found for some rows only.
    """
    observed = np.asarray(y, np.float64).reshape(-1)
    log_prob = np.asarray(model.log_prob(X, y))
    worst = np.argsort(log_prob, kind="stable")[:N_WORST]
    chosen = _chosen(len(observed))
    asked_for = REGRESSION_LIKELIHOODS.get(model.likelihood)
    counts = asked_for is not None and asked_for.discrete
    mean = np.asarray(model.predict(X)).reshape(-1)
    epistemic, aleatoric = (float(np.mean(part)) for part in model.predict_variance(X[chosen]))
    predictions = _predictions(model, X, observed, chosen)
    return {
        "task": "regression",
        "target": _target(observed, counts),
        "metrics": _metrics(measured, observed, mean, counts),
        "epistemic_share": epistemic / (epistemic + aleatoric),
        "predictions": predictions,
        "calibration": _calibration(model, X[chosen], observed[chosen]),
        "worst": _rows(_predictions(model, X, observed, worst) | {"log_prob": log_prob[worst]}),
    }


def constant_metrics(y: np.ndarray, *, counts: bool) -> dict[str, float | None]:
    """Measure a normal distribution with the mean and deviation of y, or for counts a Poisson one, on y itself.

    Example:
        >>> import numpy as np
        >>> from bochner.report.regression import constant_metrics
        >>> constant_metrics(np.array([-1.0, 1.0]), counts=False)["rmse"]
        1.0
    """
    mean, deviation = float(np.mean(y)), float(np.std(y))
    if np.ptp(y) == 0:  # when the mean may be rounded, and the deviation is not quite zero
        return {"rmse": 0.0, "mae": 0.0, "r_squared": None, "mnll": None, "crps": None}
    simple: dict[str, float | None] = {
        "rmse": deviation,
        "mae": float(np.mean(np.abs(y - mean))),
        "r_squared": 0.0,
    }
    if counts:
        return simple | {"mnll": -float(np.mean(stats.poisson.logpmf(y, mean))), "crps": None}
    z = (y - mean) / deviation
    crps = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)
    mnll = -float(np.mean(stats.norm.logpdf(y, mean, deviation)))
    return simple | {"mnll": mnll, "crps": deviation * float(np.mean(crps))}


def _metrics(
    measured: dict[str, float], y: np.ndarray, mean: np.ndarray, counts: bool
) -> list[dict[str, Any]]:
    constant = constant_metrics(y, counts=counts)
    beside = {"mae": metrics.mae(y, mean), "r_squared": metrics.r_squared(y, mean)}
    found = {"rmse": measured["rmse"]} | beside | measured
    return [
        {"name": name, "value": value, "constant": constant.get(name)}
        for name, value in found.items()
    ]


def _target(y: np.ndarray, counts: bool) -> dict[str, Any]:
    return {
        "counts": counts,
        "min": y.min(),
        "median": np.median(y),
        "mean": y.mean(),
        "max": y.max(),
        "std": y.std(),
    }


def _chosen(n_rows: int) -> np.ndarray:
    """All rows, or as many as a plot can show, the same ones each time."""
    if n_rows <= N_CHOSEN:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, N_CHOSEN, replace=False))


def _predictions(
    model: DeepGPRegressor, X: np.ndarray, observed: np.ndarray, rows: np.ndarray
) -> dict[str, np.ndarray]:
    interval = model.predict_interval(X[rows], coverage=0.9).reshape(-1, 2)
    return {
        "row": rows,
        "observed": observed[rows],
        "mean": np.asarray(model.predict(X[rows])).reshape(-1),
        "low": interval[:, 0],
        "high": interval[:, 1],
    }


def _calibration(model: DeepGPRegressor, X: np.ndarray, observed: np.ndarray) -> dict[str, Any]:
    levels = np.array(LEVELS)
    tails = np.concatenate([(1 - levels) / 2, (1 + levels) / 2])
    low, high = np.split(model.predict_quantiles(X, tails).reshape(len(X), -1), 2, axis=1)
    inside = (observed[:, None] >= low) & (observed[:, None] <= high)
    return {"n_rows": len(X), "stated": levels, "found": inside.mean(axis=0)}


def _rows(columns: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
