"""How a deep model is made from its settings: the one place that says so."""

import dataclasses
from typing import Any

import jax
import numpy as np

from bochner.fitting.config import Config
from bochner.gp.members import Members, start_members
from bochner.gp.model import DeepGP
from bochner.likelihoods import CLASSIFICATION_LIKELIHOODS, LIKELIHOODS
from bochner.rows.table import Table, TrainingData


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """A deep model with numbers of inputs and targets.

    Attributes:
        config: its settings.
        d_in: inputs.
        n_outputs: targets, or classes.

    Example:
        >>> import jax
        >>> from bochner.fitting.recipes import Situation, fill
        >>> from bochner.fitting.config import Config
        >>> from bochner.fitting.spec import ModelSpec
        >>> values = fill({}, "paper", Situation(n_rows=100, d_in=2, classification=False))
        >>> spec = ModelSpec(Config.checked({**values, "preset": "paper", "seed": 0}, ["gaussian"]), 2, 1)
        >>> spec.skeleton().n_layers
        2
    """

    config: Config
    d_in: int
    n_outputs: int

    def start(self, Y: np.ndarray, *, key: jax.Array) -> DeepGP | Members:
        """Start the model, its likelihood with initial values for scaled targets Y."""
        config, likelihood = self.config, LIKELIHOODS[self.config.likelihood]
        d_out = likelihood.n_functions(self.n_outputs)

        def one(key: jax.Array) -> DeepGP:
            return DeepGP.start(
                config.layer_settings(self.d_in, d_out),
                likelihood.from_targets(Y, config.noise_variance),
                d_in=self.d_in,
                feed_inputs=config.feed_inputs,
                key=key,
            )

        return start_members(one, config.n_members, key=key)

    def conditioned(self, data: TrainingData, model: Any, *, key: jax.Array) -> Any:
        """Give a trained model the posterior of its objective, such as an exact one of the last layer."""
        return self.config.maximized.posterior(
            model, data, n_draws=self.config.n_conditioned, key=key
        )

    def calibrated(self, data: TrainingData, model: Any) -> Any:
        """Choose the widths of predictions by rows left out of the last layer, where the settings ask for it."""
        return self.config.maximized.calibrated(model, data) if self.config.calibrates else model

    def ready(self, data: TrainingData, model: Any, *, key: jax.Array) -> Any:
        """Give a trained model as it predicts."""
        return self.calibrated(data, self.conditioned(data, model, key=key))

    def skeleton(self) -> Any:
        """Give names and shapes of a model's arrays as it predicts, without any computation."""

        def build() -> Any:
            n_columns = (
                1 if self.config.likelihood in CLASSIFICATION_LIKELIHOODS else self.n_outputs
            )
            integers = self.config.likelihood in CLASSIFICATION_LIKELIHOODS
            Y = np.zeros((1, n_columns), np.int32 if integers else np.float64)
            started = self.start(Y, key=jax.random.key(0))
            return self.ready(Table.of(np.zeros((1, self.d_in)), Y), started, key=jax.random.key(0))

        return jax.eval_shape(build)
