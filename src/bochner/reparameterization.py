"""How the randomness of q(W) enters a layer's output: through W itself, or through the output directly."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from bochner.gaussians import AnyGaussian, FactorizedGaussian
from bochner.kernels import AbstractKernel


class AbstractReparameterization(eqx.Module):
    """A map from standard normal noise to the output `Phi @ W` with W from q(W)."""

    @abstractmethod
    def noise_shape(self, feat: int, d_out: int, batch: int) -> tuple[int, int]:
        """The shape of the noise for one Monte Carlo sample of one layer."""

    @abstractmethod
    def __call__(
        self,
        kernel: AbstractKernel,
        Z: Float[Array, "rf batch"],
        q_W: AnyGaussian,
        noise: Float[Array, "..."],
    ) -> Float[Array, "d_out batch"]:
        """Compute one draw of the output, transposed, from the projected inputs `Z = (F @ Omega).T`."""


class DrawWeights(AbstractReparameterization):
    """Draw W once and use it for all rows: a draw is a function (section 3.2).

    Example:
        >>> from bochner.reparameterization import DrawWeights
        >>> DrawWeights().noise_shape(feat=200, d_out=3, batch=50)
        (200, 3)
    """

    def noise_shape(self, feat: int, d_out: int, batch: int) -> tuple[int, int]:  # noqa: D102
        return feat, d_out

    def __call__(self, kernel, Z, q_W, noise):  # noqa: D102
        # The factor goes to W, which is small, and not to the features, which are large.
        W = jnp.sqrt(kernel.feature_variance(Z.shape[0])) * q_W.sample(noise)
        return W.T @ kernel.features(Z)


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

    def __call__(self, kernel, Z, q_W, noise):  # noqa: D102
        assert isinstance(q_W, FactorizedGaussian)  # as everywhere in training
        parts, factor = kernel.activate(Z), kernel.feature_variance(Z.shape[0])
        mean = _combine(parts, jnp.sqrt(factor) * q_W.mean)
        variance = _combine_squares(parts, factor * q_W.variance)
        # Rows whose features are all zero have no variance, where the square root has no derivative.
        return mean + jnp.sqrt(jnp.maximum(variance, 1e-20)) * noise.T


def _combine(parts: tuple[Array, ...], weights: Array) -> Array:
    """Compute `weights.T @ concatenate(parts)` as a sum of one product a part."""
    n_rf = parts[0].shape[0]
    products = [weights[i * n_rf : (i + 1) * n_rf].T @ part for i, part in enumerate(parts)]
    return sum(products[1:], start=products[0])


def _combine_squares(parts: tuple[Array, ...], weights: Array) -> Array:
    """Compute `weights.T @ concatenate(parts)**2`.

    Two parts are a cosine and a sine, whose squares sum to one, so that one product is enough:
    `w_cos cos^2 + w_sin sin^2 = (w_cos - w_sin) cos^2 + w_sin`.
    """
    if len(parts) == 1:
        return weights.T @ parts[0] ** 2
    cosine, _ = parts
    w_cosine, w_sine = jnp.split(weights, 2)
    return (w_cosine - w_sine).T @ cosine**2 + jnp.sum(w_sine, axis=0)[:, None]
