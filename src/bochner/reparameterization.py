"""How the randomness of q(W) enters a layer's output: through W itself, or through the output directly."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from bochner.gaussians import FactorizedGaussian
from bochner.ops import combine


class AbstractReparameterization(eqx.Module):
    """A map from standard normal noise to the output `Phi @ W` with W from q(W)."""

    @abstractmethod
    def noise_shape(self, feat: int, d_out: int, batch: int) -> tuple[int, int]:
        """The shape of the noise for one Monte Carlo sample of one layer."""

    @abstractmethod
    def __call__(
        self,
        parts: tuple[Float[Array, "batch rf"], ...],
        feature_variance: Float[Array, ""],
        q_W: FactorizedGaussian,
        noise: Float[Array, "..."],
    ) -> Float[Array, "batch d_out"]:
        """Compute one draw of the output."""


class DrawWeights(AbstractReparameterization):
    """Draw W once and use it for all rows: a draw is a function (section 3.2).

    Example:
        >>> from bochner.reparameterization import DrawWeights
        >>> DrawWeights().noise_shape(feat=200, d_out=3, batch=50)
        (200, 3)
    """

    def noise_shape(self, feat: int, d_out: int, batch: int) -> tuple[int, int]:  # noqa: D102
        return feat, d_out

    def __call__(self, parts, feature_variance, q_W, noise):  # noqa: D102
        # The factor goes to W, which is small, and not to the features, which are large.
        return combine(parts, jnp.sqrt(feature_variance) * q_W.sample(noise))


class LocalReparameterization(AbstractReparameterization):
    """Draw each row's output from its marginal Gaussian (Kingma, Salimans and Welling, 2015).

    Gradients have less variance, since rows do not share their noise; for the same reason a draw is not a
    function, and this is for training only.

    Example:
        >>> from bochner.reparameterization import LocalReparameterization
        >>> LocalReparameterization().noise_shape(feat=200, d_out=3, batch=50)
        (50, 3)
    """

    def noise_shape(self, feat: int, d_out: int, batch: int) -> tuple[int, int]:  # noqa: D102
        return batch, d_out

    def __call__(self, parts, feature_variance, q_W, noise):  # noqa: D102
        mean = combine(parts, jnp.sqrt(feature_variance) * q_W.mean)
        squares = tuple(part**2 for part in parts)
        variance = combine(squares, feature_variance * q_W.variance)
        # Rows whose features are all zero have no variance, where the square root has no derivative.
        return mean + jnp.sqrt(jnp.maximum(variance, 1e-20)) * noise
