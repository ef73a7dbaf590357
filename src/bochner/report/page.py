"""Renders what was collected as one page of HTML that needs nothing else."""

from collections.abc import Sequence
from typing import Any

from bochner.estimators import DeepGPClassifier, DeepGPRegressor
from bochner.report import tables
from bochner.report.collect import report_data
from bochner.report.figures import effect_figure, figures_of
from bochner.report.rendering import rendered
from bochner.report.texts import number, percent

_METRICS = {
    "rmse": ("Typical error (RMSE)", "root mean squared error, in the target's units; lower is better"),
    "mae": ("Mean error (MAE)", "mean distance of the mean from the target, in the target's units; lower is better"),
    "r_squared": ("R squared", "share of the target's variance that the mean explains; 1 is best, 0 a constant's"),
    "mnll": ("Surprise (MNLL)", "mean negative log-likelihood of a row, in nats; lower is better"),
    "crps": ("Distance (CRPS)", "of predictive distributions from the targets, in their units; lower is better"),
    "coverage_90": ("Coverage", "share of targets inside their 90% interval; 90% is ideal"),
    "error_rate": ("Error rate", "share of rows whose class is predicted wrongly; lower is better"),
    "auc": ("Area under the curve (AUC)", "how often rows of a class get more of it than other rows; 1 is best"),
    "brier": ("Brier score", "squared distance of probabilities from the truth; lower is better"),
    "ece": ("Calibration error (ECE)", "mean distance of stated probability and accuracy; lower is better"),
}  # fmt: skip
_SHARES = ("coverage_90", "error_rate")
_MARKS = {"good": ("✓", "Good"), "attention": ("!", "Attention"), "info": ("i", "Note")}


def report_page(
    model: DeepGPRegressor | DeepGPClassifier,
    X: Any,
    y: Any,
    *,
    columns: Sequence[str] | None = None,
    source: str = "",
    target: str | None = None,
) -> str:
    """Describe a fitted model on one page of HTML that opens offline; needs the extra `plots`.

    Args:
        model: a fitted regressor with one target, or a fitted classifier.
        X: rows to judge the model on, best such that it was not trained on; a table, too.
        y: their targets or classes, or the name of their column in the table.
        columns: names of the inputs; those of the fit by default.
        source: the table, whose name is in the heading.
        target: name of the target; that of `y` by default, where it has one.

    Example:
        >>> import numpy as np
        >>> from bochner import Deep, DeepGPRegressor
        >>> from bochner.report import report_page
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(Deep(n_layers=1, max_steps=10, n_mc_predict=10), random_state=0)
        >>> model = model.fit(x, np.sin(6 * x[:, 0]))
        >>> report_page(model, x, np.sin(6 * x[:, 0]), source="waves.csv")[:15]
        '<!doctype html>'
    """
    return render_page(report_data(model, X, y, columns=columns, source=source, target=target))


def render_page(data: dict[str, Any]) -> str:
    """Render what `report_data` has collected; the same data give the same page."""
    classes = data["task"] == "classification"
    few = classes and len(data["target"]["classes"]) <= tables.N_CLASSES
    confusions = (data["target"]["classes"], data["confusions"]) if classes else None
    of_a_member = data["learning"] is not None and data["fit"]["n_layers"] is None
    return rendered(
        "report.html",
        data=data,
        summary=_summary(data),
        metrics=[_metric(entry) for entry in data["metrics"]],
        marks=_MARKS,
        kinds=tables.kinds_table(data["kinds"], classes=classes),
        members=tables.members_table(data["members"], data["fit"]["law"]),
        matrix=tables.confusion_matrix(*confusions) if confusions and few else None,
        confusions=tables.frequent_confusions(*confusions) if confusions and not few else None,
        figures=figures_of(data),
        effects=[effect_figure(effect, place) for place, effect in enumerate(data["effects"])],
        worst=tables.worst_table(data),
        classes=tables.class_counts(data["target"]) if classes else "",
        inputs=tables.inputs_table(data),
        n_more=len(data["inputs"]) - tables.N_INPUTS,
        configuration_title="Configuration of the deep member" if of_a_member else "Configuration",
        settings=[(name, tables.setting(value)) for name, value in data["configuration"].items()],
    )


def _summary(data: dict[str, Any]) -> str:
    rows, inputs, fit = data["data"]["n_rows"], data["data"]["n_inputs"], data["fit"]
    if fit["n_layers"] is None:
        with_weight = sum(member["weight"] > 0 for member in data["members"])
        made_of, trained = _counted(with_weight, "member"), "fitted"
    else:
        made_of = _counted(fit["n_layers"], "layer")
        n_steps = 0 if data["learning"] is None else data["learning"]["n_steps"]
        trained = f"trained for {_counted(n_steps, 'step')}"
    return (
        f"{data['model']} with {made_of} predicts “{data['target']['name']}” from {_counted(inputs, 'input')}. "
        f"Judged on {_counted(rows, 'row')}; {trained} in {number(float(fit['seconds']), 2)} s."
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _metric(entry: dict[str, Any]) -> dict[str, str]:
    label, meaning = _METRICS[entry["name"]]
    write = percent if entry["name"] in _SHARES else number
    constant = "—" if entry["constant"] is None else write(entry["constant"])
    value = "—" if entry["value"] is None else write(entry["value"])
    return {"label": label, "meaning": meaning, "value": value, "constant": constant}
