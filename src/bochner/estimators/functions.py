"""Functions drawn from the posterior, on raw inputs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bochner.data.scaling import InputScaling
from bochner.model import FunctionDraw


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
