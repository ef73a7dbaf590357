"""Several classes, one function each."""

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from bochner.likelihoods.base import AbstractClassificationLikelihood


class Softmax(AbstractClassificationLikelihood):
    """The law `P(class k) = exp(f_k) / sum_j exp(f_j)`.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Softmax
        >>> jnp.exp(Softmax().log_probabilities(jnp.zeros((1, 4)))).round(2).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """

    @classmethod
    def from_targets(cls, Y: np.ndarray, noise_variance: float) -> "Softmax":  # noqa: D102
        return cls()

    @staticmethod
    def n_functions(n_targets: int) -> int:  # noqa: D102
        return n_targets

    def log_probabilities(self, F):  # noqa: D102
        return jax.nn.log_softmax(F, axis=1)

    def sample(self, F, *, key: PRNGKeyArray):  # noqa: D102
        return jax.random.categorical(key, F, axis=1)[:, None]
