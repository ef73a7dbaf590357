"""`bochner report`: one page about a model and how it does on a table."""

from pathlib import Path
from typing import Annotated

import typer

from bochner.cli.common import AsJson, ModelPath, Quiet, TablePath, command, load_model, show
from bochner.cli.evaluate import Target, target_name
from bochner.cli.output import Output

_MAX_ROWS = 100_000


@command
def report(
    model: ModelPath,
    table: TablePath,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Page to write.")
    ] = Path("report.html"),
    target: Target = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page: metrics, calibration, relevant inputs, worst rows, and notes in plain words.

    Of a table with more than 100,000 rows the first 100,000 are used.
    """
    from bochner.fitting.sources import rows_with_targets
    from bochner.report import report_page

    place = Output("--output", output, {"MODEL": model, "TABLE": table})
    fitted = load_model(model)
    name = target_name(fitted, target)
    X, y = rows_with_targets(fitted.fitted_.reader, table, name, _MAX_ROWS)
    page = report_page(
        fitted, X, y, source="standard input" if table == "-" else table, target=name
    )
    place.write(page.encode())
    if not place.is_standard_output:
        show({"report": str(output), "rows": len(X)}, as_json=as_json, quiet=quiet)
