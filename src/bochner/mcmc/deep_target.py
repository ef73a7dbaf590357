"""The posterior over the weights of deep models, the last layer integrated out where that has a closed form."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.gp.layers import Layer
from bochner.gp.members import Members
from bochner.gp.model import DeepGP, Noise
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.conditioning import condition_on
from bochner.inference.last_layer import last_features, log_noise_variances
from bochner.mcmc.rows_marginal import left_out, log_marginal
from bochner.mcmc.weights import at_prior, draws_of_q, map_layers
from bochner.prediction.statistics import Posterior
from bochner.rows.table import Table


class DeepTarget:
    """`N(W | 0, I) p(Y | X, W)` of several models of equal structure, for `bochner.mcmc.rotations`.

    With Gaussian noise the last layer is integrated out: `p(Y | X, W) = N(Y | 0, Phi Phi' + noise)`, whose features
    are of the hidden weights. What was the last layer's weights then has no say and follows N(0, I), but for those that
    decide the noise. Watched are mean and log variance of each row left out of the last layer. With other likelihoods
    all weights are sampled, and the functions watched.
    """

    def __init__(self, members: Sequence[DeepGP], table: Table):
        held = [map_layers(_with_theta_at_its_mean, at_prior(member)) for member in members]
        self.members = Members.of(held)
        self.table = table
        self.integrated = members[0].likelihood.gaussian_noise
        self._shaped = _Shaped.like(held[0].draw_noise(key=jax.random.key(0)))

    def starts(self, members: Sequence[DeepGP], n_chains: int, *, key: PRNGKeyArray) -> np.ndarray:
        """Draw where chains start from q(W) of each member, those of the same member side by side."""
        keys = jax.random.split(key, len(members))
        drawn = [
            draws_of_q(one, one.draw_noise((n_chains,), key=key))
            for one, key in zip(members, keys, strict=True)
        ]
        flat = [jax.vmap(lambda W: ravel_pytree(W)[0])(W) for W in drawn]
        return np.concatenate([np.asarray(one, np.float64) for one in flat])

    def __call__(self, Z):
        """Compute the log-likelihood and its gradient."""
        found = self._call(_values_and_gradients, Z)
        return tuple(part.reshape(len(Z), *part.shape[2:]) for part in found)

    def watched(self, Z):
        """Compute predictions of each row, the last layer not having seen it."""
        return self._call(_watched, Z).reshape(len(Z), -1)

    def _call(self, function, Z):
        by_member = jnp.asarray(Z.reshape(self.members.n_members, -1, Z.shape[1]), jnp.float32)
        models = self.members.stacked
        found = function(models, self.table, by_member, self._shaped, self.integrated)
        return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), found)

    def posterior(
        self, positions: Float[np.ndarray, "members draws d"], *, key: PRNGKeyArray
    ) -> Posterior:
        """Give draws as a posterior that predicts as fitted models do; the last layer is drawn where integrated out."""
        n_members, n_draws, _ = positions.shape
        W = jax.vmap(jax.vmap(self._shaped))(jnp.asarray(positions, jnp.float32))
        if not self.integrated:
            return Posterior(self.members, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), W))
        conditioned = condition_on(self.members.stacked, W, self.table)
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), conditioned)
        return Posterior.draw(Members(flat, n_members * n_draws), n_draws=1, key=key)


class _Shaped(eqx.Module):
    """From a vector to weights; of equal models it is equal, so that programs are compiled once."""

    structure: Any = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    @classmethod
    def like(cls, W: Noise) -> "_Shaped":
        leaves, structure = jax.tree.flatten(W)
        return cls(structure, tuple(leaf.shape for leaf in leaves))

    def __call__(self, z: Array) -> Noise:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        pieces = jnp.split(z, ends[:-1])
        leaves = [piece.reshape(shape) for piece, shape in zip(pieces, self.shapes, strict=True)]
        return jax.tree.unflatten(self.structure, leaves)


@eqx.filter_jit
def _values_and_gradients(models, table, Z, shaped, integrated: bool):
    def value(z, model):
        W = shaped(z)
        if not integrated:
            F = model(table.X, W, DrawWeights())
            return jnp.sum(model.likelihood.log_prob(F, table.Y))
        return log_marginal(*_features_and_noise(model, table, W), table.Y)

    return _over_chains(jax.value_and_grad(value), models, Z)


@eqx.filter_jit
def _watched(models, table, Z, shaped, integrated: bool):
    def watched(z, model):
        W = shaped(z)
        if not integrated:
            return model(table.X, W, DrawWeights())
        return left_out(*_features_and_noise(model, table, W), table.Y)

    return _over_chains(watched, models, Z)


def _over_chains(function, models, Z):
    """Apply a function to each position with its member's model."""
    of_member = jax.vmap(function, in_axes=(0, None))
    return jax.vmap(of_member)(Z, models)


def _features_and_noise(model: DeepGP, table: Table, W: Noise) -> tuple[Array, Array]:
    Phi = last_features(model, table.X, W)
    return Phi, log_noise_variances(model, Phi, W, table.Y.shape[1])


def _with_theta_at_its_mean(layer: Layer) -> Layer:
    return dataclasses.replace(layer, features=layer.features.at_mean())
