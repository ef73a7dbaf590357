"""`bochner datasets`: the data sets that the library knows."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as RichTable

from bochner.cli.common import AsJson, Quiet, command, show
from bochner.cli.writing import open_output, table_output
from bochner.system.terminal import PlainConsole

datasets = typer.Typer(no_args_is_help=True, help="List data sets, or write one as a table.")


@datasets.command("list")
@command
def list_names(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """List the data sets: sizes, what is predicted, where they come from, and whether they are on this machine."""
    from bochner.datasets.catalog import CATALOG

    if as_json:
        found = {name: {**vars(one), "place": one.place} for name, one in CATALOG.items()}
        show({"datasets": found}, as_json=True)
        return
    table = RichTable("name")
    for head in ("rows", "inputs"):
        table.add_column(head, justify="right")
    for head in ("task", "source", "on this machine"):
        table.add_column(head)
    for name, one in CATALOG.items():
        table.add_row(name, f"{one.n_rows:,}", str(one.n_inputs), one.task, one.source, one.place)
    PlainConsole().print(table)


@datasets.command("get")
@command
def get(
    name: Annotated[str, typer.Argument(help="Name of the data set.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="CSV or Parquet.  \\[default: NAME.csv]"
        ),
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
    import pyarrow as pa

    from bochner.datasets import load
    from bochner.datasets.files import present_files

    if name == "mnist8m":
        raise ValueError(
            "the images of mnist8m are made on the fly and would fill 6 GB as a table."
        )
    place = table_output(output or f"{name}.csv", present_files())
    data = load(name, download=download)
    target = data.target_name or "class"
    y = [data.class_names[int(i)] for i in data.y] if data.is_classification else data.y
    columns = {name: data.X[:, i] for i, name in enumerate(data.feature_names)}
    with open_output(place) as writer:
        writer.write(pa.RecordBatch.from_pydict({**columns, target: pa.array(y)}))
    if not place.is_standard_output:
        found = {"output": str(place.path), "rows": len(data.X), "target": target}
        show(found, as_json=as_json, quiet=quiet)
