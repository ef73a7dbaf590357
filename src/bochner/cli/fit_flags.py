"""The flags of commands that fit: those that matter in the short help, the others in `--help-all`."""

from pathlib import Path
from typing import Annotated, Any

import typer

THE_MODEL, LONG_WORK, THE_TABLE = "The model", "Long work", "How the table is written"
SEVERAL = "Several devices, processes or hosts"


def further(*names: str, **about: Any) -> Any:
    """Declare an option that only `--help-all` lists."""
    return typer.Option(*names, hidden=True, **about)


def _show_all(context: typer.Context, asked: bool) -> None:
    if not asked:
        return
    hidden = [one for one in context.command.params if getattr(one, "hidden", False)]
    for one in hidden:
        one.hidden = False  # pyright: ignore[reportAttributeAccessIssue]
    try:
        typer.echo(context.get_help())
    finally:
        for one in hidden:
            one.hidden = True  # pyright: ignore[reportAttributeAccessIssue]
    raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", callback=_show_all, is_eager=True, help="Show every option and exit."
    ),
]
Target = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column to predict.  \\[required]")
]
ModelToWrite = Annotated[
    Path | None, typer.Option(metavar="OUT", help="Model file to write.  \\[required]")
]
Task = Annotated[
    str | None, typer.Option(help="auto, regression or classification.  \\[default: auto]")
]
Ignore = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Column not to learn from; repeat.")
]
Groups = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column whose rows of one value are left out together."),
]
Folds = Annotated[
    int | None,
    further(min=2, help="Fit anew without each of so many folds, for `predict --method cross`."),
]
Time = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column by which later rows judge earlier ones."),
]
Members = Annotated[
    str | None,
    typer.Option(
        help="auto, or some of deep, exact, landmarks, linear and constant, such as linear,deep. Without deep, "
        "--kernel is that of exact and landmarks, such as 'rbf(lat, lon) + laplace'.  \\[default: auto]",
    ),
]
MaxSeconds = Annotated[
    float | None, typer.Option(help="Time for the whole fit, compilation included.")
]
Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE.toml", help="All settings, required ones too; flags override them."),
]
SeedOfFit = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of everything random.  \\[default: 0]")
]
Validation = Annotated[
    str | None, further(metavar="FILE", help="Table by which the best model is kept.")
]
Preset = Annotated[
    str | None, further(help="auto, paper or paper-mnist.", rich_help_panel=THE_MODEL)
]
Likelihood = Annotated[
    str | None,
    further(
        help="Law of the target: auto, or one such as gaussian, heteroscedastic, student-t, poisson, "
        "negative-binomial or gamma; softmax or bernoulli.",
        rich_help_panel=THE_MODEL,
    ),
]
ClassWeight = Annotated[
    str | None, further(help="balanced, for classification.", rich_help_panel=THE_MODEL)
]
Device = Annotated[str | None, further(help="cpu, gpu or gpu:1.", rich_help_panel=LONG_WORK)]
Separator = Annotated[
    str | None, further("--sep", help="Between fields, such as ';'.", rich_help_panel=THE_TABLE)
]
Encoding = Annotated[str | None, further(help="Such as latin-1.", rich_help_panel=THE_TABLE)]
Decimal = Annotated[str | None, further(help="Before decimals: . or ,", rich_help_panel=THE_TABLE)]
Thousands = Annotated[
    str | None, further(help="Between groups of digits.", rich_help_panel=THE_TABLE)
]
DateFormat = Annotated[str | None, further(help="Such as %d.%m.%Y.", rich_help_panel=THE_TABLE)]
MissingWords = Annotated[
    list[str] | None,
    further("--na", metavar="WORD", help="Means missing; repeat.", rich_help_panel=THE_TABLE),
]
