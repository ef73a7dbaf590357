"""`python -m experiments` lists the experiments; `python -m experiments NAME` runs one."""

import difflib
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from experiments import (
    asynchronous,
    calibration,
    comparison,
    depth,
    digits,
    large,
    lowrank,
    mcmc,
    omega,
    toy,
)
from experiments.runner import Experiment, run_experiment

EXPERIMENTS: dict[str, Experiment] = {
    "toy": toy.EXPERIMENT,
    "mcmc": mcmc.EXPERIMENT,
    "calibration": calibration.EXPERIMENT,
    "omega": omega.EXPERIMENT,
    "comparison": comparison.EXPERIMENT,
    "large": large.EXPERIMENT,
    "depth": depth.EXPERIMENT,
    "lowrank": lowrank.EXPERIMENT,
    "digits": digits.EXPERIMENT,
    "async": asynchronous.EXPERIMENT,
}


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
            help="Run only jobs with this value, as in --select data=eeg; several are joined."
        ),
    ] = None,
) -> None:
    """Run an experiment by name, going on where an interrupted run stopped."""
    console = Console()
    if name is None:
        table = Table("name", "what it shows")
        for key, experiment in EXPERIMENTS.items():
            table.add_row(key, experiment.summary)
        console.print(table)
        return
    if name not in EXPERIMENTS:
        nearest = difflib.get_close_matches(name, EXPERIMENTS, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise typer.BadParameter(
            f"there is no experiment {name!r}.{hint} Known: {', '.join(EXPERIMENTS)}.",
            param_hint="NAME",
        )
    chosen = {name: [value] for name, value in map(_pair, select or [])}
    console.print(f"Results in {run_experiment(name, EXPERIMENTS[name], out, quick, chosen)}")


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"{text!r} is not of the form name=value.", param_hint="--select")
    return name, value


if __name__ == "__main__":
    typer.run(main)
