"""Collects what the report shows, as plain JSON values; no plots, no markup."""

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from bochner.estimators import DeepGPClassifier, DeepGPRegressor
from bochner.report.classification import class_findings
from bochner.report.notes import all_notes
from bochner.report.regression import number_findings
from bochner.version import __version__


def report_data(
    model: DeepGPRegressor | DeepGPClassifier,
    X: Any,
    y: Any,
    *,
    columns: Sequence[str] | None = None,
    source: str = "",
    target: str | None = None,
) -> dict[str, Any]:
    """Collect everything that the report of a fitted model shows, as values that JSON can hold.

    Args:
        model: a fitted regressor with one target, or a fitted classifier.
        X: rows to judge the model on, best such that it was not trained on.
        y: their targets or classes.
        columns: names of the inputs; those of the fit by default.
        source: name of the table, for the heading.
        target: name of the target; that of `y` by default, where it has one.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor
        >>> from bochner.report import report_data
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(n_layers=1, max_steps=10, n_mc_predict=10, random_state=0)
        >>> model = model.fit(x, np.sin(6 * x[:, 0]))
        >>> data = report_data(model, x, np.sin(6 * x[:, 0]), columns=["time"])
        >>> data["inputs"][0]["name"], [entry["name"] for entry in data["metrics"]]
        ('time', ['rmse', 'mnll', 'crps', 'coverage_90'])
    """
    numbers, targets = np.asarray(X, np.float64), np.asarray(y)
    _check_one_target(targets)
    names = _column_names(model, X, numbers.shape[1], columns)
    # What is predicted again for some of the rows would only repeat the warnings.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        measured = model.evaluate(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        findings = (
            class_findings(model, numbers, targets, measured)
            if isinstance(model, DeepGPClassifier)
            else number_findings(model, numbers, targets, measured)
        )
    inputs = _inputs(numbers, names, model.relevance_)
    data = {
        "version": __version__,
        "source": source,
        "model": type(model).__name__,
        "data": {"n_rows": len(numbers), "n_inputs": len(names)},
        "learning": _learning(model),
        "inputs": inputs,
        "configuration": dict(model.config_),
        "warnings": _messages(caught),
        **findings,
    }
    data["target"]["name"] = str(target or getattr(y, "name", None) or "target")
    for row in data["worst"]:
        row["inputs"] = [float(value) for value in numbers[row["row"]]]
    data = _plain(data)
    data["notes"] = [dataclasses.asdict(note) for note in all_notes(data)]
    return data


def _check_one_target(targets: np.ndarray) -> None:
    if targets.ndim > 1 and targets.shape[1:] != (1,):
        raise ValueError(
            f"a report shows one target; got y of shape {targets.shape}. Fit a model for each target."
        )


def _column_names(model: Any, X: Any, n_inputs: int, columns: Sequence[str] | None) -> list[str]:
    default = [f"column {number}" for number in range(n_inputs)]
    found = getattr(X, "columns", getattr(model, "feature_names_in_", default))
    names = [str(name) for name in (found if columns is None else columns)]
    if len(names) != n_inputs:
        raise ValueError(
            f"`columns` must name the {n_inputs} columns of X; got {len(names)} names."
        )
    return names


def _inputs(X: np.ndarray, names: list[str], relevance: np.ndarray) -> list[dict[str, Any]]:
    """Summarize each input, in the order of the columns."""
    summaries = {
        "relevance": relevance,
        "min": X.min(axis=0),
        "median": np.median(X, axis=0),
        "mean": X.mean(axis=0),
        "max": X.max(axis=0),
        "std": X.std(axis=0),
    }
    return [
        {"name": name, **{key: float(values[number]) for key, values in summaries.items()}}
        for number, name in enumerate(names)
    ]


def _learning(model: Any) -> dict[str, Any]:
    records = model.history_
    return {
        "step": [record["step"] for record in records],
        "bound": [-record["elbo"] / model.trained_weight_ for record in records],
        "held_out_mnll": [record["held_out_mnll"] for record in records],
        "n_steps": model.n_steps_,
        "seconds": records[-1]["seconds"] if records else 0.0,
    }


def _messages(caught: list[warnings.WarningMessage]) -> list[str]:
    """Give each warning of the estimators once; names of columns are the report's own affair."""
    texts = [str(entry.message) for entry in caught if entry.category is UserWarning]
    return [text for text in dict.fromkeys(texts) if "valid feature names" not in text]


def _plain(value: Any) -> Any:
    """Turn NumPy's scalars and tuples into what JSON knows, and numbers that it lacks into None."""
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
