"""The command line: one file a command, no mathematics."""

from typing import Annotated

import typer

from bochner.cli.calibrate import calibrate
from bochner.cli.check import check
from bochner.cli.common import EXIT_CODES
from bochner.cli.compare import compare
from bochner.cli.cv import cv
from bochner.cli.datasets import datasets
from bochner.cli.demo import demo
from bochner.cli.evaluate import evaluate
from bochner.cli.explain import explain
from bochner.cli.export import export
from bochner.cli.fit import fit
from bochner.cli.info import info
from bochner.cli.predict import predict
from bochner.cli.report import report
from bochner.cli.sample import sample
from bochner.cli.update import update
from bochner.version import __version__

app = typer.Typer(
    name="bochner",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Deep Gaussian processes through random features: predictions with honest uncertainty.",
    epilog=EXIT_CODES,
)
for function in (
    fit, predict, evaluate, calibrate, update, cv, compare, report, explain, check, info, sample, export, demo,
):  # fmt: skip
    app.command()(function)
app.add_typer(datasets, name="datasets")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"bochner {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Deep Gaussian processes through random features: predictions with honest uncertainty."""


__all__ = ["app"]
