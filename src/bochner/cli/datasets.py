"""`bochner datasets`: the data sets that the library knows."""

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from rich.console import Console

from bochner.cli.common import AsJson, Quiet, command, show
from bochner.cli.writing import open_output

datasets = typer.Typer(no_args_is_help=True, help="List data sets, or write one as a table.")


@datasets.command("list")
@command
def list_names(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """List the data sets by name."""
    from bochner.datasets import names

    if as_json:
        show({"datasets": names()}, as_json=True)
    else:
        Console().print("\n".join(names()), markup=False)


@datasets.command("get")
@command
def get(
    name: Annotated[str, typer.Argument(help="Name of the data set.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="CSV or Parquet.  [default: NAME.csv]"),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch missing files from their public source.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a data set as a table whose last column is the target.

    Its files come from the folder in BOCHNER_DATA, else from the cache.
    """
    from bochner.datasets import load

    if name == "mnist8m":
        raise ValueError(
            "the images of mnist8m are made on the fly and would fill 6 GB as a table."
        )
    data = load(name, download=download)
    target = data.target_name or "class"
    y = [data.class_names[int(i)] for i in data.y] if data.is_classification else data.y
    columns = {name: data.X[:, i] for i, name in enumerate(data.feature_names)}
    path = str(output or f"{name}.csv")
    with open_output(path) as writer:
        writer.write(pa.RecordBatch.from_pydict({**columns, target: pa.array(y)}))
    show({"output": path, "rows": len(data.X), "target": target}, as_json=as_json, quiet=quiet)
