"""`bochner predict`: a row of predictions for each row of a table, in one pass."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from bochner.cli.calibrate import values_of_groups
from bochner.cli.common import AsJson, ModelPath, Quiet, Seed, TablePath, command, load_model, show
from bochner.cli.progress import counted
from bochner.cli.writing import open_output, table_output, without_formulas


@command
def predict(
    model: ModelPath,
    table: TablePath,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="CSV or Parquet file; - prints CSV."),
    ] = "-",
    coverage: Annotated[float, typer.Option(help="Coverage of the interval.")] = 0.9,
    quantiles: Annotated[
        str | None, typer.Option(help="Quantiles to add, such as 0.05,0.5,0.95.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Draws from the predictive distribution to add.")
    ] = 0,
    draws: Annotated[
        int | None, typer.Option(min=1, help="Functions drawn; as at the fit by default.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="Of the interval: model, or cross after `fit --folds`.")
    ] = "model",
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of groups, for a model calibrated by groups."),
    ] = None,
    novelty: Annotated[
        bool,
        typer.Option("--novelty", help="Add how far each row is from the training rows, 0 to 1."),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of TABLE to copy; repeat. all copies all."),
    ] = None,
    row_numbers: Annotated[
        bool, typer.Option("--row-numbers", help="Number the rows of TABLE, from 0.")
    ] = False,
    digits: Annotated[
        int, typer.Option(min=1, max=17, help="Significant digits; 17 are all. Parquet has all.")
    ] = 6,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="Put ' before texts that a spreadsheet would take for formulas, such as =A1.",
        ),
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict each row of TABLE: mean, std and interval, or class and one probability a class.

    A calibrated model of classes adds the set of classes that holds the right one as often as --coverage says.

    The table is read, predicted and written a part at a time, whatever its size.
    """
    place = table_output(output, {"MODEL": model, "TABLE": table})
    from bochner.cli import predictions

    levels = predictions.levels_of(quantiles)
    if method not in ("model", "cross"):
        raise ValueError(f"--method must be model or cross; got {method!r}.")
    if not 0 < coverage < 1:
        raise ValueError(f"--coverage must lie strictly between 0 and 1; got {coverage}.")
    fitted = load_model(model)
    import pyarrow as pa

    from bochner.fitting.sources import encoded_batches
    from bochner.members.predictors import with_draws

    if draws is not None:
        fitted.fitted_ = with_draws(fitted.fitted_, draws)
    columns = predictions.columns_of(fitted, coverage, levels, method)
    if place.path.suffix == ".parquet":
        digits = predictions.ALL_DIGITS
    n_rows = 0

    def predicted() -> Iterator[Any]:
        nonlocal n_rows
        for X, batch in counted(
            encoded_batches(fitted.fitted_.reader, table, gaps=True),
            quiet or place.is_standard_output,
        ):
            kept = predictions.kept_columns(keep or [], batch, table)
            labels = None if groups is None else values_of_groups(batch, groups, table)
            found = columns(X, labels)
            if method != "model":
                found |= predictions.crossed(fitted, X, batch, coverage)
            if novelty:
                found["novelty"] = fitted.novelty(X)
            if samples:
                found |= predictions.drawn(fitted, X, samples, seed, n_rows)
            found = predictions.shortened(found, digits)
            if row_numbers:
                predictions.check_distinct({"row": None}, kept)
                kept = {"row": pa.array(range(n_rows, n_rows + len(X))), **kept}
            predictions.check_distinct(kept, found)
            n_rows += len(X)
            yield pa.RecordBatch.from_pydict(kept | {k: pa.array(v) for k, v in found.items()})

    with open_output(place) as writer:
        for part in predicted():
            writer.write(without_formulas(part) if escape_formulas else part)
    if not place.is_standard_output:
        show({"output": output, "rows": n_rows}, as_json=as_json, quiet=quiet)
