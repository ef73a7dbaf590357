"""The scikit-learn classifier."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from bochner.estimators.base import BaseDeepGP
from bochner.estimators.config import Config
from bochner.estimators.inputs import check_labels, check_weights, check_X
from bochner.estimators.rows import Rows
from bochner.estimators.sources import TrainingSource
from bochner.likelihoods import CLASSIFICATION_LIKELIHOODS
from bochner.prediction.scores import ClassificationScores
from bochner.prediction.statistics import LogDensity, Probabilities, Several
from bochner.rows.scaling import TargetScaling


class DeepGPClassifier(ClassifierMixin, BaseDeepGP):
    """Deep Gaussian process classification with calibrated probabilities, for raw tables.

    Every parameter left at None is chosen by the preset from the size of the data; `config_` shows the choice. The
    parameters are those of `DeepGPRegressor`, but for these:

    Args:
        likelihood: `"softmax"`, or `"bernoulli"` for two classes.
        class_weight: `"balanced"`, or a dict of weights by class; multiplies `sample_weight`.
        preset: as for `DeepGPRegressor`, like all that follow.
        n_layers: layers of Gaussian processes, the output layer included.
        width: Gaussian processes in each hidden layer.
        n_random_features: frequencies of each layer.
        kernel: covariance of each layer.
        ard: a lengthscale for each input of a layer, or one for all.
        frequencies: how base frequencies are drawn.
        omega: treatment of the frequencies.
        feed_inputs: feed the inputs to each layer after the first.
        residual: add its inputs to the outputs of each hidden layer that has as many.
        objective: what training maximizes: `"elbo"`, the bound, or `"predictive"`, the predictive density, with the KL
            kept.
        calibration: `"none"`; for regression there is a choice.
        n_members: models trained together from different starts, which predict as one mixture.
        theta: `"free"`, `"prior"` or `"variational"` treatment of the kernels' variances and lengthscales.
        theta_deviation: deviation of the prior of their logarithms around the initial values.
        kl_weight: what the KL counts in the objective; 1 is the bound.
        kl_warmup: share of the training over which that rises from 0.
        local_reparameterization: draw outputs instead of weights in training.
        gradients: `"exact"`, or `"clipped"` row by row on their way back through each layer.
        precision: what a GPU rounds the factors of products to in training: `"float32"`, not at all; `"tf32x3"`,
            `"tf32"` or `"bfloat16"`.
        batch_size: rows a step.
        learning_rate: of Adam.
        schedule: of the learning rate.
        averaging: share of a running average of the parameters that a step keeps.
        max_steps: training steps.
        max_seconds: training time.
        n_mc_train: Monte Carlo samples a step.
        n_mc_predict: functions drawn for predictions.
        preprocessing: scaling of inputs.
        validation_fraction: share of rows held out to keep the best parameters.
        theta_from: when kernel parameters start to be learned.
        omega_from: when q(Omega) starts to be learned.
        lengthscale_factor: initial lengthscale.
        initial_log_var: initial log variance of q(W).
        noise_variance: without effect here.
        warm_start: go on from the fitted model at the next call of `fit`.
        checkpoint: folder in which the state of the training is kept.
        checkpoint_seconds: about how often, in seconds.
        resume: go on from the newest checkpoint.
        callbacks: objects told of each record of the training.
        device: where to compute.
        distributed: `bochner.distributed.Synchronous(...)` or `Asynchronous(...)` trains on several devices or
            processes.
        random_state: seed of everything.
        verbose: 1 shows progress.

    Attributes:
        classes_: the classes, in the order of the columns of `predict_proba`.
        config_: every setting of the fit, with the value used; the other attributes are those of `DeepGPRegressor`.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from bochner import DeepGPClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = DeepGPClassifier(max_steps=500, random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.9
        True
    """

    _likelihoods = CLASSIFICATION_LIKELIHOODS
    _classification = True

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
        class_weight=None,
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
        super().__init__(
            preset=preset,
            n_layers=n_layers,
            width=width,
            n_random_features=n_random_features,
            kernel=kernel,
            ard=ard,
            frequencies=frequencies,
            omega=omega,
            feed_inputs=feed_inputs,
            residual=residual,
            likelihood=likelihood,
            objective=objective,
            calibration=calibration,
            n_members=n_members,
            theta=theta,
            theta_deviation=theta_deviation,
            kl_weight=kl_weight,
            kl_warmup=kl_warmup,
            local_reparameterization=local_reparameterization,
            gradients=gradients,
            precision=precision,
            batch_size=batch_size,
            learning_rate=learning_rate,
            schedule=schedule,
            averaging=averaging,
            max_steps=max_steps,
            max_seconds=max_seconds,
            n_mc_train=n_mc_train,
            n_mc_predict=n_mc_predict,
            preprocessing=preprocessing,
            validation_fraction=validation_fraction,
            theta_from=theta_from,
            omega_from=omega_from,
            lengthscale_factor=lengthscale_factor,
            initial_log_var=initial_log_var,
            noise_variance=noise_variance,
            warm_start=warm_start,
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds,
            resume=resume,
            callbacks=callbacks,
            device=device,
            distributed=distributed,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        X = check_X(self, X, reset=not self._goes_on())
        y = check_labels(y, X)
        check_classification_targets(y)
        classes = np.unique(y)
        self._check_several(classes)
        if not self._goes_on():
            self.classes_ = classes
        return Rows(X, self._encoded(y), self._weights(y, sample_weight, X))

    def _check_several(self, classes: np.ndarray) -> None:
        if len(classes) < 2:
            raise ValueError(
                f"y must hold at least two classes; got one class only, {classes.tolist()[0]!r}. "
                "Check that the right column is the target."
            )

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "DeepGPClassifier":
        """Learn from further rows, with the scaling of the first call; each call trains for the whole budget.

        Args:
            X: further rows.
            y: their classes.
            classes: all classes that will ever come; needed at the first call where its y lacks some.
            sample_weight: how often each row counts.
        """
        first = not hasattr(self, "model_")
        X, y = self._read_if_named(X, y)
        X = check_X(self, X, reset=first)
        y = check_labels(y, X)
        check_classification_targets(y)
        if first:
            self.classes_ = np.unique(y if classes is None else classes)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"y must hold at least two classes; got one class only, {self.classes_.tolist()[0]!r}. "
                    "Name all classes in `classes`."
                )
        self._fit_more(Rows(X, self._encoded(y), self._weights(y, sample_weight, X)))
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of rows whose class is predicted rightly.

        Args:
            X: rows.
            y: their classes, or the name of their column.
            sample_weight: how often each row counts.
        """
        X, y = self._read_if_named(X, y)
        return super().score(X, y, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class, in the order of `classes_`.

        Args:
            X: rows to predict.
        """
        return _normalized(self._predictive(Probabilities(), self._checked_inputs(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class.

        Args:
            X: rows to predict.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """Compute the log probability of each row's class.

        Args:
            X: rows.
            y: their classes.
        """
        X, Y = self._checked_rows(X, y)
        return self._predictive(LogDensity(), X, Y=Y)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw classes from the predictive distribution, samples along the last axis.

        Args:
            X: rows.
            n_samples: draws for each row.
            random_state: seed; None takes the fitted one.
        """
        drawn = self._sampled(X, n_samples, random_state)
        return self.classes_[drawn[:, :, 0]]

    def _finish(self, likelihood: Any, F: jax.Array) -> jax.Array:
        return jnp.exp(likelihood.log_probabilities(F))

    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Measure predictions: `error_rate`, `mnll`, `brier` and `ece` (15 bins of the top probability).

        Args:
            X: rows.
            y: their classes.
        """
        return self._scores(*self._checked_rows(X, y)).metrics()

    def _scores(self, X: np.ndarray, Y: np.ndarray) -> ClassificationScores:
        parts = {"probabilities": Probabilities(), "log_density": LogDensity()}
        found = self._predictive(Several(parts), X, Y=Y)
        return ClassificationScores.of(
            Y[:, 0], _normalized(found["probabilities"]), found["log_density"]
        )

    # What classification decides.

    def _checked_rows(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        X, y = self._read_if_named(X, y)
        X = self._checked_inputs(X)
        return X, self._encoded(check_labels(y, X))

    def _see_targets(self, source: TrainingSource) -> None:
        counts = source.classes
        texts = any(isinstance(label, str) for label in counts)
        self.classes_ = np.unique(np.array(list(counts), dtype=object if texts else None))
        self._check_several(self.classes_)
        labels = self.classes_.tolist()
        # Weights that depend on how many rows each class has: from the counts, as scikit-learn does from the rows.
        per_class = compute_sample_weight(self.class_weight, self.classes_)
        if isinstance(self.class_weight, str):
            rows = np.array([counts[label] for label in labels])
            per_class = source.n_rows / (len(labels) * rows)
        self._streamed_weights = np.asarray(per_class, np.float64)

    def _streamed(self, X: np.ndarray, y: np.ndarray) -> Rows:
        Y = self._encoded(y)
        return Rows(X, Y, self._streamed_weights[Y[:, 0]])

    def _weights(self, y: np.ndarray, sample_weight: Any, X: np.ndarray) -> np.ndarray:
        return check_weights(sample_weight, X) * compute_sample_weight(self.class_weight, y)

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        index = np.searchsorted(self.classes_, y)
        index = np.minimum(index, len(self.classes_) - 1)
        unknown = self.classes_[index] != y
        if np.any(unknown):
            row = int(np.argmax(unknown))
            raise ValueError(
                f"y holds the class {y.tolist()[row]!r} in row {row}, which was not there at the first fit; the "
                f"classes are {self.classes_.tolist()}."
            )
        return index[:, None].astype(np.int32)

    def _scaled_targets(self, Y: np.ndarray) -> np.ndarray:
        return Y

    def _learn_targets(self, Y: np.ndarray, config: Config) -> TargetScaling:
        if config.likelihood == "bernoulli" and len(self.classes_) != 2:
            raise ValueError(
                f"likelihood='bernoulli' is for two classes; y has {len(self.classes_)}. "
                "Use likelihood='softmax'."
            )
        return TargetScaling.none(1)

    def _n_targets(self, Y: np.ndarray) -> int:
        return len(self.classes_)


def _normalized(probabilities: np.ndarray) -> np.ndarray:
    """Let each row sum to one in float64, as scikit-learn expects."""
    probabilities = probabilities.astype(np.float64)
    return probabilities / probabilities.sum(axis=1, keepdims=True)
