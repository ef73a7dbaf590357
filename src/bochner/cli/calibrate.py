"""`bochner calibrate`: intervals of a model that hold on new rows, by rows that the fit has not seen."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bochner.cli.common import AsJson, ModelPath, Quiet, TablePath, command, load_model, show
from bochner.cli.evaluate import Target, target_name
from bochner.cli.output import Output
from bochner.cli.progress import counted

ChangedModel = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="OUT", help="Model file to write; MODEL is replaced by default."
    ),
]


@command
def calibrate(
    model: ModelPath,
    table: TablePath,
    target: Target = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of TABLE: `predict --groups` then holds in each group."
        ),
    ] = None,
    forgetting: Annotated[
        float | None,
        typer.Option(
            help="Go on from earlier rows: the share of their weight that each row takes, such as 0.01."
        ),
    ] = None,
    output: ChangedModel = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Correct the intervals of MODEL by the target column of TABLE, whose rows no part of the fit has seen.

    An interval then holds the target of a new row with the stated probability or more, where that row and those of
    TABLE are exchangeable.
    """
    import numpy as np

    from bochner.estimators.files import to_parts
    from bochner.fitting.sources import Encoded, encoded_batches
    from bochner.system.saving import format_arrays
    from bochner.tables.targets import target_values

    place = changed_model(output, model, table)
    fitted = load_model(model)
    name = target_name(fitted, target)
    inputs, targets, labels, n_rows = [], [], [], 0
    for X, batch in counted(encoded_batches(fitted.fitted_.reader, table, name), quiet):
        classes = hasattr(fitted, "classes_")
        targets += target_values(batch, name, classification=classes, row=n_rows).tolist()
        labels += [] if groups is None else values_of_groups(batch, groups, table)
        inputs.append(X)
        n_rows += len(X)
    if not inputs:
        raise ValueError(f"{table} has no rows.")
    by = None if groups is None else labels
    fitted.calibrate(np.concatenate(inputs).view(Encoded), targets, by, forgetting=forgetting)
    place.write_or_rescue(format_arrays(*to_parts(fitted)))
    if not place.is_standard_output:
        found = {"model": str(place.path), "calibrated": fitted.fitted_.calibration.in_words()}
        show(found, as_json=as_json, quiet=quiet)


def changed_model(output: Path | None, model: Path, table: str) -> Output:
    """Give the place of a model that a command changes: that of the old one, unless another is named."""
    if output is None:
        return Output("MODEL", model, {"TABLE": table})
    return Output("--output", output, {"TABLE": table, "MODEL": model})


def values_of_groups(batch: Any, column: str, table: str) -> list[Any]:
    """Give the values of the column of groups."""
    names = batch.schema.names
    if column not in names:
        raise ValueError(f"{table} has no column {column!r} of groups; its columns are {names}.")
    return batch.column(column).to_pylist()
