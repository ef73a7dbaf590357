"""`bochner update`: a model file that has learned from further rows, too."""

from typing import Annotated

import typer

from bochner.cli.calibrate import ChangedModel, changed_model
from bochner.cli.common import AsJson, ModelPath, Quiet, TablePath, command, load_model, show
from bochner.cli.evaluate import Target, target_name
from bochner.cli.progress import counted


@command
def update(
    model: ModelPath,
    table: TablePath,
    target: Target = None,
    forgetting: Annotated[
        float,
        typer.Option(
            help="Share of the weight of all rows before it that each row takes, such as 0.001."
        ),
    ] = 0.0,
    output: ChangedModel = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let MODEL learn from the rows of TABLE, too, with its hyper-parameters and members as they are.

    Models in the space of rows are then those of all rows at once; deep ones train for a few steps. The table is read a
    part at a time, in its order.
    """
    from bochner.estimators.files import to_parts
    from bochner.fitting.sources import encoded_batches
    from bochner.system.saving import format_arrays
    from bochner.tables.targets import target_values

    place = changed_model(output, model, table)
    fitted = load_model(model)
    name, classes, n_rows = target_name(fitted, target), hasattr(fitted, "classes_"), 0
    for X, batch in counted(encoded_batches(fitted.fitted_.reader, table, name), quiet):
        y = target_values(batch, name, classification=classes, row=n_rows)
        fitted.update(X, y, forgetting=forgetting)
        n_rows += len(X)
    if n_rows == 0:
        raise ValueError(f"{table} has no rows.")
    place.write_or_rescue(format_arrays(*to_parts(fitted)))
    if not place.is_standard_output:
        found = {
            "model": str(place.path),
            "new_rows": n_rows,
            "rows": round(fitted.total_weight_),
            "training_rows_held": fitted.fitted_.n_rows_held,
        }
        show(found, as_json=as_json, quiet=quiet)
