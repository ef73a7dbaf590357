"""From a model trained on the evidence to one that predicts: draws of the hidden layers, the last layer exact."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from bochner.gp.layers import Layer, LayerNoise, Stack
from bochner.gp.members import Members
from bochner.gp.model import DeepGP, Noise
from bochner.inference.evidence import exact_posterior
from bochner.inference.last_layer import last_features, log_noise_variances, noise_weights
from bochner.likelihoods.noise_laws import Normal
from bochner.posteriors.gaussians import (
    AnyGaussian,
    FactorizedGaussian,
    HeldGaussian,
    JointGaussian,
    SideBySide,
)
from bochner.rows.table import Table

_NARROW = -6.0  # log variance


@eqx.filter_jit
def condition_last_layer(
    model: DeepGP | Members, table: Table, *, n_draws: int, key: PRNGKeyArray
) -> Members:
    """Hold draws of the hidden layers, `n_draws` of each member, and give the last layer its exact posterior.

    Each draw becomes a member of the result, so that predictions are the mixture over draws. It is for models with
    Gaussian noise, trained on `Evidence` with the rows of `table`.

    Example:
        >>> import jax, numpy as np
        >>> from bochner.inference.conditioning import condition_last_layer
        >>> from bochner.rows.table import Table
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> model = DeepGP.start(
        ...     [LayerSettings(2), LayerSettings(1)], Gaussian.start(1), d_in=1, feed_inputs=True,
        ...     key=jax.random.key(0),
        ... )
        >>> x = np.linspace(-1, 1, 20)[:, None]
        >>> condition_last_layer(model, Table.of(x, np.sin(3 * x)), n_draws=3, key=jax.random.key(1)).n_members
        3
    """
    members = model if isinstance(model, Members) else Members.of([model])
    noise = members.draw_noise((n_draws,), key=key)
    nested = condition_on(*members.with_noise(noise), table)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), nested)
    return Members(flat, members.n_members * n_draws)


@eqx.filter_jit
def condition_on(stacked: DeepGP, noise: Noise, table: Table) -> DeepGP:
    """Hold given draws of the hidden layers, with leading axes of models and draws, each with an exact last layer."""

    def condition_member(member: tuple[DeepGP, Noise]) -> DeepGP:
        model, noise = member
        return jax.lax.map(lambda draw: _conditioned(model, draw, table), noise)

    return jax.lax.map(condition_member, (stacked, noise))


def _conditioned(model: DeepGP, noise: Noise, table: Table) -> DeepGP:
    n_targets = table.Y.shape[1]
    Phi = last_features(model, table.X, noise)
    log_v = log_noise_variances(model, Phi, noise, n_targets)
    q_W = exact_posterior(Phi, table.Y, table.weights, log_v)
    if model.blocks[-1].width > n_targets:
        of_noise = HeldGaussian(noise_weights(model), noise[-1].W[:, n_targets:])
        q_W = SideBySide(q_W, of_noise)
    hidden = tuple(
        _held(block, block_noise)
        for block, block_noise in zip(model.blocks[:-1], noise[:-1], strict=True)
    )
    last = model.blocks[-1]
    last = dataclasses.replace(last, features=last.features.held(noise[-1].features), q_W=q_W)
    return eqx.tree_at(lambda model: model.blocks, model, (*hidden, last))


def _held(block: Layer | Stack, noise: LayerNoise) -> Layer | Stack:
    if isinstance(block, Stack):
        return eqx.tree_at(lambda stack: stack.layers, block, _held(block.layers, noise))
    held = HeldGaussian(block.q_W, noise.W)  # pyright: ignore[reportArgumentType]
    return dataclasses.replace(block, features=block.features.held(noise.features), q_W=held)


def unconditioned(model: DeepGP) -> DeepGP:
    """Give a member of a conditioned model as it was trained, with q(W) of the last layer around its exact mean."""

    def release(layer: Layer) -> Layer:
        return dataclasses.replace(
            layer, features=layer.features.released(), q_W=_released(layer.q_W)
        )

    blocks = jax.tree.map(release, model.blocks, is_leaf=lambda node: isinstance(node, Layer))
    likelihood = dataclasses.replace(model.likelihood, law=Normal())  # pyright: ignore[reportCallIssue]
    return dataclasses.replace(model, blocks=blocks, likelihood=likelihood)


def _released(q_W: AnyGaussian) -> FactorizedGaussian:
    if isinstance(q_W, HeldGaussian):
        return q_W.q
    if isinstance(q_W, JointGaussian):
        return FactorizedGaussian(q_W.mean, jnp.full_like(q_W.mean, _NARROW))
    if isinstance(q_W, SideBySide):
        parts = (_released(q_W.first), _released(q_W.others))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=-1), *parts)
    return q_W
