"""A network with dropout, as the paper compares with: one pass without dropout, or many with it (MC dropout)."""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from bochner.rows.scaling import PREPROCESSINGS, TargetScaling
from experiments.baselines.interface import ClassificationPredictor, Observer, RegressionPredictor
from experiments.baselines.jax_training import JaxTraining, in_parts, single
from experiments.baselines.predictive import GaussianMixture

Parameters = dict[str, Any]


def matched_units(d_in: int, d_out: int, n_hidden: int, *, n_rf: int = 100, width: int = 3) -> int:
    """How many hidden units give a network as many weights as W of the deep GP has (section 4.1).

    With an RBF kernel W has `2 n_rf` rows in each of `n_hidden + 1` layers; biases are not counted.

    Example:
        >>> from experiments.baselines.dropout_network import matched_units
        >>> matched_units(4, 1, n_hidden=1)  # 200 * (3 + 1) weights, 5 a unit
        160
    """
    n_weights = 2 * n_rf * (n_hidden * width + d_out)
    linear, square = d_in + d_out, n_hidden - 1
    if square == 0:
        return max(1, round(n_weights / linear))
    return max(1, round((math.sqrt(linear**2 + 4 * square * n_weights) - linear) / (2 * square)))


@dataclasses.dataclass(frozen=True)
class _Settings(JaxTraining):
    """Sizes and training.

    Attributes:
        n_hidden: hidden layers.
        units: units of each; None matches the number of weights of the paper's deep GP.
        n_mc_predict: passes with dropout of a prediction; 0 is one pass without.
    """

    n_hidden: int = 1
    units: int | None = None
    dropout: float = 0.5
    n_steps: int = 20_000
    n_mc_predict: int = 0

    def start(self, d_in: int, d_out: int, seed: int) -> Parameters:
        units = self.units or matched_units(d_in, d_out, self.n_hidden)
        sizes = [d_in, *[units] * self.n_hidden, d_out]
        keys = jax.random.split(jax.random.key(seed), len(sizes))
        weights = [
            math.sqrt(2 / rows) * jax.random.normal(key, (rows, columns))
            for key, rows, columns in zip(keys[1:], sizes[:-1], sizes[1:], strict=True)
        ]
        biases = [jnp.zeros((1, columns)) for columns in sizes[1:]]
        return {"weights": weights, "biases": biases}

    def forward(self, parameters: Parameters, X: Array, key: PRNGKeyArray | None) -> Array:
        """Compute the outputs, with dropout where a key is given."""
        *hidden, last = zip(parameters["weights"], parameters["biases"], strict=True)
        for number, (weight, bias) in enumerate(hidden):
            X = jax.nn.relu(X @ weight + bias)
            if key is not None:
                kept = jax.random.bernoulli(
                    jax.random.fold_in(key, number), 1 - self.dropout, X.shape
                )
                X = jnp.where(kept, X / (1 - self.dropout), 0.0)
        return X @ last[0] + last[1]

    def passes(self, parameters: Parameters, X: np.ndarray) -> np.ndarray:
        """Compute the outputs of each pass: passes, rows, outputs."""
        return in_parts(lambda part: _passes(self, parameters, part), X)


# Compiled once for a network, however often a training is looked at.
@functools.partial(jax.jit, static_argnums=0)
def _passes(network: _Settings, parameters: Parameters, X: Array) -> Array:
    if network.n_mc_predict == 0:
        return network.forward(parameters, X, None)[None]
    keys = jax.random.split(jax.random.key(0), network.n_mc_predict)
    return jax.lax.map(lambda key: network.forward(parameters, X, key), keys)


@dataclasses.dataclass(frozen=True)
class DropoutRegressor(_Settings):
    """Gaussian noise of one learned deviation."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        scaling, targets = PREPROCESSINGS[self.preprocessing](X), TargetScaling.standard(y[:, None])
        start = self.start(X.shape[1], 1, seed) | {"log_deviation": jnp.zeros(())}

        def loss(parameters, batch, key):
            X, Y = batch
            error = Y - self.forward(parameters, X, key)
            log_deviation = parameters["log_deviation"]
            return jnp.mean(0.5 * (error * jnp.exp(-log_deviation)) ** 2) + log_deviation

        def predictor(parameters) -> RegressionPredictor:
            def predict(X_new: np.ndarray) -> GaussianMixture:
                means = self.passes(parameters, single(scaling(X_new)))[..., 0]
                deviation = np.full_like(means, float(jnp.exp(parameters["log_deviation"])))
                law = GaussianMixture(means, deviation)
                return law.rescaled(targets.center[0], targets.scale[0])

            return predict

        data = single(scaling(X)), single(targets(y[:, None]))
        return self.learned(loss, start, data, predictor, seed=seed, observer=observer)


@dataclasses.dataclass(frozen=True)
class DropoutClassifier(_Settings):
    """Softmax and cross entropy."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        scaling = PREPROCESSINGS[self.preprocessing](X)
        start = self.start(X.shape[1], int(y.max()) + 1, seed)

        def loss(parameters, batch, key):
            X, labels = batch
            logs = jax.nn.log_softmax(self.forward(parameters, X, key))
            return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=1))

        def predictor(parameters) -> ClassificationPredictor:
            def predict(X_new: np.ndarray) -> np.ndarray:
                logits = self.passes(parameters, single(scaling(X_new)))
                return np.asarray(jax.nn.softmax(logits)).mean(axis=0)

            return predict

        data = single(scaling(X)), np.asarray(y, np.int32)
        return self.learned(loss, start, data, predictor, seed=seed, observer=observer)
