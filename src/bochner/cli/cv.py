"""`bochner cv`: how good fits are on rows that they have not seen, fold by fold."""

from typing import Annotated, Any

import typer

from bochner.cli.common import AsJson, Quiet, TablePath, command, in_words, note, show
from bochner.cli.deep_flags import with_deep_flags
from bochner.cli.fit_flags import (
    ClassWeight,
    Config,
    DateFormat,
    Decimal,
    Device,
    Encoding,
    Groups,
    HelpAll,
    Ignore,
    Likelihood,
    MaxSeconds,
    Members,
    MissingWords,
    Preset,
    SeedOfFit,
    Separator,
    Target,
    Task,
    Thousands,
    Time,
)  # fmt: skip
from bochner.cli.settings import OPTIONS, flags, settings_from
from bochner.cli.tasks import find_task
from bochner.system.terminal import PlainConsole

Folds = list[tuple[Any, Any]]


@with_deep_flags
@command
def cv(
    context: typer.Context,
    table: TablePath,
    target: Target = None,
    folds: Annotated[int, typer.Option(min=2, help="How often the table is parted.")] = 5,
    groups: Groups = None,
    time: Time = None,
    task: Task = None,
    ignore: Ignore = None,
    members: Members = None,
    max_seconds: MaxSeconds = None,
    config: Config = None,
    seed: SeedOfFit = None,
    preset: Preset = None,
    likelihood: Likelihood = None,
    class_weight: ClassWeight = None,
    device: Device = None,
    sep: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    date_format: DateFormat = None,
    na: MissingWords = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    help_all: HelpAll = False,
    **settings: Any,
) -> None:
    """Fit to parts of TABLE, and judge each fit by the rows that it has not seen: metrics over the folds.

    Rows are parted at random, classes in equal shares; by --groups so that no group is in two folds; by --time so that
    each fold is later than all that was learned from. Fits are those of `fit` with the same settings. The standard
    error is that over folds; fits share rows, so it is too small rather than too large.
    """
    asked = settings_from(config, flags(context))
    column = asked.required("target")
    asked_task, ignored = asked.taken("task", "auto"), list(asked.taken("ignore", []))
    group_column, time_column = asked.taken("groups", None), asked.taken("time", None)
    for of_fit in ("model", "validation", "tensorboard", "checkpoint", "checkpoint_seconds"):
        asked.taken(of_fit, None)
    written = {name: asked.values.pop(name) for name in OPTIONS if name in asked.values}
    asked.values.setdefault("seed", 0)
    from bochner.tables.source import open_table

    source = open_table(table, **written)
    found_task = find_task(source, column, asked_task, quiet)
    model = asked.estimator(found_task)
    rows, split, parts = _parted(
        source, column, found_task, folds, group_column, time_column, seed or 0
    )
    results = []
    for number, (train, test) in enumerate(parts, 1):
        note(
            f"Fold {number} of {len(parts)}: {len(train):,} rows to learn from, {len(test):,} to judge by.",
            quiet,
        )
        told = _told(split, train, group_column, time_column)
        left_out = ignored if "groups" in told or group_column is None else [*ignored, group_column]
        model.fit(rows.take(train), column, ignore=left_out, **told)
        results.append({"rows": len(test), **model.evaluate(rows.take(test), column)})
        note(f"Log-likelihood of these {-results[-1]['mnll']:.4g}.", quiet)
    _show(results, found_task, split, as_json)


def _parted(
    source: Any,
    target: str,
    task: str,
    n_folds: int,
    groups: str | None,
    time: str | None,
    seed: int,
) -> tuple[Any, Any, Folds]:
    """Read the table, and choose the rows of each fold."""
    import numpy as np
    import pyarrow as pa

    from bochner.fitting.sources import NUMBERS_IN_MEMORY, column_of_values, split_of_table
    from bochner.fitting.splits import folds_at_random

    if (source.n_rows or 0) * len(source.schema) > NUMBERS_IN_MEMORY:
        raise ValueError(
            f"{source.name} is too large: `cv` holds the table in memory. Fit to most rows, and `evaluate` the others."
        )
    split = split_of_table(source, groups, time)
    if split is not None:
        split.check()
    rows = pa.Table.from_batches(source.batches(), schema=source.schema)
    if split is not None:
        return rows, split, split.folds(n_folds, seed)
    if n_folds > len(rows):
        raise ValueError(
            f"--folds must be at most the {len(rows)} rows of {source.name}; got {n_folds}."
        )
    by_class = task == "classification"
    labels = column_of_values(source, target) if by_class else np.zeros(len(rows))
    return rows, None, folds_at_random(labels, n_folds, seed)


def _told(split: Any, train: Any, groups: str | None, time: str | None) -> dict[str, str | None]:
    """Let a fit judge its members in the same way, where what is left of the table can be parted once more."""
    if split is None or len(set(split.values[train].tolist())) < 2:
        return {}
    return {"groups": groups} if groups is not None else {"time": time}


def _show(results: list[dict[str, float]], task: str, split: Any, as_json: bool) -> None:
    import numpy as np

    metrics = [name for name in results[0] if name != "rows"]
    values = {name: np.array([one[name] for one in results]) for name in metrics}
    mean = {name: float(own.mean()) for name, own in values.items()}
    error = {name: _error(own) for name, own in values.items()}
    judging = "rows left out at random" if split is None else split.in_words
    if as_json:
        told = {"folds": results, "mean": mean, "standard_error": error}
        show({"task": task, "judged_by": judging, **told}, as_json=True)
        return
    from rich.table import Table as RichTable

    shown = RichTable("", title=f"{len(results)} folds, by {judging}", title_justify="left")
    for head in ("mean", "standard error", "least", "most"):
        shown.add_column(head, justify="right")
    for name, own in values.items():
        columns = (mean[name], error[name], float(own.min()), float(own.max()))
        shown.add_row(name.replace("_", " "), *(in_words(one) for one in columns))
    PlainConsole().print(shown)


def _error(values: Any) -> float | None:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
