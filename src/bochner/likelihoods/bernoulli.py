"""Two classes through one function."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from bochner.likelihoods.base import AbstractClassificationLikelihood


class Bernoulli(AbstractClassificationLikelihood):
    """The law `P(class 1) = sigmoid(f)`.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Bernoulli
        >>> jnp.exp(Bernoulli().log_probabilities(jnp.zeros((1, 1)))).tolist()
        [[0.5, 0.5]]
    """

    n_classes: ClassVar[int | None] = 2

    @classmethod
    def from_targets(cls, Y: np.ndarray, noise_variance: float) -> "Bernoulli":  # noqa: D102
        return cls()

    @staticmethod
    def n_functions(n_targets: int) -> int:  # noqa: D102
        return 1

    def log_probabilities(self, F):  # noqa: D102
        return jnp.concatenate([jax.nn.log_sigmoid(-F), jax.nn.log_sigmoid(F)], axis=1)

    def sample(self, F, *, key: PRNGKeyArray):  # noqa: D102
        return jax.random.bernoulli(key, jax.nn.sigmoid(F)).astype(jnp.int32)
