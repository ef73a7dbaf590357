"""`bochner predict`: a row of predictions for each row of a table, in one pass."""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

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
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column of TABLE to copy; repeat.")
    ] = None,
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

    The table is read, predicted and written a part at a time, whatever its size.
    """
    from bochner.fitting.sources import encoded_batches
    from bochner.members.predictors import with_draws

    place = table_output(output, {"MODEL": model, "TABLE": table})
    levels = _levels(quantiles)
    fitted = load_model(model)
    if draws is not None:
        fitted.fitted_ = with_draws(fitted.fitted_, draws)
    columns = _class_columns if hasattr(fitted, "classes_") else _number_columns
    if levels and columns is _class_columns:
        raise ValueError("--quantiles is for regression; this model predicts classes.")
    n_rows = 0

    def predicted() -> Iterator[pa.RecordBatch]:
        nonlocal n_rows
        for X, batch in counted(
            encoded_batches(fitted.fitted_.reader, table), quiet or place.is_standard_output
        ):
            _check_kept(keep or [], batch, table)
            kept = {name: batch.column(name) for name in keep or []}
            found = columns(fitted, X, coverage, levels)
            _check_distinct(kept, found)
            if samples:
                drawn = fitted.sample_y(X, samples, random_state=_row_seed(seed, n_rows))
                found |= {f"sample_{i}": drawn[..., i] for i in range(samples)}
            n_rows += len(X)
            yield pa.RecordBatch.from_pydict(kept | {k: pa.array(v) for k, v in found.items()})

    with open_output(place) as writer:
        for part in predicted():
            writer.write(without_formulas(part) if escape_formulas else part)
    if not place.is_standard_output:
        show({"output": output, "rows": n_rows}, as_json=as_json, quiet=quiet)


def _number_columns(
    model: Any, X: np.ndarray, coverage: float, levels: list[float]
) -> dict[str, Any]:
    if getattr(model, "n_targets_", 1) > 1:
        raise ValueError("the model has several targets; predict with it in Python.")
    ends = [(1 - coverage) / 2, (1 + coverage) / 2]
    if not 0 < coverage < 1:
        raise ValueError(f"--coverage must lie strictly between 0 and 1; got {coverage}.")
    found = model.predict_summary(X, [*ends, *levels])
    quantiles = found["quantiles"]
    named = {f"q{level:g}": quantiles[:, 2 + i] for i, level in enumerate(levels)}
    return {
        "mean": found["mean"],
        "std": found["std"],
        "lower": quantiles[:, 0],
        "upper": quantiles[:, 1],
        **named,
    }


def _class_columns(
    model: Any, X: np.ndarray, coverage: float, levels: list[float]
) -> dict[str, Any]:
    probabilities = model.predict_proba(X)
    labels = model.classes_.tolist()
    chosen = [labels[i] for i in probabilities.argmax(axis=1)]
    return {
        "class": chosen,
        **{f"probability_{label}": probabilities[:, i] for i, label in enumerate(labels)},
    }


def _levels(text: str | None) -> list[float]:
    try:
        levels = [float(part) for part in (text or "").split(",") if part.strip()]
    except ValueError as error:
        raise ValueError(f"--quantiles must be numbers such as 0.05,0.95; got {text!r}.") from error
    if not all(0 < level < 1 for level in levels):
        raise ValueError(f"--quantiles must lie strictly between 0 and 1; got {text!r}.")
    return levels


def _check_kept(names: list[str], batch: pa.RecordBatch, table: str) -> None:
    for name in names:
        if name not in batch.schema.names:
            raise ValueError(
                f"{table} has no column {name!r} to keep; its columns are {batch.schema.names}."
            )


def _check_distinct(kept: dict[str, Any], found: dict[str, Any]) -> None:
    both = kept.keys() & found.keys()
    if both:
        raise ValueError(
            f"--keep {sorted(both)[0]}: a column of the predictions has this name; rename it in the table."
        )


def _row_seed(seed: int, n_rows: int) -> int:
    """A seed for the rows from `n_rows` on, so that no two parts of a table share their noise."""
    return int(np.random.SeedSequence((seed, n_rows)).generate_state(1)[0] >> 1)
