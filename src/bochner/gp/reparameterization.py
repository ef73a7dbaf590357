"""How the randomness of q(W) enters a layer's output: through W itself, or through the output directly."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from bochner.features.maps import AbstractDrawnFeatures
from bochner.ops import AbstractBackend, AutomaticLayer, with_clipped_gradient
from bochner.ops.clipping import Function
from bochner.posteriors.gaussians import AnyGaussian, FactorizedGaussian


class AbstractReparameterization(eqx.Module):
    """A map from standard normal noise to the output `Phi @ W` with W from q(W).

    It has two parts, since the first does not need the layer's inputs: equal layers do it together, and then follow
    each other with the second alone.

    Attributes:
        backend: how features and their products with weights are computed.
    """

    backend: eqx.AbstractVar[AbstractBackend]

    @abstractmethod
    def noise_shape(self, feat: int, d_out: int, batch: int) -> tuple[int, int]:
        """The shape of the noise for one Monte Carlo sample of one layer."""

    @abstractmethod
    def weights(
        self,
        features: AbstractDrawnFeatures,
        q_W: AnyGaussian,
        noise: Float[Array, "..."],
    ) -> Any:
        """Compute what the noise and q(W) bring to a layer, whatever its inputs are."""

    @abstractmethod
    def outputs(
        self,
        features: AbstractDrawnFeatures,
        inputs: tuple[Float[Array, "_ batch"], ...],
        weights: Any,
    ) -> Float[Array, "d_out batch"]:
        """Compute one draw of the output, with the data as columns; inputs count as one matrix."""

    def on(self, backend: AbstractBackend) -> "AbstractReparameterization":
        """Give the same with another way to compute the layer."""
        return type(self)(backend)  # pyright: ignore[reportCallIssue]

    def through(
        self, layer: Function, first: Float[Array, "_ batch"], others: PyTree
    ) -> Float[Array, "_ batch"]:
        """Compute `layer(first, others)`, and decide how gradients come back to its first inputs."""
        return layer(first, others)

    def exact(self) -> "AbstractReparameterization":
        """Give the same with exact gradients."""
        return self


class DrawWeights(AbstractReparameterization):
    """Draw W once and use it for all rows: a draw is a function (section 3.2).

    Example:
        >>> from bochner.gp.reparameterization import DrawWeights
        >>> DrawWeights().noise_shape(feat=200, d_out=3, batch=50)
        (200, 3)
    """

    backend: AbstractBackend = AutomaticLayer()

    def noise_shape(self, feat: int, d_out: int, batch: int) -> tuple[int, int]:  # noqa: D102
        return feat, d_out

    def weights(self, features, q_W, noise):  # noqa: D102
        # The factor goes to W, which is small, and not to the features, which are large.
        return jnp.sqrt(features.variance()) * q_W.sample(noise)

    def outputs(self, features, inputs, weights):  # noqa: D102
        return features.outputs(self.backend, inputs, weights)


class LocalReparameterization(AbstractReparameterization):
    """Draw each row's output from its marginal Gaussian (Kingma, Salimans and Welling, 2015).

    Gradients have less variance, since rows do not share their noise; for the same reason a draw is not a
    function, and this is for training only.

    Example:
        >>> from bochner.gp.reparameterization import LocalReparameterization
        >>> LocalReparameterization().noise_shape(feat=200, d_out=3, batch=50)
        (50, 3)
    """

    backend: AbstractBackend = AutomaticLayer()

    def noise_shape(self, feat: int, d_out: int, batch: int) -> tuple[int, int]:  # noqa: D102
        return batch, d_out

    def weights(self, features, q_W, noise):  # noqa: D102
        assert isinstance(q_W, FactorizedGaussian)  # as everywhere in training
        factor = features.variance()
        return jnp.sqrt(factor) * q_W.mean, factor * q_W.variance, noise.T

    def outputs(self, features, inputs, weights):  # noqa: D102
        mean_W, variance_W, noise = weights
        mean, variance = features.moments(self.backend, inputs, mean_W, variance_W)
        # Rows whose features are all zero have no variance, where the square root has no derivative.
        return mean + jnp.sqrt(jnp.maximum(variance, 1e-20)) * noise


class ClippedGradients(AbstractReparameterization):
    """Another reparameterization, with gradients clipped row by row on their way back through each layer.

    A layer may draw nearby points apart, and many layers do so exponentially: then the gradients of the first ones are
    long, and hardly more than noise. What is computed is the same; a row's gradient with respect to what the layer
    before gave is clipped to the norm of that with respect to what this layer gives. Rows that are not drawn apart keep
    theirs, so they count among those that are. The gradients of the layers before are biased then. For training
    many layers.

    Attributes:
        inner: what computes the outputs.

    Example:
        >>> from bochner.gp.reparameterization import ClippedGradients, LocalReparameterization
        >>> ClippedGradients(LocalReparameterization()).noise_shape(feat=200, d_out=3, batch=50)
        (50, 3)
    """

    inner: AbstractReparameterization

    def __init__(self, inner: AbstractReparameterization):
        self.inner = inner

    @property
    def backend(self) -> AbstractBackend:  # pyright: ignore[reportIncompatibleVariableOverride]  # noqa: D102
        return self.inner.backend

    def on(self, backend: AbstractBackend) -> "ClippedGradients":  # noqa: D102
        return ClippedGradients(self.inner.on(backend))

    def noise_shape(self, feat: int, d_out: int, batch: int) -> tuple[int, int]:  # noqa: D102
        return self.inner.noise_shape(feat, d_out, batch)

    def weights(self, features, q_W, noise):  # noqa: D102
        return self.inner.weights(features, q_W, noise)

    def outputs(self, features, inputs, weights):  # noqa: D102
        return self.inner.outputs(features, inputs, weights)

    def through(self, layer, first, others):  # noqa: D102
        return with_clipped_gradient(layer, first, others)

    def exact(self) -> AbstractReparameterization:  # noqa: D102
        return self.inner
