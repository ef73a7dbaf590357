"""The variational lower bound: expected log-likelihood minus KL (section 3.2)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from bochner.gp.layers import Stack
from bochner.gp.model import DeepGP, Noise
from bochner.gp.reparameterization import AbstractReparameterization
from bochner.ops import sample_mean


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
    *,
    one_at_a_time: bool = False,
) -> Float[Array, ""]:
    """Estimate the batch's part of E: log-likelihoods times row weights, mean over the leading axis of `noise`.

    Samples run side by side, or, with `one_at_a_time`, one after another: the same mean in the memory of one sample.
    """
    n_samples = jax.tree.leaves(noise)[0].shape[0]
    if n_samples == 1:
        noise = jax.tree.map(lambda leaf: leaf[0], noise)
        return _total(model, model(X, noise, reparameterization), Y, weights)
    if one_at_a_time:
        return _sequential_mean(model, X, Y, weights, noise, reparameterization)

    backend = reparameterization.backend
    several = reparameterization.on(backend.side_by_side(n_samples))
    if not _features_are_shared(model):

        def one_sample(sample_noise: Noise) -> Array:
            return _total(model, model(X, sample_noise, several), Y, weights)

        return jnp.mean(jax.vmap(one_sample)(noise))

    first_F = _first_outputs(model, X, noise, reparameterization.on(backend.of_shared_inputs()))

    def later_layers(F: Array, sample_noise: Noise) -> Array:
        F = model.after_first_block(F, X, sample_noise, several)
        return _total(model, F, Y, weights)

    return jnp.mean(jax.vmap(later_layers)(first_F, noise[1:]))


def _total(model: DeepGP, F: Array, Y: Array, weights: Array) -> Array:
    return jnp.sum(model.likelihood.log_prob(F, Y) * weights)


def _features_are_shared(model: DeepGP) -> bool:
    """Tell whether the first layer has the same features in all samples."""
    return not isinstance(model.blocks[0], Stack) and model.blocks[0].features.is_shared


def _first_outputs(
    model: DeepGP, X: Array, noise: Noise, reparameterization: AbstractReparameterization
) -> Array:
    """Compute the outputs of the first layer in all samples: their weights, side by side, make one product."""
    first, exact = model.blocks[0], reparameterization.exact()  # no gradient goes back to data
    return jax.vmap(lambda sample: first((X,), sample, exact))(noise[0])


def _sequential_mean(
    model: DeepGP,
    X: Array,
    Y: Array,
    weights: Array,
    noise: Noise,
    reparameterization: AbstractReparameterization,
) -> Array:
    if not _features_are_shared(model):

        def one_sample(shared, sample):
            model, X, Y, weights = shared
            return _total(model, model(X, sample, reparameterization), Y, weights)

        return sample_mean(one_sample, (model, X, Y, weights), noise)

    first_F = _first_outputs(model, X, noise, reparameterization)
    later: DeepGP = eqx.tree_at(lambda model: model.blocks[0], model, replace=None)

    def later_layers(shared, sample):
        model, X, Y, weights = shared
        F = model.after_first_block(sample[0], X, sample[1], reparameterization)
        return _total(model, F, Y, weights)

    return sample_mean(later_layers, (later, X, Y, weights), (first_F, noise[1:]))


def estimate_bound(
    model: DeepGP,
    X: Float[Array, "batch d_in"],
    Y: Shaped[Array, "batch targets"],
    weights: Float[Array, " batch"],
    noise: Noise,
    reparameterization: AbstractReparameterization,
    *,
    scale: Float[Array, ""] | float,
    one_at_a_time: bool = False,
) -> Bound:
    """Estimate the bound from a mini-batch; `scale` is n / m, the data's rows over the batch's.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.inference.bound import estimate_bound
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> from bochner.gp.reparameterization import DrawWeights
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
    ell = scale * expected_log_likelihood(
        model, X, Y, weights, noise, reparameterization, one_at_a_time=one_at_a_time
    )
    kl = model.kl()
    return Bound(elbo=ell - kl, ell=ell, kl=kl)
