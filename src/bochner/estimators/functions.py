"""Functions drawn from the posterior, on raw inputs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bochner.estimators.sources import encoded_matrix, is_source
from bochner.gp.model import FunctionDraw


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

    def __init__(self, draw: FunctionDraw, model: Any):
        self._draw, self._model = draw, model

    def __call__(self, X: Any) -> Any:
        """Evaluate at the rows of X: numbers, or a table like the one fitted."""
        traced, scaling = isinstance(X, jax.Array), self._model._input_scaling
        if is_source(X, encoded=self._model._encoder is not None):
            X = encoded_matrix(self._model, X)
        if not traced:
            X = np.asarray(X, np.float64)
        if X.ndim != 2:
            raise ValueError(
                f"a drawn function takes a matrix, one row a point; got shape {X.shape}."
            )
        n_columns = len(scaling.center)
        if X.shape[1] != n_columns:
            raise ValueError(
                f"a drawn function takes the {n_columns} columns of the fit; got {X.shape[1]}."
            )
        F = self._draw(jnp.asarray(scaling(X), jnp.float32))
        values = self._model._finish(self._draw.model.likelihood, F)
        return values if traced else np.asarray(values)
