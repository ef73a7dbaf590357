"""The scikit-learn regressor."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import RegressorMixin

from bochner.estimators.base import BaseDeepGP
from bochner.estimators.config import Config
from bochner.estimators.inputs import (
    check_targets,
    check_weights,
    check_X,
    target_names,
    warn_of_rounding,
)
from bochner.estimators.rows import Rows
from bochner.estimators.sources import TrainingSource
from bochner.likelihoods import REGRESSION_LIKELIHOODS
from bochner.prediction.scores import RegressionScores
from bochner.prediction.statistics import (
    LogDensity,
    Moments,
    Quantiles,
    Samples,
    Several,
)
from bochner.rows.scaling import TargetScaling


class DeepGPRegressor(RegressorMixin, BaseDeepGP):
    """Deep Gaussian process regression with honest uncertainty, for raw tables.

    Every parameter left at None is chosen by the preset from the size of the data; `config_` shows the choice.

    Args:
        preset: `"auto"`, or `"paper"` and `"paper-mnist"` for exactly the settings of the paper.
        n_layers: layers of Gaussian processes, the output layer included; 1 is a Gaussian process. `"auto"` tries 1, 2
            and 3 and keeps the best on held-out rows; `depth_scores_` shows them.
        width: Gaussian processes in each hidden layer; one number, or one for each.
        n_random_features: frequencies of each layer; one number, or one for each.
        kernel: `"rbf"`, `"arccos0"`, `"arccos1"`, `"arccos2"`, `"matern12"`, `"matern32"` or `"matern52"`; one, or one
            for each layer.
        ard: a lengthscale for each input of a layer, or one for all.
        frequencies: `"independent"` or `"orthogonal"` base frequencies, or `"sparse"` ones, of which most look at one,
            two or four inputs.
        omega: `"prior-fixed"`, `"var-fixed"` or `"var-resampled"` treatment of the frequencies.
        feed_inputs: feed the inputs to each layer after the first.
        residual: add its inputs to the outputs of each hidden layer that has as many.
        likelihood: `"gaussian"`, `"heteroscedastic"`, `"student-t"` or `"poisson"`.
        objective: what training maximizes: `"elbo"`, the bound; `"predictive"`, the predictive density, with the KL
            kept; or `"evidence"`, the bound with the last layer integrated out exactly, for Gaussian noise and tables
            of up to a few thousand rows.
        calibration: `"left-out"` chooses the widths of the predictions of `"evidence"` by rows left out of the last
            layer, which is the default where the preset chooses that objective; `"none"` keeps those of the posterior.
        n_members: models trained together from different starts, which predict as one mixture.
        theta: `"free"`, `"prior"` or `"variational"` treatment of the kernels' variances and lengthscales.
        theta_deviation: deviation of the prior of their logarithms around the initial values.
        kl_weight: what the KL counts in the objective; 1 is the bound.
        kl_warmup: share of the training over which that rises from 0.
        local_reparameterization: draw outputs instead of weights in training.
        gradients: `"exact"`, or `"clipped"`: row by row on their way back through each layer, so that they do not
            explode through many. Clipped ones are biased. `"auto"` clips from ten layers on, the paper's presets never.
        precision: what a GPU rounds the factors of products to in training: `"float32"`, not at all; `"tf32x3"`,
            `"tf32"` or `"bfloat16"`.
        batch_size: rows a step.
        learning_rate: of Adam.
        schedule: `"constant"` or `"cosine"` learning rate.
        averaging: share of a running average of the parameters that a step keeps, such as 0.999; 0 takes the last.
        max_steps: training steps; the same seed then gives the same result, bit for bit.
        max_seconds: training time, compilation included; instead of `max_steps`, or whichever ends first.
        n_mc_train: Monte Carlo samples a step; two numbers mean before and after half of the training.
        n_mc_predict: functions drawn for predictions.
        preprocessing: `"robust"`, `"compressed"`, `"standard"`, `"unit"` or `"none"` scaling of inputs.
        validation_fraction: share of rows held out to keep the best parameters; 0 holds out none, as do tables
            below 200 rows.
        theta_from: when kernel and noise parameters start to be learned: a number of steps, a fraction of the training,
            or `"never"`.
        omega_from: the same for q(Omega).
        lengthscale_factor: initial lengthscale in units of the square root of the number of inputs.
        initial_log_var: initial log variance of q(W); 0 is the prior.
        noise_variance: initial noise variance of the scaled target.
        warm_start: go on from the fitted model at the next call of `fit`.
        checkpoint: folder in which the state of the training is kept, the last two times; it needs a `random_state`.
        checkpoint_seconds: about how often, in seconds.
        resume: go on from the newest checkpoint; the result is that of a training that was never stopped.
        callbacks: objects told of each record of the training; see `bochner.training.AbstractCallback`.
        device: `"cpu"`, `"gpu"`, `"gpu:1"`; None takes JAX's default.
        distributed: `bochner.distributed.Synchronous(...)` or `Asynchronous(...)` trains on several devices or
            processes; None trains on one device.
        random_state: seed of everything.
        verbose: 1 shows progress.

    Attributes:
        config_: every setting of the fit, with the value used.
        depth_scores_: held-out MNLL of each number of layers, with `n_layers="auto"`.
        distribution_: with `Asynchronous`, what happened: updates, staleness, pushes dropped or refused, losses.
        frequency_scores_: held-out MNLL of held (`"prior-fixed"`) and free (`"var-fixed"`) frequencies, where both were
            tried.
        elbo_: the bound on the training data at the end, in the units of y. With `omega="var-fixed"` the held epsilon
            acts as a parameter, so it is not strictly a bound on the evidence: compare models by it with care.
        history_: a list of records over the training: bound, expected log-likelihood, KL, held-out MNLL, seconds.
        judged_: mean log-likelihood of rows not seen, in the units of y, under the `"model"` as it was trained, and
            under a `"constant"` and a `"linear"` one; `"n_rows"`, how many; `"rows"`, which: those `"held out"`, or
            `"by members"`, which left them out of a rehearsal; and what `"predicts"`. Where the model is clearly
            worse a fit says so, and if it chose its settings itself the better one takes the model's place.
        model_: the `DeepGP` itself, or `Members`.
        n_steps_: training steps done.
        relevance_: how much each input matters.
        total_weight_: total weight of the rows seen.
        trained_weight_: the part of it that `history_` counts, held-out rows taken away.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-3, 3, size=(200, 1))
        >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
        >>> model = DeepGPRegressor(max_steps=500, random_state=0).fit(X, y)
        >>> mean, std = model.predict([[0.5]], return_std=True)
        >>> bool(abs(mean[0] - np.sin(0.5)) < 0.2)
        True
    """

    _likelihoods = REGRESSION_LIKELIHOODS
    _classification = False

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        return self._checked(X, y, sample_weight, reset=not self._goes_on())

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "DeepGPRegressor":
        """Learn from further rows, with the scaling of the first call; each call trains for the whole budget.

        A model that `fit` gave an exact last layer goes on by the bound.

        Args:
            X: further rows.
            y: their targets.
            sample_weight: how often each row counts.
        """
        X, y = self._read_if_named(X, y)
        self._fit_more(self._checked(X, y, sample_weight, reset=not hasattr(self, "model_")))
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the coefficient of determination, R squared, of the predicted means.

        Args:
            X: rows.
            y: their targets, or the name of their column.
            sample_weight: how often each row counts.
        """
        X, y = self._read_if_named(X, y)
        return super().score(X, y, sample_weight)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the mean of y, and its standard deviation, noise included, if asked.

        Args:
            X: rows to predict.
            return_std: give `(mean, std)`.
        """
        moments = self._predictive(Moments(), self._checked_inputs(X))
        mean = self._target_scaling.inverse(moments["mean"].astype(np.float64))
        if not return_std:
            return self._shaped(mean)
        variance = moments["epistemic"] + moments["aleatoric"]
        return self._shaped(mean), self._shaped(np.sqrt(variance) * self._target_scaling.scale)

    def predict_summary(self, X: Any, quantiles: Any) -> dict[str, np.ndarray]:
        """Predict `mean`, `std` and `quantiles` of y in one pass over the rows.

        Args:
            X: rows to predict.
            quantiles: levels between 0 and 1.
        """
        levels = _checked_levels(quantiles)
        parts = {"moments": Moments(), "quantiles": Quantiles(levels)}
        found = self._predictive(Several(parts), self._checked_inputs(X))
        moments, scaling = found["moments"], self._target_scaling
        std = np.sqrt(moments["epistemic"] + moments["aleatoric"]) * scaling.scale
        return {
            "mean": self._shaped(scaling.inverse(moments["mean"].astype(np.float64))),
            "std": self._shaped(std),
            "quantiles": self._quantiles_in_units(found["quantiles"]),
        }

    def predict_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict the two parts of the variance of y: epistemic (of the function) and aleatoric (of the noise).

        Args:
            X: rows to predict.
        """
        moments = self._predictive(Moments(), self._checked_inputs(X))
        square = self._target_scaling.scale**2
        return self._shaped(moments["epistemic"] * square), self._shaped(
            moments["aleatoric"] * square
        )

    def predict_quantiles(self, X: Any, quantiles: Any) -> np.ndarray:
        """Predict quantiles of y, along the last axis.

        Args:
            X: rows to predict.
            quantiles: levels between 0 and 1.
        """
        levels = _checked_levels(quantiles)
        return self._quantiles_in_units(
            self._predictive(Quantiles(levels), self._checked_inputs(X))
        )

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Predict central intervals of y: lower and upper end along the last axis.

        Args:
            X: rows to predict.
            coverage: probability that y lies inside.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must lie strictly between 0 and 1; got {coverage!r}.")
        return self.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """Compute each row's log predictive density, in the units of y.

        Args:
            X: rows.
            y: their targets.
        """
        X, Y = self._checked_rows(X, y)
        density = self._predictive(LogDensity(), X, Y=self._scaled_targets(Y))
        return density - self._target_scaling.log_jacobian

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw from the predictive distribution of y, samples along the last axis.

        Args:
            X: rows.
            n_samples: draws for each row; each is one function's values plus noise.
            random_state: seed; None takes the fitted one.
        """
        drawn = self._sampled(X, n_samples, random_state)
        scaling = self._target_scaling
        drawn = np.swapaxes(drawn * scaling.scale + scaling.center, 1, 2)
        return drawn[:, 0] if self._one_target else drawn

    def _finish(self, likelihood: Any, F: jax.Array) -> jax.Array:
        mean, _ = likelihood.moments(F)
        scaling = self._target_scaling
        scale, center = (jnp.asarray(v, F.dtype)[None, :] for v in (scaling.scale, scaling.center))
        values = mean * scale + center
        return values[:, 0] if self._one_target else values

    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Measure predictions: `rmse`, `mnll`, `crps` and `coverage_90`, in the units of y.

        Args:
            X: rows.
            y: their targets.
        """
        return self._scores(*self._checked_rows(X, y)).metrics()

    def _scores(self, X: np.ndarray, Y: np.ndarray) -> RegressionScores:
        parts = {
            "moments": Moments(),
            "log_density": LogDensity(),
            "quantiles": Quantiles(jnp.array([0.05, 0.95])),
            "samples": Samples(self._key("sample")),
        }
        found = self._predictive(Several(parts), X, Y=self._scaled_targets(Y))
        scaling = self._target_scaling
        low, high = (scaling.inverse(found["quantiles"][..., i]) for i in range(2))
        return RegressionScores.of(
            Y,
            scaling.inverse(found["moments"]["mean"]),
            found["log_density"] - scaling.log_jacobian,
            np.moveaxis(found["samples"] * scaling.scale + scaling.center, 1, 2),
            low=low,
            high=high,
        )

    # What regression decides.

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Rows:
        X = check_X(self, X, reset=reset)
        Y = check_targets(y, X)
        if reset:
            self.n_targets_ = Y.shape[1]
            self._one_target = np.asarray(y).ndim == 1
        self._check_n_targets(Y)
        return Rows(X, Y, check_weights(sample_weight, X))

    def _see_targets(self, source: TrainingSource) -> None:
        self.n_targets_, self._one_target = 1, True

    def _streamed(self, X: np.ndarray, y: np.ndarray) -> Rows:
        return Rows(X, y[:, None], np.ones(len(y)))

    def _checked_rows(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        X, y = self._read_if_named(X, y)
        X = self._checked_inputs(X)
        Y = check_targets(y, X)
        self._check_n_targets(Y)
        self._likelihoods[self.config_["likelihood"]].check_targets(Y)
        return X, Y

    def _check_n_targets(self, Y: np.ndarray) -> None:
        if Y.shape[1] != self.n_targets_:
            raise ValueError(
                f"y must have {self.n_targets_} columns, as at the first fit; got {Y.shape[1]}."
            )

    def _learn_targets(self, Y: np.ndarray, config: Config) -> TargetScaling:
        likelihood = self._likelihoods[config.likelihood]
        likelihood.check_targets(Y)
        if not likelihood.location_scale:
            return TargetScaling.none(Y.shape[1])
        if np.any(np.ptp(Y, axis=0) == 0):
            warnings.warn(
                "y is constant, so there is nothing to learn; predictions will be that value.",
                UserWarning,
                stacklevel=4,
            )
        named = [self._target_name] if self._target_name else target_names(Y.shape[1])
        warn_of_rounding(Y, named)
        return TargetScaling.standard(Y)

    def _n_targets(self, Y: np.ndarray) -> int:
        return Y.shape[1]

    def _quantiles_in_units(self, found: np.ndarray) -> np.ndarray:
        scaling = self._target_scaling
        found = found * scaling.scale[None, :, None] + scaling.center[None, :, None]
        return found[:, 0] if self._one_target else found

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._one_target else values

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.non_deterministic = False
        return tags


def _checked_levels(quantiles: Any) -> jax.Array:
    levels = np.atleast_1d(np.asarray(quantiles, np.float64))
    if not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"`quantiles` must lie strictly between 0 and 1; got {quantiles!r}.")
    return jnp.asarray(levels, jnp.float32)
