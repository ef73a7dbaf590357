"""The command line: one file a command, no mathematics."""

from typing import Annotated

import typer

from bochner.cli.demo import demo
from bochner.version import __version__

app = typer.Typer(
    name="bochner",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Deep Gaussian processes through random features: predictions with honest uncertainty.",
)
app.command()(demo)


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
