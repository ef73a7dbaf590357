"""The variational lower bound: expected log-likelihood minus KL (section 3.2)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from bochner.model import DeepGP, Noise
from bochner.reparameterization import AbstractReparameterization


class Bound(NamedTuple):
    """The lower bound and its two parts, totals over the data: `elbo = ell - kl`."""

    elbo: Float[Array, ""]
    ell: Float[Array, ""]
    kl: Float[Array, ""]


def expected_log_likelihood(
    model: DeepGP,
    X: Float[Array, "batch d_in"],
    Y: Shaped[Array, "batch targets"],
    weights: Float[Array, " batch"],
    noise: Noise,
    reparameterization: AbstractReparameterization,
) -> Float[Array, ""]:
    """Estimate the batch's part of E: log-likelihoods times row weights, mean over the leading axis of `noise`."""

    def one_sample(sample_noise: Noise) -> Array:
        return model.likelihood.log_prob(model(X, sample_noise, reparameterization), Y)

    log_probs = jax.vmap(one_sample)(noise)
    return jnp.sum(jnp.mean(log_probs, axis=0) * weights)


def estimate_bound(
    model: DeepGP,
    X: Float[Array, "batch d_in"],
    Y: Shaped[Array, "batch targets"],
    weights: Float[Array, " batch"],
    noise: Noise,
    reparameterization: AbstractReparameterization,
    *,
    scale: Float[Array, ""] | float,
) -> Bound:
    """Estimate the bound from a mini-batch; `scale` is n / m, the data's rows over the batch's.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.bound import estimate_bound
        >>> from bochner.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.model import DeepGP
        >>> from bochner.reparameterization import DrawWeights
        >>> model = DeepGP.start(
        ...     [LayerSettings(1)], Gaussian.start(1), d_in=1, feed_inputs=False, key=jax.random.key(0)
        ... )
        >>> noise = model.draw_noise((5,), key=jax.random.key(1))
        >>> bound = estimate_bound(
        ...     model, jnp.zeros((4, 1)), jnp.zeros((4, 1)), jnp.ones(4), noise, DrawWeights(), scale=10.0
        ... )
        >>> float(bound.kl), bool(bound.elbo == bound.ell)  # q starts at the prior
        (0.0, True)
    """
    ell = scale * expected_log_likelihood(model, X, Y, weights, noise, reparameterization)
    kl = model.kl()
    return Bound(elbo=ell - kl, ell=ell, kl=kl)
