"""`bochner fit`: from a table to a model file."""

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from bochner.cli.common import AsJson, Quiet, TablePath, command, note, show, use_compilation_cache
from bochner.cli.distribution import AskedDistribution
from bochner.cli.output import Inputs, Output, check_folder
from bochner.cli.settings import flags, settings_from

_MODEL, _TRAINING, _LONG = "The model", "The training", "Long work"
_SEVERAL = "Several devices, processes or hosts"


@command
def fit(
    context: typer.Context,
    table: TablePath,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column to predict.")] = None,
    model: Annotated[Path | None, typer.Option(metavar="OUT", help="Model file to write.")] = None,
    task: Annotated[
        str | None, typer.Option(help="auto, regression or classification.  [default: auto]")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column not to learn from; repeat.")
    ] = None,
    validation: Annotated[
        str | None, typer.Option(metavar="FILE", help="Table by which the best model is kept.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Settings; flags override them.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed.  [default: 0]")] = None,
    preset: Annotated[
        str | None, typer.Option(help="auto, paper or paper-mnist.", rich_help_panel=_MODEL)
    ] = None,
    n_layers: Annotated[
        str | None,
        typer.Option(help="Layers of Gaussian processes, or auto.", rich_help_panel=_MODEL),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(help="GPs in each hidden layer, such as 10 or 10,5.", rich_help_panel=_MODEL),
    ] = None,
    n_random_features: Annotated[
        str | None, typer.Option(help="Frequencies of each layer.", rich_help_panel=_MODEL)
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="rbf, arccos0, arccos1, arccos2, matern12, matern32 or matern52.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    ard: Annotated[
        bool | None,
        typer.Option(
            "--ard/--no-ard", help="A lengthscale for each input.", rich_help_panel=_MODEL
        ),
    ] = None,
    frequencies: Annotated[
        str | None, typer.Option(help="independent, orthogonal or sparse.", rich_help_panel=_MODEL)
    ] = None,
    omega: Annotated[
        str | None,
        typer.Option(help="prior-fixed, var-fixed or var-resampled.", rich_help_panel=_MODEL),
    ] = None,
    feed_inputs: Annotated[
        bool | None,
        typer.Option(
            "--feed-inputs/--no-feed-inputs",
            help="Feed the inputs to each layer.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    residual: Annotated[
        bool | None,
        typer.Option(
            "--residual/--no-residual",
            help="Add its inputs to the outputs of each hidden layer.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    n_members: Annotated[
        int | None,
        typer.Option(
            help="Models trained together that predict as one mixture.", rich_help_panel=_MODEL
        ),
    ] = None,
    theta: Annotated[
        str | None,
        typer.Option(help="free, prior or variational kernel parameters.", rich_help_panel=_MODEL),
    ] = None,
    theta_deviation: Annotated[
        float | None,
        typer.Option(help="Deviation of their prior.", rich_help_panel=_MODEL),
    ] = None,
    likelihood: Annotated[
        str | None,
        typer.Option(
            help="gaussian, heteroscedastic, student-t or poisson; softmax or bernoulli.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    class_weight: Annotated[
        str | None, typer.Option(help="balanced, for classification.", rich_help_panel=_MODEL)
    ] = None,
    preprocessing: Annotated[
        str | None,
        typer.Option(help="robust, compressed, standard, unit or none.", rich_help_panel=_MODEL),
    ] = None,
    lengthscale_factor: Annotated[
        float | None, typer.Option(help="Initial lengthscale.", rich_help_panel=_MODEL)
    ] = None,
    initial_log_var: Annotated[
        float | None,
        typer.Option(help="Initial log variance of the weights.", rich_help_panel=_MODEL),
    ] = None,
    noise_variance: Annotated[
        float | None, typer.Option(help="Initial noise variance.", rich_help_panel=_MODEL)
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="elbo, predictive or evidence.", rich_help_panel=_TRAINING),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            help="Widths of predictions: left-out (with evidence) or none.",
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    kl_weight: Annotated[
        float | None,
        typer.Option(help="What the KL counts; 1 is the bound.", rich_help_panel=_TRAINING),
    ] = None,
    kl_warmup: Annotated[
        float | None,
        typer.Option(
            help="Share of the training over which that rises from 0.", rich_help_panel=_TRAINING
        ),
    ] = None,
    averaging: Annotated[
        float | None,
        typer.Option(
            help="Share of an average of the parameters that a step keeps, such as 0.999.",
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Training steps.", rich_help_panel=_TRAINING)
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(help="Training time, compilation included.", rich_help_panel=_TRAINING),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Rows a step.", rich_help_panel=_TRAINING)
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Learning rate of Adam.", rich_help_panel=_TRAINING)
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="constant or cosine.", rich_help_panel=_TRAINING)
    ] = None,
    n_mc_train: Annotated[
        str | None,
        typer.Option(
            help="Samples a step; two, such as 1,100, before and after half.",
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    n_mc_predict: Annotated[
        int | None, typer.Option(help="Functions drawn to predict.", rich_help_panel=_TRAINING)
    ] = None,
    local_reparameterization: Annotated[
        bool | None,
        typer.Option(
            "--local-reparameterization/--no-local-reparameterization",
            help="Draw outputs instead of weights.",
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    gradients: Annotated[
        str | None,
        typer.Option(
            help="exact, or clipped on their way back through many layers.",
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="Products on a GPU: float32, tf32x3, tf32, bfloat16.", rich_help_panel=_TRAINING
        ),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option(help="Share of rows held out.", rich_help_panel=_TRAINING),
    ] = None,
    theta_from: Annotated[
        str | None,
        typer.Option(
            help="When kernel parameters are learned: a step, a fraction, or never.",
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    omega_from: Annotated[
        str | None,
        typer.Option(help="The same for the frequencies.", rich_help_panel=_TRAINING),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, gpu or gpu:1.", rich_help_panel=_TRAINING)
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for checkpoints.", rich_help_panel=_LONG),
    ] = None,
    checkpoint_seconds: Annotated[
        float | None,
        typer.Option(help="Time between them.  [default: 60]", rich_help_panel=_LONG),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest one.", rich_help_panel=_LONG)
    ] = False,
    tensorboard: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Log for TensorBoard.", rich_help_panel=_LONG),
    ] = None,
    devices: Annotated[
        str | None,
        typer.Option(help="Devices in step: a number, or all.", rich_help_panel=_SEVERAL),
    ] = None,
    coordinator: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Where process 0 listens.", rich_help_panel=_SEVERAL
        ),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes in step.", rich_help_panel=_SEVERAL)
    ] = None,
    process_id: Annotated[
        int | None, typer.Option(min=0, help="Which one this is.", rich_help_panel=_SEVERAL)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Asynchronous workers.", rich_help_panel=_SEVERAL)
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="sync or async.  [default: sync]", rich_help_panel=_SEVERAL)
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="RAY", help="Running Ray cluster for async workers.", rich_help_panel=_SEVERAL
        ),
    ] = None,
    shared_folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder that all workers see, for large tables.",
            rich_help_panel=_SEVERAL,
        ),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that share the parameters.", rich_help_panel=_SEVERAL),
    ] = None,
    max_staleness: Annotated[
        int | None,
        typer.Option(min=0, help="Refuse staler gradients.", rich_help_panel=_SEVERAL),
    ] = None,
    scale_by_staleness: Annotated[
        bool | None,
        typer.Option(
            "--scale-by-staleness",
            help="Smaller steps for stale gradients; for three workers and more.",
            rich_help_panel=_SEVERAL,
        ),
    ] = None,
    gpus_a_worker: Annotated[
        float | None, typer.Option(min=0, help="GPUs of each worker.", rich_help_panel=_SEVERAL)
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn to predict a column of TABLE from the others, and write the model to a file.

    Text, categories, booleans, dates and missing values are encoded; what is not set is chosen from the size of the
    table. Types of columns and the task are found in the data.
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
    asked.values.setdefault("seed", 0)
    inputs = {"TABLE": table, "--validation": held_out, "--config": config}
    folders = {"--checkpoint": asked.values.get("checkpoint"), "--tensorboard": logs}
    place = None if silent else _outputs(out, folders, inputs)
    started = time.monotonic()
    use_compilation_cache()
    from bochner.estimators.files import check_storable, to_parts
    from bochner.system.saving import format_arrays
    from bochner.tables.source import open_table

    check_storable(asked.values)
    source = open_table(table)
    found_task = _find_task(source, column, asked_task, quiet)
    estimator = asked.estimator(found_task)
    estimator.set_params(verbose=0 if quiet else 1, resume=resume, distributed=distributed)
    if logs is not None:
        from bochner.training.tensorboard import TensorBoardLogger

        estimator.set_params(callbacks=[TensorBoardLogger(logs)])
    try:
        estimator.fit(source, column, validation=held_out, ignore=ignored)
    except Exception as error:
        _say_how_to_resume(error)
        raise
    if place is None:
        return
    place.write_or_rescue(format_arrays(*to_parts(estimator)))
    summary = {
        "model": str(out),
        "task": found_task,
        "target": column,
        "rows": source.n_rows,
        "inputs": len(estimator._encoder.input_names),
        "encoded_inputs": estimator.n_features_in_,
        "steps": estimator.n_steps_,
        "bound_per_row": estimator.elbo_ / estimator.total_weight_,
        "seconds": time.monotonic() - started,
    }
    summary |= {name: value for name, value in estimator.distribution_.items() if name != "seconds"}
    if held_out is not None:
        measured = estimator.evaluate(held_out, column)
        summary |= {f"validation_{name}": value for name, value in measured.items()}
    if as_json:
        summary["config"] = estimator.config_
    if not place.is_standard_output:
        show(summary, as_json=as_json, quiet=quiet)


def _find_task(source: Any, target: str, task: str, quiet: bool) -> str:
    from bochner.estimators.config import check_choice
    from bochner.estimators.sources import task_of

    check_choice("task", task, ["auto", "regression", "classification"])
    if task != "auto":
        return task
    found, reason = task_of(source, target)
    other = "regression" if found == "classification" else "classification"
    note(f"Task: {found} (of the target: {reason}); --task {other} overrides.", quiet)
    return found


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
