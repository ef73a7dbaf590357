"""Renders what was collected as one page of HTML that needs nothing else."""

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from bochner.estimators import DeepGPClassifier, DeepGPRegressor
from bochner.report.collect import report_data
from bochner.report.details import (
    configuration_section,
    confusion_section,
    data_section,
    members_section,
    worst_section,
)
from bochner.report.figures import (
    confidence_figure,
    coverage_figure,
    learning_figure,
    predictions_figure,
    reliability_figure,
    shares_figure,
)
from bochner.report.markup import escaped, number, percent, section, table

_METRICS = {
    "rmse": ("Typical error (RMSE)", "root mean squared error, in the target's units; lower is better"),
    "mnll": ("Surprise (MNLL)", "mean negative log-likelihood of a row, in nats; lower is better"),
    "crps": ("Distance (CRPS)", "of predictive distributions from the targets, in their units; lower is better"),
    "coverage_90": ("Coverage", "share of targets inside their 90% interval; 90% is ideal"),
    "error_rate": ("Error rate", "share of rows whose class is predicted wrongly; lower is better"),
    "brier": ("Brier score", "squared distance of probabilities from the truth; lower is better"),
    "ece": ("Calibration error (ECE)", "mean distance of stated probability and accuracy; lower is better"),
}  # fmt: skip
_SHARES = ("coverage_90", "error_rate")
_MARKS = {"good": ("✓", "Good"), "attention": ("!", "Attention"), "info": ("i", "Note")}
# Not even a mistake in the page could make a browser run a script or ask another host.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


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
        X: rows to judge the model on, best such that it was not trained on.
        y: their targets or classes.
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
    subject = f": {escaped(data['source'])}" if data["source"] else ""
    title = f"Report{subject}"
    style = files("bochner.report").joinpath("style.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{_summary(data)}</p>
</header>
<main>
{_metrics_section(data)}
{_notes_section(data["notes"])}
{members_section(data)}
{_plots(data)}
{worst_section(data)}
{data_section(data)}
{configuration_section(data)}
</main>
<footer><p>Written by bochner {escaped(data["version"])}.</p></footer>
</body>
</html>
"""


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
        f"{escaped(data['model'])} with {made_of} predicts “{escaped(data['target']['name'])}” from "
        f"{_counted(inputs, 'input')}. Judged on {_counted(rows, 'row')}; {trained} in "
        f"{number(float(fit['seconds']), 2)} s."
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _metrics_section(data: dict[str, Any]) -> str:
    rows = []
    for entry in data["metrics"]:
        label, meaning = _METRICS[entry["name"]]
        write = percent if entry["name"] in _SHARES else number
        constant = "—" if entry["constant"] is None else write(entry["constant"])
        rows.append([f"{label}<small>{meaning}</small>", write(entry["value"]), constant])
    held_by = (
        "the share of each class"
        if data["task"] == "classification"
        else "the mean and deviation of the target"
    )
    return section(
        "metrics",
        "How good it is",
        table(["metric", "model", "constant"], rows, label="Metrics", kind="metrics")
        + f'<p class="remark">“Constant” predicts {held_by} in these rows for each of them. The numbers tell of '
        "new data only if the model was not trained on these rows.</p>",
    )


def _notes_section(notes: list[dict[str, str]]) -> str:
    items = []
    for note in notes:
        mark, spoken = _MARKS[note["verdict"]]
        items.append(
            f'<li class="{note["verdict"]}"><span class="mark" aria-hidden="true">{mark}</span>'
            f'<div><span class="hidden">{spoken}: </span><strong>{escaped(note["topic"])}.</strong> '
            f"{_with_code(note['text'])}</div></li>"
        )
    return section("notes", "What it means", f'<ul class="notes">{"".join(items)}</ul>')


def _with_code(text: str) -> str:
    """Escape a note, and set what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped(text))


def _plots(data: dict[str, Any]) -> str:
    learning = ""
    if data["learning"] is not None:
        learning = _figure(
            "learning",
            "Learning curve of the deep model",
            learning_figure(data["learning"]),
            "A curve that is flat at its end says that training had settled.",
        )
    shares = _figure(
        "shares",
        "Most important inputs",
        shares_figure(data["inputs"]),
        "Share of each input in what predicted means change when the values of one are exchanged between rows.",
    )
    if data["task"] == "classification":
        calibration = _figure(
            "calibration",
            "Reliability",
            reliability_figure(data["calibration"]),
            "On the diagonal, probabilities are what they say; above it the model is too modest, below it too sure. "
            "The gray bars are chance.",
        )
        confidence = _figure(
            "confidence",
            "How sure it is",
            confidence_figure(data["calibration"]),
            "Rows by the probability of the predicted class; wrong predictions belong on the left.",
        )
        return confusion_section(data) + _pair(calibration, confidence) + _pair(learning, shares)
    n_rows, n_drawn = data["data"]["n_rows"], len(data["predictions"]["row"])
    drawn = f" {n_drawn:,} of {n_rows:,} rows, chosen at random." if n_drawn < n_rows else ""
    predictions = _figure(
        "predictions",
        "Predicted against observed",
        predictions_figure(data["predictions"], data["target"]["name"]),
        f"Means with 90% intervals. Intervals that cross the diagonal hold the observed value.{drawn}",
    )
    calibration = _figure(
        "calibration",
        "Calibration",
        coverage_figure(data["calibration"]),
        "On the diagonal, intervals hold what they promise; below it they are too narrow. The gray band is chance.",
    )
    return _pair(predictions, calibration) + _pair(learning, shares)


def _pair(left: str, right: str) -> str:
    return f'\n<div class="pair">{left}\n{right}</div>'


def _figure(name: str, title: str, svg: str, caption: str) -> str:
    return (
        f'<figure id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>\n{svg}\n'
        f"<figcaption>{escaped(caption)}</figcaption></figure>"
    )
