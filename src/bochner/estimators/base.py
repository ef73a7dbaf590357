"""What both estimators share: parameters, training, prediction, saving."""

import copy
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bochner.estimators.config import check_whole_number
from bochner.estimators.fitting import Fitting
from bochner.estimators.functions import ScaledFunction
from bochner.estimators.plots import PlotsMixin
from bochner.features.spectra import PriorFixed
from bochner.gp.layers import Layer
from bochner.prediction.statistics import (
    AbstractStatistic,
    Samples,
)


class BaseDeepGP(PlotsMixin, Fitting):
    """Parameters and machinery of `DeepGPRegressor` and `DeepGPClassifier`."""

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
        fixed = copy.copy(self)  # fitting again must not change what was drawn before
        return [ScaledFunction(draw, fixed) for draw in draws]

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
        layers = [
            layer
            for model in self.model_.each()
            for layer in (model.layers if model.feed_inputs else model.layers[:1])
        ]
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


def _squared_frequencies(layer: Layer) -> np.ndarray:
    """Compute the mean square of a layer's frequencies for each input, without a Matern kernel's scales."""
    if isinstance(layer.spectrum, PriorFixed):
        d_in = layer.spectrum.epsilon.shape[0]
        return np.broadcast_to(np.exp(-2.0 * np.asarray(layer.kernel.log_lengthscale)), (d_in,))
    q_Omega = layer.spectrum.q_Omega  # pyright: ignore[reportAttributeAccessIssue]
    return np.asarray(jnp.mean(q_Omega.mean**2 + q_Omega.variance, axis=1))
