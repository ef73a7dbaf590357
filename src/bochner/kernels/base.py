"""What every covariance provides: the exact function, its frequency law, its activation."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.ops.fused_layer import Activation, CosineSine


class AbstractKernel(eqx.Module):
    """A covariance `k(x, x')` with variance and lengthscales, and the random features that approximate it.

    A frequency is `scale * g / lengthscale`, with `g` standard normal and `scale` drawn by `draw_scales`. Features are
    `sqrt(feature_variance(n_rf))` times the activation of the projected inputs, so that their inner product has
    the covariance as its mean (sections 2.1 and 3 of the paper).
    """

    log_variance: eqx.AbstractVar[Float[Array, "..."]]
    log_lengthscale: eqx.AbstractVar[Float[Array, "..."]]

    n_parts: ClassVar[int]
    """How many features one frequency gives: 1, or 2, which must then be its cosine and its sine."""

    @abstractmethod
    def covariance(
        self, X: Float[Array, "n d_in"], X2: Float[Array, "m d_in"]
    ) -> Float[Array, "n m"]:
        """Compute the exact covariance matrix between the rows of X and those of X2."""

    @abstractmethod
    def draw_scales(self, n_rf: int, *, key: PRNGKeyArray) -> Float[Array, " rf"]:
        """Draw the random scale of each frequency; ones where the frequency law is Gaussian."""

    @abstractmethod
    def activate(self, Z: Float[Array, "batch rf"]) -> tuple[Float[Array, "batch rf"], ...]:
        """Apply the activation to the projected inputs `Z = F @ Omega`, one array a part."""

    def features(self, Z: Float[Array, "rf batch"]) -> Float[Array, "feat batch"]:
        """Apply the activation to transposed projections, all parts one below the other."""
        return jnp.concatenate(self.activate(Z))

    def activation(self) -> Activation | None:
        """Name the activation for kernels on a GPU; None leaves the layer to XLA."""
        return CosineSine() if self.n_parts == 2 else None

    @abstractmethod
    def feature_variance(self, n_rf: int) -> Float[Array, ""]:
        """Compute the squared factor in front of the activations."""

    def gradients_vanish(self) -> bool:
        """Tell whether the activation has zero derivative almost everywhere."""
        return False

    def scaled(self, X: Float[Array, "n d_in"]) -> Float[Array, "n d_in"]:
        """Divide the columns of X by the lengthscales."""
        return X / jnp.broadcast_to(jnp.exp(self.log_lengthscale), (1, X.shape[1]))


def squared_distance(X: Float[Array, "n d_in"], X2: Float[Array, "m d_in"]) -> Float[Array, "n m"]:
    """Compute squared Euclidean distances from differences, which stay exact for close points."""
    difference = X[:, None, :] - X2[None, :, :]
    return jnp.sum(difference**2, axis=-1)
