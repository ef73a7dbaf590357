"""Collects what the report shows, as plain JSON values; no plots, no markup."""

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bochner.estimators import DeepGPClassifier, DeepGPRegressor
from bochner.fitting.fingerprints import share_seen
from bochner.members.chosen_law import law_in_words
from bochner.members.fitted import Fitted
from bochner.report.classification import class_findings
from bochner.report.inputs import effects_of, explanation_of, inputs_of, values_of_rows
from bochner.report.kinds import kinds_of_members
from bochner.report.notes import all_notes
from bochner.report.regression import number_findings
from bochner.version import __version__

_CHOSEN = ("members", "preset", "likelihood", "class_weight", "max_seconds", "random_state")


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
        X: rows to judge the model on, best such that it was not trained on; a table, too.
        y: their targets or classes, or the name of their column in the table.
        columns: names of the inputs; those of the fit by default.
        source: the table, whose name is in the heading.
        target: name of the target; that of `y` by default, where it has one.

    Returns:
        Dictionaries, lists, numbers and texts by section, which `render_page` makes the page of.

    Example:
        >>> import numpy as np
        >>> from bochner import Deep, DeepGPRegressor
        >>> from bochner.report import report_data
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(Deep(n_layers=1, max_steps=10, n_mc_predict=10), random_state=0)
        >>> model = model.fit(x, np.sin(6 * x[:, 0]))
        >>> data = report_data(model, x, np.sin(6 * x[:, 0]), columns=["time"])
        >>> data["inputs"][0]["name"], [entry["name"] for entry in data["metrics"]]
        ('time', ['rmse', 'mae', 'r_squared', 'mnll', 'crps', 'coverage_90'])
    """
    # A table is encoded, and the name of its target's column is looked up.
    encoded, found = model._read_if_named(X, y)
    numbers, targets = np.asanyarray(encoded, np.float64), np.asarray(found)
    _check_one_target(targets)
    # What is predicted again for some of the rows would only repeat the warnings.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        measured = model.evaluate(numbers, targets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        findings = (
            class_findings(model, numbers, targets, measured)
            if isinstance(model, DeepGPClassifier)
            else number_findings(model, numbers, targets, measured)
        )
        seen = share_seen(
            model.fitted_.fingerprints, numbers, model.fitted_.task.targets(targets, numbers)
        )
        explanation = explanation_of(model, numbers)
        inputs = inputs_of(model, numbers, _column_names(model, X, columns), explanation)
        effects = effects_of(model, inputs, explanation)
        kinds = kinds_of_members(model, numbers, targets)
    calibration = model.fitted_.calibration
    data = {
        "version": __version__,
        "source": Path(source).name if source else "",
        "model": type(model).__name__,
        "data": {"n_rows": len(numbers), "n_inputs": len(inputs), "share_seen": seen},
        "fit": _fit(model.fitted_),
        "left_out": model.summary_,
        "judging": model.fitted_.judging,
        "calibrated": None if calibration is None else calibration.in_words(),
        "members": sorted(model.members_, key=lambda member: -member["weight"]),
        "learning": _learning(model.fitted_),
        "kinds": kinds,
        "inputs": inputs,
        "effects": effects,
        "configuration": _configuration(model),
        "warnings": _messages(caught),
        **findings,
    }
    named = y if isinstance(y, str) else getattr(y, "name", None)
    data["target"]["name"] = str(target or named or "target")
    worst = numbers[[row["row"] for row in data["worst"]]]
    for row, values in zip(data["worst"], values_of_rows(model, worst), strict=True):
        row["inputs"] = values
    data = _plain(data)
    data["notes"] = [dataclasses.asdict(note) for note in all_notes(data)]
    return data


def _check_one_target(targets: np.ndarray) -> None:
    if targets.ndim > 1 and targets.shape[1:] != (1,):
        raise ValueError(
            f"a report shows one target; got y of shape {targets.shape}. Fit a model for each target."
        )


def _column_names(model: Any, X: Any, columns: Sequence[str] | None) -> Sequence[str] | None:
    """Give names that somebody has chosen for the inputs; None where those of the fit serve."""
    if columns is not None:
        return columns
    named = model.fitted_.encoder is not None or model.fitted_.names is not None
    return None if named else getattr(X, "columns", None)


def _fit(fitted: Fitted) -> dict[str, Any]:
    """Sum up what was fitted: one deep model, or members that predict together."""
    alone = fitted.alone
    return {
        "n_layers": None if alone is None else alone.config.n_layers,
        "seconds": sum(standing.seconds for standing in fitted.standings),
        "law": law_in_words(fitted),
    }


def _learning(fitted: Fitted) -> dict[str, Any] | None:
    """How a deep model was trained; None where there is none."""
    deep = fitted.deep
    if deep is None or not deep.history:
        return None
    weight = deep.trained_weight or np.nan
    return {
        "step": [record["step"] for record in deep.history],
        "bound": [-record["elbo"] / weight for record in deep.history],
        "held_out_mnll": [record["held_out_mnll"] for record in deep.history],
        "n_steps": deep.n_steps,
    }


def _configuration(model: Any) -> dict[str, Any]:
    """The settings of a deep model, else those of the estimator that somebody chose."""
    if model.fitted_.deep is not None:
        return dict(model.config_)
    asked = model.get_params(deep=False)
    return {name: asked[name] for name in _CHOSEN if asked.get(name) is not None}


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
