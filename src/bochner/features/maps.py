"""What turns a layer's inputs into features: what every feature map provides, and how it starts."""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from bochner.features.frequencies import AbstractFrequencies, Independent
from bochner.features.spectra import AbstractSpectrum, VarFixed
from bochner.kernels import RBF, AbstractKernel
from bochner.ops import AbstractBackend
from bochner.posteriors.hyperparameters import FreeTheta, PriorTheta, VariationalTheta

Inputs = tuple[Float[Array, "_ batch"], ...]
"""Matrices with the data as columns, which count as one matrix, one below the other."""


class AbstractDrawnFeatures(eqx.Module):
    """The features of one Monte Carlo sample: nothing is left to be drawn, only inputs are missing."""

    @abstractmethod
    def variance(self) -> Float[Array, ""]:
        """Compute the squared factor in front of the features; it goes to the weights, which are few."""

    @abstractmethod
    def columns(self, inputs: Inputs) -> Float[Array, "feat batch"]:
        """Compute the features without that factor."""

    def outputs(
        self, backend: AbstractBackend, inputs: Inputs, W: Float[Array, "feat d_out"]
    ) -> Float[Array, "d_out batch"]:
        """Compute `W.T @ columns(inputs)`; in float32, unless a feature map knows what the backend is for."""
        with jax.default_matmul_precision("float32"):
            return W.T @ self.columns(inputs)

    def moments(
        self,
        backend: AbstractBackend,
        inputs: Inputs,
        mean: Float[Array, "feat d_out"],
        variance: Float[Array, "feat d_out"],
    ) -> tuple[Float[Array, "d_out batch"], Float[Array, "d_out batch"]]:
        """Compute mean and variance of the outputs for weights with these means and variances."""
        with jax.default_matmul_precision("float32"):
            Phi = self.columns(inputs)
            return mean.T @ Phi, variance.T @ Phi**2

    def matrix(self, F: Float[Array, "batch d_in"]) -> Float[Array, "batch feat"]:
        """Compute the feature matrix of the paper, scaled, one row a row of the inputs."""
        return jnp.sqrt(self.variance()) * self.columns((F.T,)).T


class AbstractFeatureMap(eqx.Module):
    """From a layer's inputs to features `Phi` whose product with weights from N(0, 1) is the layer's prior.

    It holds what is learned of the features, or drawn, and says what that adds to the KL. Answers that are given here
    are those of a map without parameters.
    """

    @classmethod
    @abstractmethod
    def start(
        cls, settings: "LayerSettings", *, d_in: int, key: PRNGKeyArray
    ) -> "AbstractFeatureMap":
        """Give the map at its initial values."""

    @property
    @abstractmethod
    def d_in(self) -> int:
        """The number of inputs."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of features."""

    @property
    def n_rf(self) -> int:
        """What `LayerSettings.n_rf` must be for so many features."""
        return self.n_features

    @abstractmethod
    def covariance(
        self, X: Float[Array, "n d_in"], X2: Float[Array, "m d_in"]
    ) -> Float[Array, "n m"]:
        """Compute the covariance of the layer's prior, which is the mean of `Phi(X) @ Phi(X2).T` over draws."""

    @abstractmethod
    def draw(self, noise: Any) -> AbstractDrawnFeatures:
        """Compute the features of one Monte Carlo sample; noise is None where none is needed."""

    def noise_shapes(self) -> PyTree:
        """The shapes of the noise that one Monte Carlo sample needs; None where features are not drawn."""
        return None

    @property
    def is_shared(self) -> bool:
        """Whether all Monte Carlo samples have the same frequencies, or whatever features are made of."""
        return True

    @property
    def has_posterior(self) -> bool:
        """Whether training learns a posterior of frequencies, or of whatever features are made of."""
        return False

    def kl(self) -> Float[Array, ""]:
        """Compute what the map adds to the KL."""
        return jnp.zeros(())

    def log_prior(self) -> Float[Array, ""]:
        """Compute the log prior, given theta, of what has a posterior beside theta; for Markov chains on theta."""
        return jnp.zeros(())

    def trainable(self, *, theta: bool, omega: bool) -> "AbstractFeatureMap":
        """Mark the leaves that a stage learns which learns theta or not, and the features' posterior or not."""
        return jax.tree.map(lambda _: False, self)

    def check_learnable(self, number: int) -> None:
        """Refuse to be the layer of this number where no gradient would reach what has to be learned before it."""

    def held(self, noise: Any) -> "AbstractFeatureMap":
        """Give the map that always draws what this noise does."""
        return self

    def released(self) -> "AbstractFeatureMap":
        """Give the map as it was before a draw was held."""
        return self

    def at_mean(self) -> "AbstractFeatureMap":
        """Give the map with theta at its mean."""
        return self


@dataclasses.dataclass(frozen=True)
class LayerSettings:
    """How to start a layer: its size, its kernel and initial values, and the treatment of Omega.

    Attributes:
        width: number of Gaussian processes, that is outputs.
        n_rf: number of random features (frequencies).
        kernel: constructor taking `log_variance` and `log_lengthscale`.
        omega: the treatment of Omega.
        frequencies: how epsilon is drawn.
        ard: one lengthscale an input, or one for all.
        variance: initial marginal variance.
        lengthscale: initial lengthscale; None means the square root of the number of inputs.
        log_var: initial log variance of q(W); zero starts q(W) at the prior.
        theta: the treatment of the kernel's variance and lengthscales.
        theta_deviation: deviation of the prior of their logarithms, where the treatment has one.
        residual: add the layer's first inputs, as many as outputs, to them: identity plus Gaussian process.
        features: the feature map; None means random features of the kernel.
    """

    width: int
    n_rf: int = 100
    kernel: Callable[..., AbstractKernel] = RBF
    omega: type[AbstractSpectrum] = VarFixed
    frequencies: AbstractFrequencies = dataclasses.field(default_factory=Independent)
    ard: bool = True
    variance: float = 1.0
    lengthscale: float | None = None
    log_var: float = 0.0
    theta: type[FreeTheta] | type[PriorTheta] | type[VariationalTheta] = FreeTheta
    theta_deviation: float = 1.0
    residual: bool = False
    features: type[AbstractFeatureMap] | None = None
