"""Command line of the benchmarks: `python -m benchmarks speed`, `python -m benchmarks streaming`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.threads import limit_threads

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def main() -> None:
    """Benchmarks of bochner, side by side with its peers."""


@app.command()
def speed(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print records as JSON, timings only.")
    ] = False,
    quick: Annotated[
        bool, typer.Option(help="Only configuration A, bochner and plain JAX, few repetitions.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(help="Processor cores for every system; all by default.")
    ] = None,
    system: Annotated[
        list[str] | None, typer.Option(help="Time only these systems; may be repeated.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(help="Time only these configurations; may be repeated.")
    ] = None,
) -> None:
    """Time one training step of each system, on each configuration."""
    limit_threads(threads)
    # JAX and PyTorch count the cores when they are imported.
    from benchmarks import growth, report, speed

    records = speed.measure(quick=quick, systems=system, configurations=config)
    if as_json:
        print(json.dumps(records, indent=2))
        return
    report.print_speed(records)
    if not (quick or system or config):
        report.print_growth(growth.measure())
        report.print_first_step(growth.first_steps())


@app.command()
def streaming(
    rows: Annotated[int, typer.Option(help="Rows of the table on disk.")] = 50_000_000,
    folder: Annotated[
        Path | None, typer.Option(help="Where the generated table is put for the while.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print records as JSON.")] = False,
) -> None:
    """Fit and predict a table larger than memory, beside one in memory."""
    from benchmarks import streaming

    records = streaming.measure(rows, folder)
    if as_json:
        print(json.dumps(records, indent=2))
    else:
        streaming.print_table(records)


if __name__ == "__main__":
    app()
