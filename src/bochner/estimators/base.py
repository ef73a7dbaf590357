"""What both estimators share: parameters, training, prediction, saving."""

import contextlib
import copy
import dataclasses
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bochner.data.encoding import Encoder
from bochner.data.scaling import PREPROCESSINGS, InputScaling, TargetScaling
from bochner.data.spool import Spool
from bochner.data.table import Table, TrainingData
from bochner.estimators.config import Config, check_choice, check_whole_number
from bochner.estimators.inputs import check_X
from bochner.estimators.plots import PlotsMixin
from bochner.estimators.recipes import PRESETS, Situation, fill
from bochner.estimators.rows import Rows
from bochner.estimators.sources import (
    TrainingSource,
    encoded_matrix,
    is_source,
    target_column,
)
from bochner.layers import Layer
from bochner.likelihoods import AbstractLikelihood
from bochner.model import DeepGP, FunctionDraw
from bochner.prediction import (
    AbstractStatistic,
    ExpectedLogLikelihood,
    LogDensity,
    Posterior,
    Samples,
)
from bochner.spectra import PriorFixed
from bochner.training import (
    SCHEDULES,
    AbstractCallback,
    Checkpoints,
    HeldOut,
    ProgressBar,
    Record,
    train,
)

_MIN_ROWS_TO_VALIDATE = 200
_N_DRAWS_TO_VALIDATE = 30
_MAX_ROWS_FOR_BOUND = 10_000
_MAX_ROWS_HELD_OUT_OF_STREAM = 20_000
_PATIENCE = 10
_FEW_STEPS = 100
_MODEL_FIELDS = (
    "n_layers", "width", "n_random_features", "kernel", "ard", "frequencies", "omega", "feed_inputs",
    "likelihood", "preprocessing", "lengthscale_factor", "initial_log_var", "noise_variance",
)  # fmt: skip


class BaseDeepGP(PlotsMixin, BaseEstimator, metaclass=ABCMeta):
    """Parameters and machinery of `DeepGPRegressor` and `DeepGPClassifier`."""

    def __init__(
        self,
        *,
        preset="auto",
        n_layers=None,
        width=None,
        n_random_features=None,
        kernel=None,
        ard=None,
        frequencies=None,
        omega=None,
        feed_inputs=None,
        likelihood=None,
        local_reparameterization=None,
        batch_size=None,
        learning_rate=None,
        schedule=None,
        max_steps=None,
        max_seconds=None,
        n_mc_train=None,
        n_mc_predict=None,
        preprocessing=None,
        validation_fraction=None,
        theta_from=None,
        omega_from=None,
        lengthscale_factor=None,
        initial_log_var=None,
        noise_variance=None,
        warm_start=False,
        checkpoint=None,
        checkpoint_seconds=60.0,
        resume=False,
        callbacks=None,
        device=None,
        random_state=None,
        verbose=0,
    ):
        self.preset = preset
        self.n_layers = n_layers
        self.width = width
        self.n_random_features = n_random_features
        self.kernel = kernel
        self.ard = ard
        self.frequencies = frequencies
        self.omega = omega
        self.feed_inputs = feed_inputs
        self.likelihood = likelihood
        self.local_reparameterization = local_reparameterization
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.max_steps = max_steps
        self.max_seconds = max_seconds
        self.n_mc_train = n_mc_train
        self.n_mc_predict = n_mc_predict
        self.preprocessing = preprocessing
        self.validation_fraction = validation_fraction
        self.theta_from = theta_from
        self.omega_from = omega_from
        self.lengthscale_factor = lengthscale_factor
        self.initial_log_var = initial_log_var
        self.noise_variance = noise_variance
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.resume = resume
        self.callbacks = callbacks
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    n_features_in_: int  # set by scikit-learn's validation

    # Set where the fit was from a table of named columns of any type.
    _encoder: Encoder | None = None
    _target_name: str | None = None

    # What the task decides.

    _likelihoods: Mapping[str, type[AbstractLikelihood]]
    _classification: bool

    @abstractmethod
    def _checked_rows(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check rows with their targets, as fitted."""

    @abstractmethod
    def _fit_arrays(self, X: Any, y: Any, sample_weight: Any, validation: Any) -> None:
        """Check arrays, and fit on them."""

    @abstractmethod
    def _see_targets(self, source: TrainingSource) -> None:
        """Note what all targets of a table too large for memory have in common."""

    @abstractmethod
    def _streamed(self, X: np.ndarray, y: np.ndarray) -> Rows:
        """Give a batch of such a table as rows."""

    @abstractmethod
    def _scores(self, X: np.ndarray, Y: np.ndarray) -> Any:
        """Sum up how good the predictions of checked rows are."""

    @abstractmethod
    def _learn_targets(self, Y: np.ndarray, config: Config) -> TargetScaling:
        """Learn how targets are scaled, after checking their range."""

    @abstractmethod
    def _n_targets(self, Y: np.ndarray) -> int:
        """How many targets or classes the likelihood has."""

    @abstractmethod
    def _finish(self, F: jax.Array) -> jax.Array:
        """Give what the functions' values mean to a user."""

    # Fitting.

    def _resolve(self, n_rows: int, d_in: int) -> Config:
        """Fill open parameters from the preset, and check them all."""
        check_choice("preset", self.preset, PRESETS)
        names = {field.name for field in dataclasses.fields(Config)}
        given = {name: value for name, value in self.get_params().items() if name in names}
        values = fill(given, self.preset, Situation(n_rows, d_in, self._classification))
        if self.checkpoint is not None and not isinstance(self.random_state, int | np.integer):
            raise ValueError(
                "`checkpoint` needs a whole number as `random_state`, so that a resumed training draws the same "
                f"numbers; got {self.random_state!r}."
            )
        if self.resume and self.checkpoint is None:
            raise ValueError("`resume` needs the folder of the checkpoints: set `checkpoint`.")
        values["seed"] = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return Config.checked(values, self._likelihoods)

    def _fit(self, rows: Rows, validation: Any = None) -> None:
        """Learn scaling and model from checked rows in memory."""
        config = self._resolve(len(rows), rows.X.shape[1])
        if self._goes_on():
            config = self._check_same_model(config)
            self.config_ = dataclasses.asdict(config)
        else:
            self._start(config, rows)
        self.total_weight_ = float(rows.weights.sum())
        self._train(config, rows, validation)

    def _fit_source(self, source: Any, target: str, validation: Any, ignore: Sequence[str]) -> None:
        """Learn from a table of named columns: encode them, and hold the rows in memory or stream them by size."""
        found = TrainingSource.open(source, target, ignore, classification=self._classification)
        if not self._goes_on():
            self._encoder = Encoder.learn(found.sample.select(found.inputs))
            self._target_name = target
        encoder = self._encoder
        if encoder is None:
            raise ValueError("`warm_start` from a fit on an array needs an array again.")
        batches = found.encoded_batches(encoder, classification=self._classification)
        if found.fits_in_memory(encoder):
            X, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
            self._fit_arrays(X, y, None, validation)
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
        config = self._resolve(n_rows, self.n_features_in_)
        self._start(config, sample)
        sample = self._scaled(sample)
        given = None if validation is None else self._validation_rows(validation)
        share = min(config.validation_fraction, _MAX_ROWS_HELD_OUT_OF_STREAM / n_rows)
        generator = np.random.default_rng(config.seed)
        chosen = [] if given is None else [given]
        size = {"d_in": self.n_features_in_, "n_targets": sample.Y.shape[1]}
        with Spool(**size, classes=self._classification) as spool:
            for batch in batches:
                rows = self._scaled(batch)
                if given is None and share > 0:
                    held_out = generator.random(len(rows)) < share
                    chosen.append(rows[held_out])
                    rows = rows[~held_out]
                spool.append(rows.X, rows.Y, rows.weights)
            self.total_weight_ = spool.total_weight + sum(part.weights.sum() for part in chosen)
            self._learn(config, spool, _joined(chosen), sample, f"{n_rows} {sample.digest()}")

    def _start(self, config: Config, rows: Rows) -> None:
        """Learn the scaling from rows and build the model as it is before training."""
        self.config_ = dataclasses.asdict(config)
        self._input_scaling = PREPROCESSINGS[config.preprocessing](rows.X)
        self._target_scaling = self._learn_targets(rows.Y, config)
        self.model_ = self._start_model(config, rows.X.shape[1], rows.Y)
        self.history_ = []

    def _goes_on(self) -> bool:
        """Whether `fit` goes on from the fitted model."""
        return bool(self.warm_start) and hasattr(self, "model_")

    def _check_same_model(self, config: Config) -> Config:
        """Refuse to go on with another kind of model; the seed and what is left open stay as fitted."""
        for name in _MODEL_FIELDS:
            fitted, asked = self.config_[name], getattr(config, name)
            if getattr(self, name) is not None and fitted != asked:
                raise ValueError(
                    f"`warm_start` goes on from the fitted model, which has {name}={fitted!r}; got {asked!r}. Use the "
                    "fitted value, or `warm_start=False`."
                )
        return dataclasses.replace(
            config, **{name: self.config_[name] for name in ("seed", *_MODEL_FIELDS)}
        )

    def _start_model(self, config: Config, d_in: int, Y: np.ndarray) -> DeepGP:
        likelihood = self._likelihoods[config.likelihood]
        d_out = likelihood.n_functions(self._n_targets(Y))
        with self._on_device():
            return DeepGP.start(
                config.layer_settings(d_in, d_out),
                likelihood.from_targets(self._target_scaling(Y), config.noise_variance),
                d_in=d_in,
                feed_inputs=config.feed_inputs,
                key=self._key("start"),
            )

    def _train(self, config: Config, rows: Rows, validation: Any = None) -> None:
        rows = self._scaled(rows)
        if validation is None:
            kept, held_out = self._split(config, rows)
        else:
            kept, held_out = rows, self._validation_rows(validation)
        # The bound counts all weight seen, for which the rows of this call stand; held-out rows are not replaced.
        weights = self.total_weight_ / rows.weights.sum() * kept.weights
        with self._on_device():
            table = Table.of(kept.X, kept.Y, weights)
        self._learn(config, table, held_out, rows, rows.digest() if self.checkpoint else "")

    def _learn(
        self, config: Config, data: TrainingData, held_out: Rows | None, sample: Rows, digest: str
    ) -> None:
        """Train the model on scaled rows, and estimate the bound on a sample of them."""
        n_past = self.history_[-1]["step"] if self.history_ else 0
        self.trained_weight_ = data.total_weight
        callbacks = list(self.callbacks or [])
        if self.verbose:
            callbacks.append(ProgressBar(type(self).__name__, n_rows=self.trained_weight_))
        with self._on_device():
            trained = train(
                self.model_,
                data,
                plan=config.plan,
                budget=config.budget,
                batch_size=config.batch_size,
                learning_rate=config.learning_rate,
                schedule=SCHEDULES[config.schedule],
                reparameterization=config.reparameterization,
                held_out=self._judge(held_out),
                callbacks=[_InOwnUnits(one, self._in_own_units, n_past) for one in callbacks],
                checkpoints=self._checkpoints(config, digest),
                key=jax.random.fold_in(self._key("train"), n_past),
            )
            self.model_ = trained.model
            self._warn_of_too_few_steps(config, trained.n_steps)
            self.n_steps_ = n_past + trained.n_steps
            self.history_ = self.history_ + [
                dataclasses.asdict(self._in_own_units(record, n_past)) for record in trained.history
            ]
            self.elbo_ = self._bound(sample)

    def _checkpoints(self, config: Config, digest: str) -> Checkpoints | None:
        if self.checkpoint is None:
            return None
        settings = {name: _listed(value) for name, value in dataclasses.asdict(config).items()}
        return Checkpoints(
            self.checkpoint,
            {**settings, "data": digest},
            resume=self.resume,
            seconds_between=self.checkpoint_seconds,
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

    def _judge(self, rows: Rows | None) -> HeldOut | None:
        if rows is None:
            return None

        def mnll(model: DeepGP) -> float:
            key = self._key("validate")
            posterior = Posterior.draw(model, n_draws=_N_DRAWS_TO_VALIDATE, key=key)
            log_density = posterior.map_rows(LogDensity(), rows.X, Y=rows.Y)
            return float(-np.average(log_density, weights=rows.weights))

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
        return float(self.total_weight_ * per_row - self.model_.kl())

    def _fit_more(self, rows: Rows) -> None:
        """Train on further rows; scaling and configuration stay those of the first call."""
        if not hasattr(self, "model_"):
            self._fit(rows)
            return
        self.total_weight_ += float(rows.weights.sum())
        self._train(Config(**self.config_), rows)

    # Predicting.

    def _key(self, purpose: str) -> jax.Array:
        """A random key of the fitted seed for each purpose, so that no two share their numbers."""
        purposes = ("start", "train", "validate", "predict", "sample")
        # The generator is named, so that JAX's global choice of one cannot change a loaded model's predictions.
        key = jax.random.key(self.config_["seed"], impl="threefry2x32")
        return jax.random.fold_in(key, purposes.index(purpose))

    def _on_device(self) -> contextlib.AbstractContextManager:
        if self.device is None:
            return contextlib.nullcontext()
        platform, _, number = str(self.device).partition(":")
        try:
            devices = jax.devices(platform)
            return jax.default_device(devices[int(number or 0)])
        except (RuntimeError, IndexError, ValueError) as error:
            available = ", ".join(sorted({device.platform for device in jax.devices()}))
            raise ValueError(
                f"`device` must name a device such as 'cpu' or 'gpu:0'; got {self.device!r}. "
                f"Available here: {available}."
            ) from error

    def _posterior(self, n_draws: int | None = None, key: jax.Array | None = None) -> Posterior:
        return Posterior.draw(
            self.model_,
            n_draws=n_draws or self.config_["n_mc_predict"],
            key=self._key("predict") if key is None else key,
        )

    def _checked_inputs(self, X: Any) -> np.ndarray:
        """Give X as a matrix of numbers; tables of named columns are read and encoded as at the fit."""
        check_is_fitted(self)
        if is_source(X, encoded=self._encoder is not None):
            X = encoded_matrix(self, X)
        return check_X(self, X, reset=False)

    def _named_targets(self, X: Any, y: Any) -> Any:
        """Give the targets: y itself, or the column of the table X that it names."""
        if not isinstance(y, str):
            return y
        return target_column(X, y, classification=self._classification)

    def _scaled_inputs(self, X: np.ndarray) -> np.ndarray:
        """Scale checked inputs for a prediction; tell how many rows were clipped."""
        n_clipped = self._input_scaling.n_clipped(X)
        if n_clipped:
            warnings.warn(
                f"{n_clipped} of {len(X)} rows hold values far outside those of the training data; they were clipped. "
                "Do not rely on their predictions.",
                UserWarning,
                stacklevel=4,
            )
        return self._input_scaling(X)

    def _predictive(
        self, statistic: AbstractStatistic, X: np.ndarray, **columns: np.ndarray
    ) -> Any:
        """Compute a statistic of the predictive mixture for each row of checked inputs."""
        X = self._scaled_inputs(X)
        with self._on_device():
            return self._posterior().map_rows(statistic, X, **columns)

    def _sampled(self, X: Any, n_samples: int, random_state: Any) -> np.ndarray:
        """Draw scaled targets: rows, then samples, then targets."""
        check_whole_number("n_samples", n_samples)
        X = self._scaled_inputs(self._checked_inputs(X))
        key_functions, key_noise = jax.random.split(self._sampling_key(random_state))
        with self._on_device():
            return self._posterior(n_samples, key_functions).map_rows(Samples(key_noise), X)

    def _scaled_targets(self, Y: np.ndarray) -> np.ndarray:
        return self._target_scaling(Y)

    def sample_functions(self, n: int = 1, random_state: Any = None) -> "list[ScaledFunction]":
        """Draw functions: callables on raw inputs, the same wherever evaluated, and differentiable.

        They give the mean of y given the function, or the probability of each class.

        Args:
            n: how many.
            random_state: seed; None takes the fitted one.
        """
        check_is_fitted(self)
        check_whole_number("n", n)
        keys = jax.random.split(self._sampling_key(random_state), n)
        with self._on_device():
            draws = [self.model_.draw_function(key=key) for key in keys]
        finish = copy.copy(self)._finish  # fitting again must not change what was drawn before
        return [ScaledFunction(draw, self._input_scaling, finish) for draw in draws]

    def _sampling_key(self, random_state: Any) -> jax.Array:
        key = self._key("sample")
        if random_state is None:
            return key
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        return jax.random.fold_in(key, int(seed))

    @property
    def relevance_(self) -> np.ndarray:
        """How much each input matters, relative to the one that matters most.

        The inverse lengthscale of the input, by root mean square over the layers that it enters. Where q(Omega) is
        learned, the root mean square of its frequencies takes the place of the inverse lengthscale.
        """
        check_is_fitted(self)
        layers = self.model_.layers if self.model_.feed_inputs else self.model_.layers[:1]
        squares = [_squared_frequencies(layer)[-self.n_features_in_ :] for layer in layers]
        sizes = np.sqrt(np.mean(squares, axis=0))
        return sizes / sizes.max()

    # Saving.

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file: safetensors with a JSON header, no pickle.

        Args:
            path: where to write; an existing file is replaced at once, never left half written.
        """
        from bochner.estimators.files import save

        check_is_fitted(self)
        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


class ScaledFunction:
    """A function drawn from the posterior, on raw inputs and in the targets' units.

    The same function wherever it is evaluated; NumPy arrays in give NumPy arrays out, and JAX arrays can be
    traced, compiled and differentiated.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(max_steps=10, random_state=0).fit(x, np.sin(6 * x[:, 0]))
        >>> f = model.sample_functions(1)[0]
        >>> bool(np.all(f(x) == f(x)))
        True
    """

    def __init__(
        self, draw: FunctionDraw, scaling: InputScaling, finish: Callable[[jax.Array], jax.Array]
    ):
        self._draw, self._scaling, self._finish = draw, scaling, finish

    def __call__(self, X: Any) -> Any:
        """Evaluate at the rows of X."""
        traced = isinstance(X, jax.Array)
        if not traced:
            X = np.asarray(X, np.float64)
        if X.ndim != 2:
            raise ValueError(
                f"a drawn function takes a matrix, one row a point; got shape {X.shape}."
            )
        n_columns = len(self._scaling.center)
        if X.shape[1] != n_columns:
            raise ValueError(
                f"a drawn function takes the {n_columns} columns of the fit; got {X.shape[1]}."
            )
        values = self._finish(self._draw(jnp.asarray(self._scaling(X), jnp.float32)))
        return values if traced else np.asarray(values)


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


def _joined(parts: list[Rows]) -> Rows | None:
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    columns = ((part.X, part.Y, part.weights) for part in parts)
    return Rows(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _listed(value: Any) -> Any:
    """Give tuples as lists, which is how they come back from JSON."""
    return list(value) if isinstance(value, tuple) else value


def _squared_frequencies(layer: Layer) -> np.ndarray:
    """Compute the mean square of a layer's frequencies for each input, without a Matern kernel's scales."""
    if isinstance(layer.spectrum, PriorFixed):
        d_in = layer.spectrum.epsilon.shape[0]
        return np.broadcast_to(np.exp(-2.0 * np.asarray(layer.kernel.log_lengthscale)), (d_in,))
    q_Omega = layer.spectrum.q_Omega  # pyright: ignore[reportAttributeAccessIssue]
    return np.asarray(jnp.mean(q_Omega.mean**2 + q_Omega.variance, axis=1))
