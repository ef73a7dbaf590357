"""What every likelihood provides: log density, predictive moments, draws."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, Shaped


class AbstractLikelihood(eqx.Module):
    """The law of the targets given the last layer's outputs: `p(y | f)`, row by row."""

    location_scale: ClassVar[bool] = False
    """Whether standardized targets are as good as raw ones; if so the estimators standardize them."""

    gaussian_noise: ClassVar[bool] = False
    """Whether targets are Gaussian around the first functions, with a variance that the others alone decide."""

    discrete: ClassVar[bool] = False
    """Whether targets are counts."""

    @staticmethod
    @abstractmethod
    def n_functions(n_targets: int) -> int:
        """How many functions the last layer must have."""

    @classmethod
    @abstractmethod
    def from_targets(cls, Y: np.ndarray, noise_variance: float) -> "AbstractLikelihood":
        """Build the likelihood with initial values for these targets, as the model will see them."""

    @abstractmethod
    def log_prob(
        self, F: Float[Array, "batch d_out"], Y: Shaped[Array, "batch targets"]
    ) -> Float[Array, " batch"]:
        """Compute `log p(y | f)`, summed over targets."""

    @abstractmethod
    def sample(
        self, F: Float[Array, "batch d_out"], *, key: PRNGKeyArray
    ) -> Shaped[Array, "batch targets"]:
        """Draw targets given the functions' values."""

    @staticmethod
    def check_targets(Y: np.ndarray) -> None:
        """Raise `ValueError` where a target lies outside the likelihood's range."""


class AbstractRegressionLikelihood(AbstractLikelihood):
    """A likelihood of numbers, with moments and a distribution function."""

    @abstractmethod
    def log_density(
        self, F: Float[Array, "batch d_out"], Y: Float[Array, "batch targets"]
    ) -> Float[Array, "batch targets"]:
        """Compute `log p(y | f)` of each target."""

    def log_prob(self, F, Y):  # noqa: D102
        return jnp.sum(self.log_density(F, Y), axis=1)

    @abstractmethod
    def moments(
        self, F: Float[Array, "batch d_out"]
    ) -> tuple[Float[Array, "batch targets"], Float[Array, "batch targets"]]:
        """Compute mean and variance of the targets given f."""

    @abstractmethod
    def cdf(
        self, F: Float[Array, "batch d_out"], Y: Float[Array, "batch targets"]
    ) -> Float[Array, "batch targets"]:
        """Compute `P(target <= y | f)`."""


class AbstractClassificationLikelihood(AbstractLikelihood):
    """A likelihood of class indices, held in a single integer column."""

    n_classes: ClassVar[int | None] = None
    """How many classes there must be; any number where None."""

    @abstractmethod
    def log_probabilities(self, F: Float[Array, "batch d_out"]) -> Float[Array, "batch classes"]:
        """Compute the log probability of each class given f."""

    def log_prob(self, F, Y):  # noqa: D102
        return jnp.take_along_axis(self.log_probabilities(F), Y, axis=1)[:, 0]
