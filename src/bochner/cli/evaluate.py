"""`bochner evaluate`: metrics of a model on a table with known targets."""

from typing import Annotated, Any

import typer

from bochner.cli.common import AsJson, ModelPath, Quiet, TablePath, command, load_model, show
from bochner.cli.progress import counted

Target = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column with the truth; as at the fit by default."),
]


@command
def evaluate(
    model: ModelPath,
    table: TablePath,
    target: Target = None,
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of groups, for the same metrics of each."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare predictions with the target column of TABLE: RMSE or error rate, R squared or AUC, MNLL, calibration.

    The table is read a part at a time, whatever its size.
    """
    from bochner.cli.calibrate import values_of_groups
    from bochner.fitting.sources import encoded_batches
    from bochner.prediction.scores import metrics_by_group
    from bochner.tables.targets import target_values

    fitted = load_model(model)
    name = target_name(fitted, target)
    classes, total, n_rows = hasattr(fitted, "classes_"), None, 0
    by_group: dict[str, Any] = {}
    for X, batch in counted(encoded_batches(fitted.fitted_.reader, table, name, gaps=True), quiet):
        y = target_values(batch, name, classification=classes, row=n_rows)
        scores = fitted.scores(X, y)
        total = scores if total is None else total + scores
        if groups is not None:
            parts = fitted.scores_by_group(X, y, values_of_groups(batch, groups, table))
            for label, part in parts.items():
                by_group[label] = by_group[label] + part if label in by_group else part
        n_rows += len(X)
    if total is None:
        raise ValueError(f"{table} has no rows.")
    found = {"rows": n_rows, **total.metrics()}
    if groups is not None:
        found["groups"] = metrics_by_group(dict(sorted(by_group.items())))
    show(found, as_json=as_json, title=f"{model} on {table}")


def target_name(model: Any, asked: str | None) -> str:
    """The column with the truth: the one asked for, or that of the fit."""
    name = asked or model.fitted_.target
    if name is None:
        raise ValueError("the model does not know the name of its target: give --target.")
    return name
