"""`bochner sample`: functions drawn from the posterior, at the rows of a table."""

from typing import Annotated

import typer

from bochner.cli.common import AsJson, ModelPath, Quiet, Seed, TablePath, command, load_model, show
from bochner.cli.progress import counted
from bochner.cli.writing import open_output, table_output


@command
def sample(
    model: ModelPath,
    table: TablePath,
    n: Annotated[int, typer.Option("--n", min=1, help="Functions.")] = 10,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="CSV or Parquet file; - prints CSV."),
    ] = "-",
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draw whole functions from the posterior and evaluate them at each row of TABLE: one column a function.

    A function is the mean of the target, or the probability of each class, without noise; it is the same function in
    all rows.
    """
    import numpy as np
    import pyarrow as pa

    from bochner.fitting.sources import encoded_batches

    place = table_output(output, {"MODEL": model, "TABLE": table})
    fitted = load_model(model)
    functions = fitted.sample_functions(n, random_state=seed)
    classes, n_rows = getattr(fitted, "classes_", None), 0
    with open_output(place) as writer:
        for X, _ in counted(
            encoded_batches(fitted.fitted_.reader, table),
            quiet or place.is_standard_output,
        ):
            columns = {}
            for number, f in enumerate(functions):
                values = f(X)
                if classes is None:
                    columns[f"f{number}"] = np.asarray(values, np.float64)
                    continue
                for i, label in enumerate(classes.tolist()):
                    columns[f"f{number}_{label}"] = np.asarray(values[:, i], np.float64)
            n_rows += len(X)
            writer.write(pa.RecordBatch.from_pydict(columns))
    if not place.is_standard_output:
        show({"output": output, "rows": n_rows, "functions": n}, as_json=as_json, quiet=quiet)
