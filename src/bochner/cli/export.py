"""`bochner export`: the predictive function for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from bochner.cli.common import AsJson, ModelPath, Quiet, command, load_model, show
from bochner.cli.output import Output


@command
def export(
    model: ModelPath,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write; model.FORMAT by default."
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        str, typer.Option(help="stablehlo, or onnx (extra onnx).")
    ] = "stablehlo",
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace files also where they are no earlier export."),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the predictive function as StableHLO or ONNX for any number of rows, with its schema as JSON.

    StableHLO comes as three files of one name: FILE, and those with the endings .mlirbc and .json; ONNX is FILE alone.
    An earlier export is replaced; any other file of these names is kept, and is an error, unless --overwrite is given.
    """
    from bochner.estimators.export import check_replaceable, export_files
    from bochner.estimators.export import export as write

    output = Path(f"model.{format}") if output is None else output
    if not output.name:
        raise ValueError(f"--output must name a file; {output} is a folder.")
    for file in export_files(output, format):
        if Output("--output", file, {"MODEL": model}).is_special:
            raise ValueError(
                f"--output must name a file, for a program is written there; {file} is none."
            )
    if not overwrite:
        check_replaceable(output, format)
    files = write(load_model(model), output, format=format, overwrite=overwrite)
    show({"files": [str(file) for file in files]}, as_json=as_json, quiet=quiet)
