"""Parameters of the estimators, and what their parts have in common."""

import contextlib
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bochner.estimators.config import Config
from bochner.estimators.inputs import check_X
from bochner.estimators.rows import Rows
from bochner.estimators.sources import (
    TrainingSource,
    encoded_matrix,
    is_source,
    rows_with_targets,
)
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.likelihoods import AbstractLikelihood
from bochner.prediction.statistics import Posterior
from bochner.rows.scaling import TargetScaling
from bochner.tables.encoding import Encoder
from bochner.training import AbstractEngine, OneDevice


class Parameters(BaseEstimator, metaclass=ABCMeta):
    """The constructor, what the task decides, and the random keys, device and checks of a fitted estimator."""

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
        residual=None,
        likelihood=None,
        objective=None,
        calibration=None,
        n_members=None,
        theta=None,
        theta_deviation=None,
        kl_weight=None,
        kl_warmup=None,
        local_reparameterization=None,
        gradients=None,
        precision=None,
        batch_size=None,
        learning_rate=None,
        schedule=None,
        averaging=None,
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
        distributed=None,
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
        self.residual = residual
        self.likelihood = likelihood
        self.objective = objective
        self.calibration = calibration
        self.n_members = n_members
        self.theta = theta
        self.theta_deviation = theta_deviation
        self.kl_weight = kl_weight
        self.kl_warmup = kl_warmup
        self.local_reparameterization = local_reparameterization
        self.gradients = gradients
        self.precision = precision
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.averaging = averaging
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
        self.distributed = distributed
        self.random_state = random_state
        self.verbose = verbose

    n_features_in_: int  # set by scikit-learn's validation
    config_: dict[str, Any]
    depth_scores_: dict[int, float]
    frequency_scores_: dict[str, float]
    model_: DeepGP | Members
    _target_scaling: TargetScaling

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
    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Check arrays to be fitted, and note what is to be known of their columns and targets."""

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
    def _finish(self, likelihood: Any, F: jax.Array) -> jax.Array:
        """Give what the functions' values mean to a user."""

    # What fitting and predicting share.

    def _key(self, purpose: str) -> jax.Array:
        """A random key of the fitted seed for each purpose, so that no two share their numbers."""
        purposes = ("start", "train", "validate", "predict", "sample", "condition", "rehearse")
        # The generator is named, so that JAX's global choice of one cannot change a loaded model's predictions.
        key = jax.random.key(self.config_["seed"], impl="threefry2x32")
        return jax.random.fold_in(key, purposes.index(purpose))

    def _on_device(self) -> contextlib.AbstractContextManager:
        if self.device is None:
            return contextlib.nullcontext()
        platform, _, number = str(self.device).partition(":")
        try:
            devices = jax.local_devices(backend=platform)
            return jax.default_device(devices[int(number or 0)])
        except (RuntimeError, IndexError, ValueError) as error:
            available = ", ".join(sorted({device.platform for device in jax.devices()}))
            raise ValueError(
                f"`device` must name a device such as 'cpu' or 'gpu:0'; got {self.device!r}. "
                f"Available here: {available}."
            ) from error

    def _engine(self) -> AbstractEngine:
        """Where the steps of a training run."""
        if self.distributed is None:
            return OneDevice()
        platform = None if self.device is None else str(self.device).partition(":")[0]
        return self.distributed.engine(platform)

    def _posterior(
        self,
        n_draws: int | None = None,
        key: jax.Array | None = None,
        model: DeepGP | Members | None = None,
    ) -> Posterior:
        return Posterior.draw(
            self.model_ if model is None else model,
            n_draws=n_draws or self.config_["n_mc_predict"],
            key=self._key("predict") if key is None else key,
        )

    def _checked_inputs(self, X: Any) -> np.ndarray:
        """Give X as a matrix of numbers; tables of named columns are read and encoded as at the fit."""
        check_is_fitted(self)
        if is_source(X, encoded=self._encoder is not None):
            X = encoded_matrix(self, X)
        return check_X(self, X, reset=False)

    def _read_if_named(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Read a table of named columns, with the targets where y names their column; arrays stay as they are."""
        if isinstance(y, str):
            check_is_fitted(self)
            return rows_with_targets(self, X, y)
        if is_source(X, encoded=self._encoder is not None):
            check_is_fitted(self)
            return encoded_matrix(self, X), y
        return X, y

    def _column_names(self) -> list[str]:
        """Names of the columns of the matrix that the model takes."""
        if self._encoder is not None:
            return self._encoder.feature_names
        default = [f"column {i}" for i in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", default)]

    def _scaled_targets(self, Y: np.ndarray) -> np.ndarray:
        return self._target_scaling(Y)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
