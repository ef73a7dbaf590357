"""`bochner check`: the variational answer of a model beside that of NUTS."""

from pathlib import Path
from typing import Annotated

import typer

from bochner.cli.common import (
    AsJson,
    ModelPath,
    Quiet,
    Seed,
    TablePath,
    command,
    load_model,
    note,
    show,
)
from bochner.cli.evaluate import Target, target_name
from bochner.cli.output import Inputs, Output
from bochner.system.terminal import PlainConsole

_MAX_ROWS = 100_000


@command
def check(
    model: ModelPath,
    table: TablePath,
    target: Target = None,
    rows: Annotated[
        int, typer.Option(min=1, help="Rows to condition on; of more a random part.")
    ] = 200,
    samples: Annotated[int, typer.Option(min=4, help="Draws of each chain.")] = 300,
    warmup: Annotated[int, typer.Option(min=1, help="Steps of each chain before them.")] = 300,
    chains: Annotated[int, typer.Option(min=1, help="Chains.")] = 2,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Picture to write, such as check.png.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare the predictions of MODEL with those of NUTS on the same features: too wide, or too narrow?

    TABLE is best the one of the fit; its first 100,000 rows are used. With other rows, or a part of them, q(W) is first
    fitted again to these. The check sees the error of q(W) only, not that of the optimized theta and Omega.

    It is for deep models: of several members that predict together the deep one is checked. Models without one, as
    small tables have them by default, have nothing to check; `fit --members deep` makes a deep model alone.
    """
    from bochner.fitting.sources import rows_with_targets
    from bochner.mcmc import check_posterior
    from bochner.mcmc.comparison import LIMITS

    place = None if plot is None else _picture(plot, {"MODEL": model, "TABLE": table})
    fitted = load_model(model)
    name = target_name(fitted, target)
    X, y = rows_with_targets(fitted.fitted_.reader, table, name, _MAX_ROWS)
    found = check_posterior(
        fitted, X, y, n_rows=rows, n_samples=samples, n_warmup=warmup, n_chains=chains, random_state=seed,
        tell=lambda text: note(text, quiet),
    )  # fmt: skip
    if place is not None:
        with place.open() as file, place.errors_in_words():
            found.plot()[0].figure.savefig(file, dpi=150, format=_form(place.path))
        if place.is_standard_output:
            return
    numbers = found.numbers()
    if as_json:
        numbers |= {"verdict": found.verdict, "limits": LIMITS}
    show(numbers, as_json=as_json, quiet=quiet, title=f"{model} beside NUTS")
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
