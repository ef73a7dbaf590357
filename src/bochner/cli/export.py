"""`bochner export`: the predictive function for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from bochner.cli.common import AsJson, ModelPath, Quiet, command, load_model, show


@command
def export(
    model: ModelPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
    ] = Path("model.stablehlo"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the predictive function as StableHLO for any number of rows, and beside it its schema as JSON."""
    from bochner.export import export as write

    files = write(load_model(model), output)
    show({"files": [str(file) for file in files]}, as_json=as_json, quiet=quiet)
