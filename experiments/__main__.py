"""`python -m experiments` lists the experiments; `python -m experiments NAME` runs one."""

import difflib
import importlib
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from bochner.system.terminal import PlainConsole
from experiments.runner import Experiment, NoSuchJobError, run_experiment

EXPERIMENTS = {
    "toy": "toy",
    "mcmc": "mcmc",
    "check": "checks",
    "calibration": "calibration",
    "omega": "omega",
    "comparison": "comparison",
    "large": "large",
    "depth": "depth",
    "lowrank": "lowrank",
    "digits": "digits",
    "async": "asynchronous",
    "records": "records",
}
"""The module of each experiment; it is imported when asked for, since some need an extra."""


def load(name: str) -> Experiment:
    """Import an experiment.

    Example:
        >>> from experiments.__main__ import load
        >>> load("toy").summary
        'one to three layers on a composed function and a step, 50 points'
    """
    return importlib.import_module(f"experiments.{EXPERIMENTS[name]}").EXPERIMENT


def main(
    name: Annotated[
        str | None, typer.Argument(help="Which experiment; none lists them all.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A short version, under 40 s on 2 cores.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path(
        "experiments/results"
    ),
    select: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only jobs with this value, as in --select data=eeg --select n_hidden=1; values of one "
            "name, separated by commas or in options of their own, are alternatives."
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="Jobs at a time, each with its share of the cores.")
    ] = 1,
) -> None:
    """Run an experiment by name, going on where an interrupted run stopped."""
    console = PlainConsole()
    if name is None:
        table = Table("name", "what it shows")
        for key in EXPERIMENTS:
            table.add_row(key, _summary(key))
        console.print(table)
        return
    if name not in EXPERIMENTS:
        nearest = difflib.get_close_matches(name, EXPERIMENTS, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise typer.BadParameter(
            f"there is no experiment {name!r}.{hint} Known: {', '.join(EXPERIMENTS)}.",
            param_hint="NAME",
        )
    chosen: dict[str, list[str]] = {}
    for key, values in map(_pair, select or []):
        chosen.setdefault(key, []).extend(values)
    try:
        experiment = load(name)
    except ImportError as error:
        console.print(f"{name} cannot run: {error}")
        raise typer.Exit(1) from error
    try:
        path = run_experiment(name, experiment, out, quick, chosen, processes)
    except NoSuchJobError as error:
        raise typer.BadParameter(str(error), param_hint="--select") from error
    console.print(f"Results in {path}")


def _summary(name: str) -> str:
    try:
        return load(name).summary
    except ImportError as error:
        return str(error)


def _pair(text: str) -> tuple[str, list[str]]:
    name, separator, values = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"{text!r} is not of the form name=value.", param_hint="--select")
    return name, values.split(",")


if __name__ == "__main__":
    typer.run(main)
