"""`bochner check`: what a fitted model predicts beside what the exact posterior predicts, by MCMC."""

from pathlib import Path
from typing import Annotated

import typer

from bochner.cli.common import AsJson, ModelPath, Quiet, Seed, TablePath, command, load_model, show
from bochner.cli.evaluate import Target, target_name
from bochner.cli.output import Inputs, Output
from bochner.cli.stopping import ending_at_once
from bochner.system.terminal import PlainConsole

_MAX_ROWS = 100_000


@command
def check(
    model: ModelPath,
    table: TablePath,
    target: Target = None,
    rows: Annotated[
        int, typer.Option(min=1, help="Rows to condition on; of more a random part.")
    ] = 100,
    seconds: Annotated[
        float, typer.Option(min=1.0, help="After which the check ends, converged or not.")
    ] = 170.0,
    warmup: Annotated[
        int, typer.Option(min=1, help="Steps of each chain before the first draw.")
    ] = 200,
    chains: Annotated[int, typer.Option(min=1, help="Chains of each replicate.")] = 2,
    member: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Member to check; by default that of most weight."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Picture to write, such as check.png.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare what MODEL predicts with what the exact posterior predicts, by MCMC: too wide, or too narrow?

    Of a deep model the weights are sampled, theta and Omega held; of an exact Gaussian process the hyper-parameters. Of
    several members that predict together the one with the largest weight is checked.

    TABLE is best the one of the fit; its first 100,000 rows are used. With other rows, or a part of them, the fitted
    side is first fitted again to these. Without convergence there is no verdict.
    """
    place = None if plot is None else _picture(plot, {"MODEL": model, "TABLE": table})
    with ending_at_once(as_json) as before_the_end:
        from bochner.fitting.sources import rows_with_targets
        from bochner.mcmc import check_posterior
        from bochner.mcmc.comparison import LIMITS
        from bochner.training import ProgressBar

        bar = ProgressBar("checking")
        before_the_end.callback(bar.on_end)
        fitted = load_model(model)
        name = target_name(fitted, target)
        X, y = rows_with_targets(fitted.fitted_.reader, table, name, _MAX_ROWS)
        found = check_posterior(
            fitted, X, y, n_rows=rows, n_warmup=warmup, n_chains=chains, max_seconds=seconds, member=member,
            progress=None if quiet else bar.show, random_state=seed,
        )  # fmt: skip
    if place is not None:
        with place.open() as file, place.errors_in_words():
            found.plot()[0].figure.savefig(file, dpi=150, format=_form(place.path))
        if place.is_standard_output:
            return
    numbers = found.numbers()
    if as_json:
        numbers |= {"verdict": found.verdict, "limits": LIMITS[found.what]}
    show(numbers, as_json=as_json, quiet=quiet, title=f"{model} beside MCMC")
    if not (as_json or quiet):
        PlainConsole().print(str(found), highlight=False)


def _picture(plot: Path, inputs: Inputs) -> Output:
    """Give the place of a picture, before any work for it."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise ImportError(
            "--plot needs matplotlib: install it with `pip install matplotlib`."
        ) from error
    forms = FigureCanvasBase.get_supported_filetypes()
    if _form(plot) not in forms:
        raise ValueError(
            f"--plot must end in one of .{', .'.join(sorted(forms))}; got {plot.name!r}."
        )
    return Output("--plot", plot, inputs)


def _form(path: Path) -> str:
    return path.suffix.removeprefix(".").lower() or "png"
