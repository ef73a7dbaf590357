"""From checked rows to a trained deep model."""

import dataclasses
import hashlib
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from bochner.fitting.config import AUTO, Config
from bochner.fitting.deep_fit import DeepFit, key_for
from bochner.fitting.held_out import HeldOutRows, Named
from bochner.fitting.inputs import warn_of_rounding
from bochner.fitting.recipes import frequencies_are_open
from bochner.fitting.resolving import Asked, able_to_go_on
from bochner.fitting.rows import Rows, joined
from bochner.fitting.spec import ModelSpec
from bochner.fitting.task import AbstractTask
from bochner.fitting.validation import DEPTHS, Judged, OwnRows, brief, mnll_of, parts_to_judge
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.prediction.statistics import Posterior
from bochner.rows.effects import learn_effects, with_effects
from bochner.rows.pixels import table_for_batches
from bochner.rows.scaling import BY_COLUMN, PREPROCESSINGS
from bochner.rows.spool import Spool
from bochner.rows.table import Table, TrainingData
from bochner.training import (
    SCHEDULES,
    AbstractCallback,
    Budget,
    HeldOut,
    KLWeight,
    ProgressBar,
    Record,
    Trained,
    train,
)

_N_DRAWS_TO_VALIDATE = 30
_MAX_ROWS_HELD_OUT_OF_STREAM = 20_000
_PATIENCE = 10
_FEW_STEPS = 100


def fit_deep(
    asked: Asked,
    rows: Rows,
    task: AbstractTask,
    *,
    held_out: HeldOutRows = HeldOutRows(),  # noqa: B008
    own_rows: OwnRows | None = None,
    named: Named = Named(),  # noqa: B008
) -> DeepFit:
    """Fit a deep model to checked rows in memory.

    Args:
        asked: the settings, and the call.
        rows: in their own units.
        task: of the targets.
        held_out: by which the best parameters are kept.
        own_rows: what each replicate leaves out for itself.
        named: names for messages.
    """
    started, seconds = _begun(asked, rows, len(rows), task, named)
    fit = dataclasses.replace(started, total_weight=float(rows.weights.sum()))
    return _trained_on(asked, fit, rows, held_out, own_rows, seconds)


def fit_more(asked: Asked, fit: DeepFit, rows: Rows) -> DeepFit:
    """Train a fitted model further, with its scaling and its settings, on further rows."""
    fit = able_to_go_on(fit, asked)
    fit = dataclasses.replace(fit, total_weight=fit.total_weight + float(rows.weights.sum()))
    return _trained_on(asked, fit, rows, HeldOutRows(), None, 0.0)


def go_on(asked: Asked, fit: DeepFit, rows: Rows, *, held_out: HeldOutRows) -> DeepFit:
    """Fit again from where a fitted model is, with the settings that are asked now."""
    fit = _settled_anew(asked, fit, rows, len(rows))
    fit = dataclasses.replace(fit, total_weight=float(rows.weights.sum()))
    return _trained_on(asked, fit, rows, held_out, None, 0.0)


def _settled_anew(asked: Asked, fit: DeepFit, rows: Rows, n_rows: int) -> DeepFit:
    """Give a fitted model the settings that are asked now, if they describe the same model."""
    situation = asked.situation(n_rows, rows.X, fit.task)
    config = asked.resolved(situation, fit.task, n_layers=fit.config.n_layers)
    asked.check_all_at_once(config, n_rows)
    fit = able_to_go_on(fit, asked)
    return dataclasses.replace(fit, config=asked.check_same_model(config, fit.config))


def fit_stream(
    asked: Asked,
    sample: Rows,
    n_rows: int,
    batches: Iterable[Rows],
    task: AbstractTask,
    *,
    given: Rows | None = None,
    named: Named = Named(),  # noqa: B008
    before: DeepFit | None = None,
) -> tuple[DeepFit, Rows | None]:
    """Learn scaling from a sample of the rows, and the model from all of them by way of the disk.

    A fitted model goes on from where it is, with its scaling. Gives the fit, and the rows that were held out of it.
    """
    if before is None:
        fit, seconds = _begun(asked, sample, n_rows, task, named)
    else:
        fit, seconds = _settled_anew(asked, before, sample, n_rows), 0.0
    share = min(fit.config.validation_fraction, _MAX_ROWS_HELD_OUT_OF_STREAM / n_rows)
    generator = np.random.default_rng(fit.config.seed)
    chosen, digest = [] if given is None else [given], hashlib.sha256()
    size = {"d_in": sample.X.shape[1], "n_targets": sample.Y.shape[1]}
    distributed = asked.session.distributed
    where = {} if distributed is None else distributed.spool_options
    with Spool(**size, classes=task.classification, **where) as spool:
        for rows in batches:
            if given is None and share > 0:
                held_out = generator.random(len(rows)) < share
                chosen.append(rows[held_out])
                rows = rows[~held_out]
            scaled = fit.scaled(rows)
            spool.append(scaled.X, scaled.Y, scaled.weights)
            if asked.session.checkpoint is not None:
                digest.update(scaled.digest().encode())
        total = spool.total_weight + sum(part.weights.sum() for part in chosen)
        fit = dataclasses.replace(fit, total_weight=float(total))
        held_out = joined(chosen)
        scaled = fit.scaled(sample)
        return _learned(asked, fit, spool, held_out, scaled, digest.hexdigest(), seconds), held_out


def started(
    asked: Asked, rows: Rows, n_rows: int, task: AbstractTask, named: Named, config: Config
) -> DeepFit:
    """Learn scaling, and start a model of a configuration, which is not trained yet."""
    asked.check_all_at_once(config, n_rows)
    if config.preprocessing in BY_COLUMN:
        warn_of_rounding(rows.X, named.columns)
    target_scaling = task.learn_scaling(rows.Y, config.likelihood, named.target)
    targets = np.asarray(task.scaled(target_scaling, rows.Y), np.float64)
    if task.classification:
        targets = np.equal(rows.Y, np.arange(rows.Y.max() + 1)).astype(np.float64)
    effects = learn_effects(rows.X, named.coded, targets, rows.weights)
    input_scaling = PREPROCESSINGS[config.preprocessing](with_effects(rows.X, effects, np))
    input_scaling = dataclasses.replace(input_scaling, effects=effects)
    spec = ModelSpec(config, rows.X.shape[1], task.n_outputs)
    with asked.session.on_device():
        Y = task.scaled(target_scaling, rows.Y)
        model = spec.start(Y, key=key_for("start", config.seed))
    return DeepFit(config, task, input_scaling, target_scaling, model)


def _begun(
    asked: Asked, rows: Rows, n_rows: int, task: AbstractTask, named: Named
) -> tuple[DeepFit, float]:
    """Settle what is open: by the preset, and by trials on rows held out; give the seconds that these took too."""
    situation = asked.situation(n_rows, rows.X, task)
    begun, scores = time.monotonic(), {}
    n_layers = None
    if asked.deep.n_layers == AUTO:
        configs = {d: asked.resolved(situation, task, n_layers=d) for d in DEPTHS}
        judged = _try_each(asked, rows, task, configs, named)
        scores["depth"] = {depth: -one.mean for depth, one in judged.items()}
        n_layers = min(scores["depth"], key=lambda depth: scores["depth"][depth])
    config = asked.resolved(situation, task, n_layers=n_layers)
    # A training that goes on from a checkpoint must settle the same, however fast the machine is then.
    repeatable = asked.session.checkpoint is None or config.max_seconds is None
    if asked.preset == "auto" and frequencies_are_open(situation) and repeatable:
        wanting_free = dataclasses.replace(situation, free_frequencies=True)
        free = asked.resolved(wanting_free, task, n_layers=n_layers)
        briefly = {one.omega: brief(one) for one in (config, free)}
        judged = _try_each(asked, rows, task, briefly, named)
        scores["frequencies"] = {omega: -one.mean for omega, one in judged.items()}
        if judged[free.omega].clearly_better_than(judged[config.omega]):
            config = free
    fit = started(asked, rows, n_rows, task, named, config)
    return dataclasses.replace(fit, scores=scores), time.monotonic() - begun if scores else 0.0


def _try_each(
    asked: Asked, rows: Rows, task: AbstractTask, configs: dict[Any, Config], named: Named
) -> dict[Any, Judged]:
    """Fit one model of each configuration to most of the rows, and judge it on the others."""
    kept, judged = parts_to_judge(rows)
    found = {}
    for name, config in configs.items():
        trial = asked.with_config(config)
        with warnings.catch_warnings(), trial.session.on_device():
            warnings.simplefilter("ignore")  # what they say of a trial, they will say of the fit
            fit = fit_deep(trial, kept, task, named=named)
            found[name] = Judged(fit.log_density(judged), judged.weights)
    return found


def _trained_on(
    asked: Asked,
    fit: DeepFit,
    rows: Rows,
    held_out: HeldOutRows,
    own_rows: OwnRows | None,
    seconds_tried: float,
) -> DeepFit:
    """Train on rows in memory."""
    kept, judged = held_out.parts(fit.config, rows)
    whole, scaled = fit.scaled(rows), fit.scaled(kept)
    # The bound counts all weight seen, for which the rows of this call stand; held-out rows are not replaced.
    weights = fit.total_weight / rows.weights.sum() * scaled.weights
    with asked.session.on_device():
        # Workers take the columns of a table, and the evidence all its rows, without gathering any.
        gathered = asked.session.distributed is None and fit.config.batch_size < len(scaled)
        gathered = gathered and own_rows is None
        table = (table_for_batches if gathered else Table.of)(scaled.X, scaled.Y, weights)
    digest = whole.digest() if asked.session.checkpoint else ""
    return _learned(asked, fit, table, judged, whole, digest, seconds_tried, own_rows)


def _learned(
    asked: Asked,
    fit: DeepFit,
    data: TrainingData,
    held_out: Rows | None,
    sample: Rows,
    digest: str,
    seconds_tried: float,
    own_rows: OwnRows | None = None,
) -> DeepFit:
    """Train the model on scaled rows, and estimate the bound on a sample of them."""
    config, session = fit.config, asked.session
    fit = dataclasses.replace(fit, trained_weight=data.total_weight)
    if session.distributed is not None:
        session.distributed.check(
            averaging=config.averaging, kl_warmup=config.kl_warmup, precision=config.precision
        )
    with session.on_device(), session.engine() as engine:
        engine.check_same(lambda: f"{config} {data.total_weight} {sample.digest()}")
        callbacks = list(session.callbacks) if engine.is_first else []
        if session.verbose and engine.is_first:
            callbacks.append(ProgressBar(session.label, n_rows=fit.trained_weight))
        judged = None if held_out is None else fit.scaled(held_out)
        fingerprint = {
            **{name: _listed(value) for name, value in dataclasses.asdict(config).items()},
            "data": digest,
            "held_out_rows": None if judged is None else judged.digest(),
        }
        trained = train(
            fit.model,
            data if own_rows is None else own_rows.to_learn_from(data),  # pyright: ignore[reportArgumentType]
            **training_settings(config, _left(config.budget, seconds_tried)),
            held_out=None if judged is None else _judge(fit, data, judged),
            callbacks=[_InOwnUnits(one, fit.in_own_units, fit.n_steps) for one in callbacks],
            checkpoints=session.checkpoints(fingerprint, engine),
            engine=engine,
            key=jax.random.fold_in(fit.key("train"), fit.n_steps),
        )
        if engine.is_first:
            session.tell(
                f"{session.label}: trained for {trained.n_steps:,} steps; settling what it predicts."
            )
        fit = dataclasses.replace(fit, distribution=engine.report)
        return with_result(fit, data, trained, sample, own_rows)


def with_result(
    fit: DeepFit,
    data: TrainingData,
    trained: Trained,
    sample: Rows,
    own_rows: OwnRows | None = None,
) -> DeepFit:
    """Put a trained model in its place, as it predicts, with its history and its bound."""
    _warn_of_too_few_steps(fit.config, trained.n_steps)
    key, spec = fit.key("condition"), fit.spec
    records = (fit.in_own_units(record, fit.n_steps) for record in trained.history)
    history = (*fit.history, *(dataclasses.asdict(record) for record in records))
    fit = dataclasses.replace(fit, history=history, n_steps=fit.n_steps + trained.n_steps)
    if own_rows is None:
        model = spec.conditioned(data, trained.model, key=key)
        fit = dataclasses.replace(fit, model=model)
        # The bound is that of the posterior, which calibration leaves.
        fit = dataclasses.replace(fit, elbo=fit.bound(sample))
        return dataclasses.replace(fit, model=spec.calibrated(data, model))
    members = ready_members(fit, data, trained.model, own_rows)
    fit = dataclasses.replace(fit, model=_joined_members(members))
    return dataclasses.replace(fit, elbo=fit.bound(sample))


def ready_members(
    fit: DeepFit, data: TrainingData, model: DeepGP | Members, own_rows: OwnRows
) -> list[DeepGP | Members]:
    """Give each replicate as it predicts alone, from the rows that it has not left out."""
    assert isinstance(data, Table)
    each = zip(model.each(), own_rows.tables(data), strict=True)
    key = fit.key("condition")
    return [fit.spec.ready(table, member, key=key) for member, table in each]


def _joined_members(models: list[DeepGP | Members]) -> Members:
    each = [member for model in models for member in model.each()]
    return Members.of(each)


def training_settings(config: Config, budget: Budget | None = None) -> dict[str, Any]:
    """What the configuration says to `train`; a part of the training has a budget of its own."""
    return {
        "plan": config.plan,
        "budget": budget or config.budget,
        "batch_size": config.batch_size,
        "learning_rate": config.learning_rate,
        "schedule": SCHEDULES[config.schedule],
        "objective": config.maximized,
        "reparameterization": config.reparameterization,
        "kl_weight": KLWeight(config.kl_weight, config.kl_warmup),
        "averaging": config.averaging,
    }


def _judge(fit: DeepFit, data: TrainingData, rows: Rows) -> HeldOut:
    def mnll(model: DeepGP | Members) -> float:
        ready = fit.spec.ready(data, model, key=fit.key("condition"))
        key = fit.key("validate")
        return mnll_of(Posterior.draw(ready, n_draws=_N_DRAWS_TO_VALIDATE, key=key), rows)

    return HeldOut(mnll, patience=_PATIENCE)


def _warn_of_too_few_steps(config: Config, n_steps: int) -> None:
    if isinstance(config.theta_from, int) and n_steps <= config.theta_from > 0:
        warnings.warn(
            f"training ended after {n_steps:,} steps, before theta_from={config.theta_from:,}: lengthscales, "
            "variances and noise stayed at their initial values. Train longer, or lower `theta_from`.",
            UserWarning,
            stacklevel=5,
        )
    if config.max_seconds is not None and n_steps < _FEW_STEPS:
        warnings.warn(
            f"only {n_steps} training steps fitted into max_seconds={config.max_seconds:g}, most of which went to "
            "compilation: the model is hardly trained. Raise `max_seconds`.",
            UserWarning,
            stacklevel=5,
        )


@dataclasses.dataclass(frozen=True)
class _InOwnUnits:
    """A callback that is told of records in the targets' units."""

    callback: AbstractCallback
    convert: Callable[[Record, int], Record]
    n_past: int

    def on_record(self, record: Record) -> None:
        self.callback.on_record(self.convert(record, self.n_past))

    def on_end(self) -> None:
        self.callback.on_end()


def _left(budget: Budget, seconds_tried: float) -> Budget:
    """Take from a budget the time that trials took, up to a half of it."""
    if budget.max_seconds is None:
        return budget
    left = max(budget.max_seconds - seconds_tried, 0.5 * budget.max_seconds)
    return Budget(budget.max_steps, left)


def _listed(value: Any) -> Any:
    """Give tuples as lists, which is how they come back from JSON."""
    return list(value) if isinstance(value, tuple) else value
