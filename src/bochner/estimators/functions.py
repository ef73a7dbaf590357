"""Functions drawn from the posterior, on raw inputs."""

from typing import Any

import jax
import numpy as np

from bochner.fitting.sources import encoded_matrix, is_source
from bochner.members.fitted import Fitted
from bochner.members.parts import Function


class DrawnFunction:
    """A function drawn from the posterior, on raw inputs and in the targets' units.

    The same function wherever it is evaluated; NumPy arrays in give NumPy arrays out, and JAX arrays can be
    traced, compiled and differentiated.

    Example:
        >>> import numpy as np
        >>> from bochner import Deep, DeepGPRegressor
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(Deep(max_steps=10), random_state=0).fit(x, np.sin(6 * x[:, 0]))
        >>> f = model.sample_functions(1)[0]
        >>> bool(np.all(f(x) == f(x)))
        True
    """

    def __init__(self, function: Function, fitted: Fitted):
        self._function, self._fitted = function, fitted

    def __call__(self, X: Any) -> Any:
        """Evaluate at the rows of X: numbers, or a table like the one fitted."""
        traced = isinstance(X, jax.Array)
        if is_source(X, encoded=self._fitted.encoder is not None):
            X = encoded_matrix(self._fitted.reader, X)
        if not traced:
            X = np.asarray(X, np.float64)
        if X.ndim != 2:
            raise ValueError(
                f"a drawn function takes a matrix, one row a point; got shape {X.shape}."
            )
        if X.shape[1] != self._fitted.d_in:
            raise ValueError(
                f"a drawn function takes the {self._fitted.d_in} columns of the fit; got {X.shape[1]}."
            )
        # Scaling is in the precision of what is given: NumPy's float64, or that of a traced array.
        values = self._function(X)
        return values if traced else np.asarray(values)
