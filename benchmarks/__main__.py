"""Command line of the benchmarks; `python -m benchmarks` lists them."""

import json
import os
import tempfile
from collections.abc import Iterable
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
def drift(
    rows: Annotated[int, typer.Option(help="Length of the stream.")] = 1_000_000,
    picture: Annotated[Path | None, typer.Option(help="PNG file to draw.")] = None,
) -> None:
    """Follow a stream whose function and noise change: as fitted, updated, and calibrated."""
    limit_threads(1)
    from benchmarks import drift

    found = drift.follow(rows)
    for kind in drift.KINDS:
        last = {name: sum(values[-10:]) / 10 for name, values in found[kind].items()}
        typer.echo(f"{kind}, last ten batches: {json.dumps(last)}")
    typer.echo(f"{rows / found['seconds']:,.0f} rows a second learned")
    if picture is not None:
        drift.draw_picture(found, picture)


@app.command()
def categories(
    draws: Annotated[int, typer.Option(help="How many tables are drawn.")] = 1,
    system: Annotated[
        list[str] | None, typer.Option(help="bochner or CatBoost; may be repeated.")
    ] = None,
) -> None:
    """Fit simulated tables whose text column has 500 values, beside CatBoost."""
    limit_threads(1)
    from benchmarks import categories

    for one in categories.measure(draws, system or list(categories.SYSTEMS)):
        typer.echo(json.dumps(one))


@app.command()
def novelty() -> None:
    """Tell rows unlike the training rows from others, on two tables of the suite."""
    limit_threads(1)
    from benchmarks import novelty

    for one in novelty.means(novelty.measure()):
        typer.echo(json.dumps(one))


@app.command()
def claims() -> None:
    """Write the page that lists sentences with numbers, computed from their records; say which pages differ."""
    from benchmarks.claims import CLAIMS, INDEX, ROOT, index

    (ROOT / INDEX).write_text(index(), encoding="utf-8")
    wrong = [claim for claim in CLAIMS if not claim.is_on_its_page()]
    for claim in wrong:
        print(f"{claim.page} should say: {claim.written()}")
    raise typer.Exit(1 if wrong else 0)


@app.command()
def streaming(
    rows: Annotated[
        list[int] | None, typer.Option(help="Rows of a table; repeat.  [default: 1, 5, 50 million]")
    ] = None,
    command: Annotated[
        list[str] | None, typer.Option(help="fit or predict; both by default.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where tables and models are kept; a temporary one else.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record a line.")] = False,
) -> None:
    """Fit and predict generated tables, in memory (1 million rows) and larger than that."""
    from benchmarks import streaming

    with tempfile.TemporaryDirectory() as temporary:
        records = []
        for record in streaming.measure(
            rows or [1_000_000, 5_000_000, 50_000_000],
            command or ["fit", "predict"],
            folder or Path(temporary),
        ):
            records.append(record)
            if as_json:
                print(json.dumps(record), flush=True)
        if not as_json:
            streaming.print_table(records)


@app.command()
def suite(
    system: Annotated[
        list[str] | None, typer.Option(help="Only these systems; may be repeated.")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="Only these tables; may be repeated.")
    ] = None,
    splits: Annotated[
        list[int] | None, typer.Option(help="Only these splits; may be repeated.")
    ] = None,
    most_rows: Annotated[
        int | None, typer.Option(min=1, help="Only tables of at most so many rows.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Our default less a kind of member: constant, linear, exact, landmarks or deep; may be repeated.",
        ),
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Run fits again whose records are of other commits.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="RECORDS", help="A folder of other records: print what is better and worse."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("benchmarks/results"),
    processes: Annotated[
        int, typer.Option(min=1, help="Fits at a time, each on a core of its own.")
    ] = 1,
    report: Annotated[
        bool, typer.Option("--report", help="Run nothing; write the tables from the records.")
    ] = False,
) -> None:
    """Measure predictions on fifty tables beside other systems (extra `bench`); fits that have a record are kept."""
    from benchmarks.suite import comparison, run, summary, systems, tables

    _check("--system", system, systems.NAMES)
    _check("--without", without, systems.KINDS)
    _check("--data", data, tables.NAMES)
    records = out / "suite"
    names = [
        name
        for name in data or tables.NAMES
        if most_rows is None or tables.n_rows(name) <= most_rows
    ]
    asked = [*(system or ()), *(systems.without(kind) for kind in without or ())]
    todo = run.jobs(asked or systems.USUAL, names, splits)
    if not report:
        for _ in run.run(records, todo, processes=processes, stale=stale):
            pass
    if against is not None:
        comparison.print_changes(records, against)
    summary.write(records, out)


@app.command()
def gpu(
    as_json: Annotated[bool, typer.Option("--json", help="Print a record a line.")] = False,
    quick: Annotated[bool, typer.Option(help="One tiny case, on any device.")] = False,
    system: Annotated[
        list[str] | None, typer.Option(help="Time only these systems; may be repeated.")
    ] = None,
    case: Annotated[
        list[str] | None, typer.Option(help="Only cases whose names begin so; may be repeated.")
    ] = None,
) -> None:
    """Time a training step on a GPU beside the card's floor, plain JAX, PyTorch and GPyTorch."""
    # JAX would else take most of the memory that PyTorch needs too.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    from benchmarks import gpu

    def print_line(record: dict) -> None:
        print(json.dumps(record), flush=True)

    tell = print_line if as_json else (lambda _: None)
    measured = gpu.measure(quick=quick, systems=system, cases=case, tell=tell)
    if not as_json:
        gpu.print_tables(measured)


@app.command()
def check_fused(
    shapes: Annotated[int, typer.Option(min=1, help="How many random shapes.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of the shapes and the numbers.")] = 0,
) -> None:
    """Compare the kernels of a layer with double precision, over random shapes, on this device."""
    from benchmarks import check_fused

    if not check_fused.run(shapes, seed):
        raise typer.Exit(1)


@app.command()
def splits(
    quick: Annotated[bool, typer.Option(help="Two splits, hardly trained.")] = False,
    data: Annotated[
        list[str] | None, typer.Option(help="Only these tables; may be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("benchmarks/results"),
    processes: Annotated[
        int, typer.Option(min=1, help="Tables at a time, each with its share of the cores.")
    ] = 1,
) -> None:
    """Measure our deep model on all splits with three seeds, the splits trained together; meant for a GPU."""
    from benchmarks import splits
    from experiments.runner import run_experiment

    _check("--data", data, splits.TABLES)
    chosen = {"data": data or splits.TABLES}
    run_experiment("splits", splits.EXPERIMENT, out, quick, chosen, processes)


@app.command()
def precision(
    quick: Annotated[bool, typer.Option(help="One short fit, to see that it runs.")] = False,
    data: Annotated[
        list[str] | None, typer.Option(help="Only these fits; may be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("benchmarks/results"),
) -> None:
    """Measure what rounded products, and the card's own sine, do to MNLL: on a GPU, `mnist, one member` anywhere."""
    from benchmarks import precision
    from experiments.runner import run_experiment

    _check("--data", data, precision.FITS)
    chosen = {"data": data or tuple(precision.FITS)}
    run_experiment("precision", precision.EXPERIMENT, out, quick, chosen, 1)


def _check(option: str, values: Iterable[str] | None, known: Iterable[str]) -> None:
    from bochner.fitting.config import check_choice

    for value in values or ():
        try:
            check_choice(option, value, known)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint=option) from error


if __name__ == "__main__":
    app()
