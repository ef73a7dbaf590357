"""`bochner fit`: from a table to a model file."""

import shlex
import sys
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from bochner.cli.common import AsJson, Quiet, TablePath, command, note, show
from bochner.cli.deep_flags import with_deep_flags
from bochner.cli.distribution import AskedDistribution
from bochner.cli.fit_flags import (
    LONG_WORK,
    SEVERAL,
    ClassWeight,
    Config,
    DateFormat,
    Decimal,
    Device,
    Encoding,
    Folds,
    Groups,
    HelpAll,
    Ignore,
    Likelihood,
    MaxSeconds,
    Members,
    MissingWords,
    ModelToWrite,
    Preset,
    SeedOfFit,
    Separator,
    Target,
    Task,
    Thousands,
    Time,
    Validation,
    further,
)  # fmt: skip
from bochner.cli.output import Inputs, Output, check_folder
from bochner.cli.settings import OPTIONS, flags, settings_from
from bochner.cli.tasks import find_task


@with_deep_flags
@command
def fit(
    context: typer.Context,
    table: TablePath,
    target: Target = None,
    model: ModelToWrite = None,
    task: Task = None,
    ignore: Ignore = None,
    groups: Groups = None,
    time: Time = None,
    folds: Folds = None,
    members: Members = None,
    max_seconds: MaxSeconds = None,
    config: Config = None,
    seed: SeedOfFit = None,
    validation: Validation = None,
    sep: Separator = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    date_format: DateFormat = None,
    na: MissingWords = None,
    preset: Preset = None,
    likelihood: Likelihood = None,
    class_weight: ClassWeight = None,
    device: Device = None,
    checkpoint: Annotated[
        Path | None,
        further(metavar="DIR", help="Folder for checkpoints.", rich_help_panel=LONG_WORK),
    ] = None,
    checkpoint_seconds: Annotated[
        float | None,
        further(help="Time between them.  \\[default: 60]", rich_help_panel=LONG_WORK),
    ] = None,
    resume: Annotated[
        bool, further("--resume", help="Go on from the newest one.", rich_help_panel=LONG_WORK)
    ] = False,
    tensorboard: Annotated[
        Path | None,
        further(metavar="DIR", help="Log for TensorBoard.", rich_help_panel=LONG_WORK),
    ] = None,
    devices: Annotated[
        str | None,
        further(help="Devices in step: a number, or all.", rich_help_panel=SEVERAL),
    ] = None,
    coordinator: Annotated[
        str | None,
        further(metavar="HOST:PORT", help="Where process 0 listens.", rich_help_panel=SEVERAL),
    ] = None,
    processes: Annotated[
        int | None, further(min=1, help="Processes in step.", rich_help_panel=SEVERAL)
    ] = None,
    process_id: Annotated[
        int | None, further(min=0, help="Which one this is.", rich_help_panel=SEVERAL)
    ] = None,
    workers: Annotated[
        int | None, further(min=1, help="Asynchronous workers.", rich_help_panel=SEVERAL)
    ] = None,
    mode: Annotated[
        str | None, further(help="sync or async.  \\[default: sync]", rich_help_panel=SEVERAL)
    ] = None,
    address: Annotated[
        str | None,
        further(
            metavar="RAY", help="Running Ray cluster for async workers.", rich_help_panel=SEVERAL
        ),
    ] = None,
    shared_folder: Annotated[
        Path | None,
        further(
            metavar="DIR",
            help="Folder that all workers see, for large tables.",
            rich_help_panel=SEVERAL,
        ),
    ] = None,
    shards: Annotated[
        int | None,
        further(min=1, help="Processes that share the parameters.", rich_help_panel=SEVERAL),
    ] = None,
    max_staleness: Annotated[
        int | None,
        further(min=0, help="Refuse staler gradients.", rich_help_panel=SEVERAL),
    ] = None,
    scale_by_staleness: Annotated[
        bool | None,
        further(
            "--scale-by-staleness",
            help="Smaller steps for stale gradients; for three workers and more.",
            rich_help_panel=SEVERAL,
        ),
    ] = None,
    gpus_a_worker: Annotated[
        float | None, further(min=0, help="GPUs of each worker.", rich_help_panel=SEVERAL)
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    help_all: HelpAll = False,
    **deep_settings: Any,
) -> None:
    """Learn to predict a column of TABLE from the others, and write the model to a file.

    Text, categories, booleans, dates and missing values are encoded; what is not set is chosen from the size of the
    table. Types of columns and the task are found in the data. A setting of the deep model asks for that alone.
    """
    asked_for = AskedDistribution(
        devices, coordinator, processes, process_id, workers, mode, address, shared_folder,
        shards, max_staleness, scale_by_staleness, gpus_a_worker,
    )  # fmt: skip
    distributed = asked_for.distribution()
    # One of several processes speaks for all.
    silent = not asked_for.is_first
    quiet = quiet or silent
    asked = settings_from(config, flags(context))
    # What goes on the way belongs to the call; what is left is the estimator's.
    column, out = asked.required("target"), asked.required("model")
    asked_task, ignored = asked.taken("task", "auto"), asked.taken("ignore", [])
    held_out, logs = asked.taken("validation", None), asked.taken("tensorboard", None)
    group_column, time_column = asked.taken("groups", None), asked.taken("time", None)
    written = {name: asked.values.pop(name) for name in OPTIONS if name in asked.values}
    asked.values.setdefault("seed", 0)
    inputs = {"TABLE": table, "--validation": held_out, "--config": config}
    folders = {"--checkpoint": asked.values.get("checkpoint"), "--tensorboard": logs}
    place = None if silent else _outputs(out, folders, inputs)
    started = monotonic()
    from bochner.cli.standings import in_a_line, show_members, standings
    from bochner.estimators.files import to_parts
    from bochner.fitting.storing import check_storable
    from bochner.system.saving import format_arrays
    from bochner.tables.source import open_table

    check_storable(asked.values)
    source = open_table(table, **written)
    found_task = find_task(source, column, asked_task, quiet)
    if folds is not None and folds > (source.n_rows or folds):
        raise ValueError(
            f"--folds must be at most the {source.n_rows} rows of {source.name}; got {folds}."
        )
    estimator = asked.estimator(found_task)
    estimator.set_params(verbose=0 if quiet else 1, resume=resume, distributed=distributed)
    if logs is not None:
        from bochner.training.tensorboard import TensorBoardLogger

        estimator.set_params(callbacks=[TensorBoardLogger(logs)])
    try:
        estimator.fit(
            source,
            column,
            groups=group_column,
            time=time_column,
            validation=held_out,
            ignore=ignored,
        )
    except Exception as error:
        _say_how_to_resume(error)
        raise
    if folds is not None:
        estimator.cross_fit(source, column, folds)
    if place is None:
        return
    note(f"Writing {place.path}.", quiet or place.is_standard_output)
    place.write_or_rescue(format_arrays(*to_parts(estimator)))
    fitted = estimator.fitted_
    summary: dict[str, Any] = {
        "model": str(out),
        "task": found_task,
        "target": column,
        "rows": source.n_rows,
        "inputs": len(fitted.encoder.input_names),
        "encoded_inputs": fitted.d_in,
        "seconds": monotonic() - started,
        **(standings(fitted) if as_json else in_a_line(fitted)),
    }
    deep = fitted.deep
    if deep is not None:
        summary |= {"steps": deep.n_steps, "bound_per_row": deep.elbo / deep.total_weight}
        summary |= {name: v for name, v in deep.distribution.items() if name != "seconds"}
    if held_out is not None:
        measured = estimator.evaluate(held_out, column)
        summary |= {f"validation_{name}": value for name, value in measured.items()}
    if as_json:
        summary["config"] = None if deep is None else estimator.config_
    if not place.is_standard_output:
        show(summary, as_json=as_json, quiet=quiet)
        if not (as_json or quiet):
            show_members(fitted)


def _outputs(model: str | Path, folders: Inputs, inputs: Inputs) -> Output:
    """Give the place of the model, after a look at all that will be written: at the end it would be too late."""
    checkpoint = folders["--checkpoint"]
    files = [] if checkpoint is None else Path(checkpoint).glob("step-*.checkpoint")
    states = {f"the checkpoint {file.name}": file for file in files}
    place = Output("--model", model, {**inputs, **states})
    for option, folder in folders.items():
        if folder is not None:
            check_folder(option, folder, {**inputs, "--model": model})
    return place


def _say_how_to_resume(error: Exception) -> None:
    from bochner.training import TrainingStoppedError

    if isinstance(error, TrainingStoppedError):
        words = [*sys.argv[1:], *([] if "--resume" in sys.argv else ["--resume"])]
        note(f"To go on:  bochner {shlex.join(words)}", quiet=False)
