"""`bochner check`: the variational answer of a model beside that of NUTS."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bochner.cli.common import AsJson, ModelPath, Quiet, Seed, TablePath, command, load_model, show
from bochner.cli.evaluate import Target, target_name

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
    """
    from bochner.estimators.sources import rows_with_targets
    from bochner.mcmc import check_posterior
    from bochner.mcmc.check import LIMITS

    fitted = load_model(model)
    name = target_name(fitted, target)
    X, y = rows_with_targets(fitted, table, name, _MAX_ROWS)
    found = check_posterior(
        fitted, X, y, n_rows=rows, n_samples=samples, n_warmup=warmup, n_chains=chains, random_state=seed,
    )  # fmt: skip
    if plot is not None:
        found.plot()[0].figure.savefig(plot, dpi=150)
    numbers = found.numbers()
    if as_json:
        numbers |= {"verdict": found.verdict, "limits": LIMITS}
    show(numbers, as_json=as_json, quiet=quiet, title=f"{model} beside NUTS")
    if not (as_json or quiet):
        Console().print(str(found), markup=False, highlight=False)
