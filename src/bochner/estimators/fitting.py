"""From checked rows to a trained model."""

import contextlib
import dataclasses
import hashlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np

from bochner.estimators.comparing import Comparing
from bochner.estimators.config import AUTO, Config
from bochner.estimators.inputs import check_no_weights, warn_of_rounding
from bochner.estimators.judging import (
    DEPTHS,
    Judged,
    OwnRows,
    brief,
    mnll_of,
    try_each,
)
from bochner.estimators.recipes import Situation, frequencies_are_open
from bochner.estimators.rows import Rows, joined
from bochner.estimators.sources import TrainingSource, is_source
from bochner.gp.members import Members, start_members
from bochner.gp.model import DeepGP
from bochner.inference.calibration import calibrate
from bochner.inference.conditioning import condition_last_layer
from bochner.inference.objectives import OBJECTIVES
from bochner.prediction.statistics import ExpectedLogLikelihood, Posterior
from bochner.rows.pixels import table_for_batches
from bochner.rows.scaling import BY_COLUMN, PREPROCESSINGS
from bochner.rows.spool import Spool
from bochner.rows.table import Table, TrainingData
from bochner.tables.encoding import Encoder
from bochner.training import (
    SCHEDULES,
    AbstractCallback,
    AbstractEngine,
    Budget,
    Checkpoints,
    HeldOut,
    KLWeight,
    ProgressBar,
    Record,
    Trained,
    train,
)

_MIN_ROWS_TO_VALIDATE = 200
_N_DRAWS_TO_VALIDATE = 30
_MAX_ROWS_FOR_BOUND = 10_000
_MAX_ROWS_HELD_OUT_OF_STREAM = 20_000
_PATIENCE = 10
_FEW_STEPS = 100
_PARTS_OF_REHEARSAL = 4
_TIME_TO_REHEARSE = 0.4  # compilation included, which the training then needs no more


@contextlib.contextmanager
def restored_on_failure(*estimators: Any) -> Iterator[None]:
    """Leave estimators as they were where a fit of them fails."""
    before = [dict(vars(estimator)) for estimator in estimators]
    try:
        yield
    except BaseException:
        for estimator, state in zip(estimators, before, strict=True):
            vars(estimator).clear()
            vars(estimator).update(state)
        raise


def training_settings(config: Config, budget: Budget | None = None) -> dict[str, Any]:
    """What the configuration says to `train`; a part of the training has a budget of its own."""
    return {
        "plan": config.plan,
        "budget": budget or config.budget,
        "batch_size": config.batch_size,
        "learning_rate": config.learning_rate,
        "schedule": SCHEDULES[config.schedule],
        "objective": OBJECTIVES[config.objective](),
        "reparameterization": config.reparameterization,
        "kl_weight": KLWeight(config.kl_weight, config.kl_warmup),
        "averaging": config.averaging,
    }


class Fitting(Comparing):
    """The way from data to a trained model: scaling, start, training, history, bound."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation: Any = None,
        ignore: Sequence[str] = (),
    ) -> Self:
        """Learn from rows of X and their targets or classes y.

        Args:
            X: numbers, rows by columns; a NumPy array, or a pandas or polars frame. Or a table of columns of any type:
                the path of a CSV, Parquet or NumPy file of any size, a PyArrow dataset or table, or a frame, with
                the name of the target's column as y.
            y: targets in their own units (one column or several), or classes as numbers or text, or the name of their
                column in the table X.
            sample_weight: how often each row counts.
            validation: `(X, y)`, or a table, by which the best parameters are kept.
            ignore: columns of the table not to learn from.
        """
        with restored_on_failure(self):
            if isinstance(y, str):
                check_no_weights(sample_weight)
                self._fit_source(X, y, validation, ignore)
            else:
                if not self._goes_on():
                    self._encoder = self._target_name = None
                self._fit(self._rows_to_fit(X, y, sample_weight), validation)
        return self

    def _fit(self, rows: Rows, validation: Any = None, *, more_to_come: bool = False) -> None:
        """Learn scaling and model from checked rows in memory."""
        config = self._begin(rows, self._situation(len(rows), rows.X, more_to_come=more_to_come))
        self.total_weight_ = float(rows.weights.sum())
        self._train(config, rows, validation, more_to_come=more_to_come)

    def _fit_source(self, source: Any, target: str, validation: Any, ignore: Sequence[str]) -> None:
        """Learn from a table of named columns: encode them, and hold the rows in memory or stream them by size."""
        if self._goes_on() and target != self._target_name:
            raise ValueError(
                f"`warm_start` goes on with the target {self._target_name!r}; got {target!r}."
            )
        found = TrainingSource.open(source, target, ignore, classification=self._classification)
        if not self._goes_on():
            self._encoder = Encoder.learn(found.sample.select(found.inputs))
            self._target_name = target
        encoder = self._encoder
        assert encoder is not None  # as the name of the target is known
        batches = found.encoded_batches(encoder, classification=self._classification)
        if found.fits_in_memory(encoder):
            X, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
            self._fit(self._rows_to_fit(X, y, None), validation)
            return
        if hasattr(self, "feature_names_in_"):
            delattr(self, "feature_names_in_")
        self._see_targets(found)
        X, y = encoder(found.sample), found.sample_targets(classification=self._classification)
        rows = (self._streamed(X, y) for X, y in batches)
        self._fit_stream(self._streamed(X, y), found.n_rows, rows, validation)

    def _fit_stream(
        self, sample: Rows, n_rows: int, batches: Iterable[Rows], validation: Any
    ) -> None:
        """Learn scaling from a sample of the rows, and the model from all of them by way of the disk."""
        self.n_features_in_ = sample.X.shape[1]
        config = self._begin(sample, self._situation(n_rows, sample.X))
        sample = self._scaled(sample)
        given = None if validation is None else self._validation_rows(validation)
        share = min(config.validation_fraction, _MAX_ROWS_HELD_OUT_OF_STREAM / n_rows)
        generator = np.random.default_rng(config.seed)
        chosen, digest = [] if given is None else [given], hashlib.sha256()
        size = {"d_in": self.n_features_in_, "n_targets": sample.Y.shape[1]}
        where = {} if self.distributed is None else self.distributed.spool_options
        with Spool(**size, classes=self._classification, **where) as spool:
            for batch in batches:
                rows = self._scaled(batch)
                if given is None and share > 0:
                    held_out = generator.random(len(rows)) < share
                    chosen.append(rows[held_out])
                    rows = rows[~held_out]
                spool.append(rows.X, rows.Y, rows.weights)
                if self.checkpoint is not None:
                    digest.update(rows.digest().encode())
            self.total_weight_ = spool.total_weight + sum(part.weights.sum() for part in chosen)
            held_out = joined(chosen)
            self._learn(config, spool, held_out, sample, digest.hexdigest())
        with self._on_device():
            # The sample may hold a few of the rows held out, of so many that they teach a simple model nothing.
            self._compare(config, sample, held_out)

    def _begin(self, rows: Rows, situation: Situation) -> Config:
        """Settle the configuration, and learn scaling and a new model from rows, unless `fit` goes on from one."""
        self._seconds_tried = 0.0
        if self._goes_on():
            self._take_back()
            config = self._resolve(situation, n_layers=self.config_["n_layers"])
            self._check_all_at_once(config, situation.n_rows)
            self._let_it_go_on()
            config = self._check_same_model(config)
            self.config_ = dataclasses.asdict(config)
            return config
        for name in ("depth_scores_", "frequency_scores_", "judged_"):
            vars(self).pop(name, None)
        config = self._settled(rows, situation)
        self._check_all_at_once(config, situation.n_rows)
        self.config_ = dataclasses.asdict(config)
        self._input_scaling = PREPROCESSINGS[config.preprocessing](rows.X)
        if config.preprocessing in BY_COLUMN:
            warn_of_rounding(rows.X, self._column_names())
        self._target_scaling = self._learn_targets(rows.Y, config)
        self.model_ = self._start_model(config, rows.X.shape[1], rows.Y)
        self.history_ = []
        return config

    def _settled(self, rows: Rows, situation: Situation) -> Config:
        """Settle what is open: by the preset, and by trials on rows held out of them."""
        n_layers = None
        if self.n_layers == AUTO:
            configs = {depth: self._resolve(situation, n_layers=depth) for depth in DEPTHS}
            judged = try_each(self, rows, configs)
            self.depth_scores_ = {depth: -one.mean for depth, one in judged.items()}
            n_layers = min(self.depth_scores_, key=lambda depth: self.depth_scores_[depth])
        config = self._resolve(situation, n_layers=n_layers)
        # A training that goes on from a checkpoint must settle the same, however fast the machine is then.
        repeatable = self.checkpoint is None or config.max_seconds is None
        if self.preset != "auto" or not frequencies_are_open(situation) or not repeatable:
            return config
        started = time.monotonic()
        wanting_free = dataclasses.replace(situation, free_frequencies=True)
        configs = {
            one.omega: one for one in (config, self._resolve(wanting_free, n_layers=n_layers))
        }
        judged = try_each(self, rows, {omega: brief(one) for omega, one in configs.items()})
        self.frequency_scores_ = {omega: -one.mean for omega, one in judged.items()}
        self._seconds_tried = time.monotonic() - started
        free_ones_win = judged["var-fixed"].clearly_better_than(judged["prior-fixed"])
        return configs["var-fixed" if free_ones_win else "prior-fixed"]

    def _start_model(self, config: Config, d_in: int, Y: np.ndarray) -> DeepGP | Members:
        likelihood = self._likelihoods[config.likelihood]
        d_out = likelihood.n_functions(self._n_targets(Y))

        def start(key: jax.Array) -> DeepGP:
            return DeepGP.start(
                config.layer_settings(d_in, d_out),
                likelihood.from_targets(self._target_scaling(Y), config.noise_variance),
                d_in=d_in,
                feed_inputs=config.feed_inputs,
                key=key,
            )

        with self._on_device():
            return start_members(start, config.n_members, key=self._key("start"))

    def _train(
        self, config: Config, rows: Rows, validation: Any = None, *, more_to_come: bool
    ) -> None:
        rows = self._scaled(rows)
        if validation is None:
            kept, held_out = self._split(config, rows)
        else:
            kept, held_out = rows, self._validation_rows(validation)
        own_rows = None
        if held_out is None and not more_to_come:
            own_rows = self._own_rows(config, kept)
        # The bound counts all weight seen, for which the rows of this call stand; held-out rows are not replaced.
        weights = self.total_weight_ / rows.weights.sum() * kept.weights
        with self._on_device():
            # Workers take the columns of a table, and the evidence all its rows, without gathering any.
            gathered = self.distributed is None and config.batch_size < len(kept.X)
            gathered = gathered and own_rows is None
            table = (table_for_batches if gathered else Table.of)(kept.X, kept.Y, weights)
        digest = rows.digest() if self.checkpoint else ""
        judged = None
        if own_rows is not None:
            judged = self._rehearse(config, table, kept, own_rows)  # pyright: ignore[reportArgumentType]
        self._learn(config, table, held_out, rows, digest, own_rows)
        with self._on_device():
            self._compare(config, kept, held_out, judged, may_replace=not more_to_come)

    def _rehearse(
        self, config: Config, table: Table, rows: Rows, own_rows: OwnRows
    ) -> dict[str, Judged]:
        """Train briefly while members leave rows out, and judge them on those."""
        started = time.monotonic()
        with self._on_device():
            trained = train(
                self.model_,
                own_rows.to_learn_from(table),
                **training_settings(config, _of_rehearsal(config.budget)),
                key=self._key("rehearse"),
            )
            judged = self._judged_by_members(config, rows, own_rows, table, trained.model)
        self._seconds_tried += time.monotonic() - started
        return judged

    def _learn(
        self,
        config: Config,
        data: TrainingData,
        held_out: Rows | None,
        sample: Rows,
        digest: str,
        own_rows: OwnRows | None = None,
    ) -> None:
        """Train the model on scaled rows, and estimate the bound on a sample of them."""
        n_past = self.history_[-1]["step"] if self.history_ else 0
        self.trained_weight_ = data.total_weight
        if self.distributed is not None:
            self.distributed.check(
                averaging=config.averaging,
                kl_warmup=config.kl_warmup,
                precision=config.precision,
            )
        # All rows come back, in the form for which the program is compiled.
        learned_from = data if own_rows is None else own_rows.all_in(data)  # pyright: ignore[reportArgumentType]
        with self._on_device(), self._engine() as engine:
            engine.check_same(lambda: f"{config} {data.total_weight} {sample.digest()}")
            callbacks = list(self.callbacks or []) if engine.is_first else []
            if self.verbose and engine.is_first:
                callbacks.append(ProgressBar(type(self).__name__, n_rows=self.trained_weight_))
            trained = train(
                self.model_,
                learned_from,
                **training_settings(config, _left(config.budget, self._seconds_tried)),
                held_out=self._judge(config, data, held_out),
                callbacks=[_InOwnUnits(one, self._in_own_units, n_past) for one in callbacks],
                checkpoints=self._checkpoints(config, digest, held_out, engine),
                engine=engine,
                key=jax.random.fold_in(self._key("train"), n_past),
            )
            self.distribution_ = engine.report
            self._keep(config, data, trained, sample)

    def _keep(self, config: Config, data: TrainingData, trained: Trained, sample: Rows) -> None:
        """Make a trained model the estimator's own, with its history and its bound."""
        n_past = self.history_[-1]["step"] if self.history_ else 0
        self.model_ = self._conditioned(config, data, trained.model)
        self._warn_of_too_few_steps(config, trained.n_steps)
        self.n_steps_ = n_past + trained.n_steps
        self.history_ = self.history_ + [
            dataclasses.asdict(self._in_own_units(record, n_past)) for record in trained.history
        ]
        self.elbo_ = self._bound(sample)  # of the posterior, which calibration leaves
        self.model_ = self._calibrated(config, data, self.model_)

    def _checkpoints(
        self, config: Config, digest: str, held_out: Rows | None, engine: AbstractEngine
    ) -> Checkpoints | None:
        if self.checkpoint is None:
            return None
        folder = self.checkpoint
        fingerprint = {
            **{name: _listed(value) for name, value in dataclasses.asdict(config).items()},
            "data": digest,
            "held_out_rows": None if held_out is None else held_out.digest(),
        }
        return engine.checkpoints(
            lambda: Checkpoints(
                folder, fingerprint, resume=self.resume, seconds_between=self.checkpoint_seconds
            )
        )

    def _warn_of_too_few_steps(self, config: Config, n_steps: int) -> None:
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

    def _split(self, config: Config, rows: Rows) -> tuple[Rows, Rows | None]:
        """Choose the rows to train on and those held out; none are below 200 rows."""
        n_held_out = round(config.validation_fraction * len(rows))
        if len(rows) < _MIN_ROWS_TO_VALIDATE or n_held_out == 0:
            return rows, None
        order = np.random.default_rng(config.seed).permutation(len(rows))
        kept, held_out = rows[np.sort(order[n_held_out:])], rows[np.sort(order[:n_held_out])]
        if kept.weights.sum() == 0 or held_out.weights.sum() == 0:
            return rows, None
        return kept, held_out

    def _validation_rows(self, validation: Any) -> Rows:
        if is_source(validation, encoded=self._encoder is not None):
            validation = validation, self._target_name
        try:
            X, y = validation
        except (TypeError, ValueError) as error:
            raise ValueError(
                "`validation` must be a pair, inputs and targets, or a table like the one fitted."
            ) from error
        X, Y = self._checked_rows(X, y)
        return self._scaled(Rows(X, Y, np.ones(len(X))))

    def _ready(self, config: Config, data: TrainingData, model: DeepGP | Members) -> Any:
        """Give a trained model as it predicts."""
        return self._calibrated(config, data, self._conditioned(config, data, model))

    def _conditioned(self, config: Config, data: TrainingData, model: DeepGP | Members) -> Any:
        """Give the last layer its exact posterior where that was integrated out."""
        if config.objective != "evidence":
            return model
        assert isinstance(data, Table)  # as all rows go into each step
        return condition_last_layer(
            model, data, n_draws=config.n_conditioned, key=self._key("condition")
        )

    @staticmethod
    def _calibrated(config: Config, data: TrainingData, model: Any) -> Any:
        return calibrate(model, data) if config.calibrates else model  # pyright: ignore[reportArgumentType]

    def _judge(self, config: Config, data: TrainingData, rows: Rows | None) -> HeldOut | None:
        if rows is None:
            return None

        def mnll(model: DeepGP | Members) -> float:
            key = self._key("validate")
            ready = self._ready(config, data, model)
            posterior = Posterior.draw(ready, n_draws=_N_DRAWS_TO_VALIDATE, key=key)
            return mnll_of(posterior, rows)

        return HeldOut(mnll, patience=_PATIENCE)

    def _scaled(self, rows: Rows) -> Rows:
        return Rows(self._input_scaling(rows.X), self._scaled_targets(rows.Y), rows.weights)

    def _in_own_units(self, record: Record, n_past_steps: int) -> Record:
        shift, mnll = self._target_scaling.log_jacobian, record.held_out_mnll
        return dataclasses.replace(
            record,
            step=record.step + n_past_steps,
            elbo=record.elbo - self.trained_weight_ * shift,
            ell=record.ell - self.trained_weight_ * shift,
            held_out_mnll=None if mnll is None else mnll + shift,
        )

    def _bound(self, rows: Rows) -> float:
        """Estimate the bound on the training data from some of its rows, in the targets' units."""
        if len(rows) > _MAX_ROWS_FOR_BOUND:
            generator = np.random.default_rng(0)
            rows = rows[generator.choice(len(rows), _MAX_ROWS_FOR_BOUND, replace=False)]
        log_likelihood = self._posterior().map_rows(ExpectedLogLikelihood(), rows.X, Y=rows.Y)
        per_row = np.average(log_likelihood, weights=rows.weights)
        per_row -= self._target_scaling.log_jacobian
        return float(self.total_weight_ * per_row - _kl(self.model_))

    def _fit_more(self, rows: Rows) -> None:
        """Train on further rows; scaling and configuration stay those of the first call."""
        if not hasattr(self, "model_"):
            self._fit(rows, more_to_come=True)
            return
        self._take_back()
        self._let_it_go_on()
        self._seconds_tried = 0.0
        self.total_weight_ += float(rows.weights.sum())
        self._train(Config(**self.config_), rows, more_to_come=True)


@dataclasses.dataclass(frozen=True)
class _InOwnUnits:
    """A callback that is told of records in the targets' units."""

    callback: AbstractCallback
    convert: Callable[[Record, int], Record]
    n_past_steps: int

    def on_record(self, record: Record) -> None:
        self.callback.on_record(self.convert(record, self.n_past_steps))

    def on_end(self) -> None:
        self.callback.on_end()


def _left(budget: Budget, seconds_tried: float) -> Budget:
    """Take from a budget the time that trials took, up to a half of it."""
    if budget.max_seconds is None:
        return budget
    left = max(budget.max_seconds - seconds_tried, 0.5 * budget.max_seconds)
    return Budget(budget.max_steps, left)


def _of_rehearsal(budget: Budget) -> Budget:
    """Give a quarter of the steps of a budget, with as many between records, so that the same program runs them."""
    steps, seconds = budget.max_steps, budget.max_seconds
    return Budget(
        None if steps is None else -(-steps // _PARTS_OF_REHEARSAL),
        None if seconds is None else _TIME_TO_REHEARSE * seconds,
        n_records=budget.n_records // _PARTS_OF_REHEARSAL,
    )


@eqx.filter_jit
def _kl(model: DeepGP | Members) -> jax.Array:
    """Compute the KL as one program: its many small parts would take longer to compile."""
    return model.kl()


def _listed(value: Any) -> Any:
    """Give tuples as lists, which is how they come back from JSON."""
    return list(value) if isinstance(value, tuple) else value
