"""Small models in a general position, where no term of a formula vanishes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bochner.features.spectra import SPECTRA
from bochner.gp.layers import Layer, LayerSettings, Stack
from bochner.gp.model import DeepGP
from bochner.kernels import KERNELS
from bochner.likelihoods import Gaussian

D_IN = 2


def shaken(tree, seed=0, size=0.3):
    """Add noise to every array, so that q is not at the prior and no two parameters are equal."""
    generator = np.random.default_rng(seed)

    def shake(leaf):
        noise = size * generator.normal(size=leaf.shape)
        return jnp.asarray(np.asarray(leaf) + noise, leaf.dtype)

    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(shake, arrays), rest)


def setting(kernel="rbf", omega="var-fixed", width=3, n_rf=5, **options):
    return LayerSettings(width, n_rf=n_rf, kernel=KERNELS[kernel], omega=SPECTRA[omega], **options)


def deep_gp(n_layers=2, feed_inputs=False, d_in=D_IN, d_out=1, likelihood=None, **options):
    """A model in a general position; options are those of `setting`, for every layer."""
    settings = [setting(**options) for _ in range(n_layers - 1)] + [
        setting(**(options | {"width": d_out}))
    ]
    likelihood = Gaussian.start(d_out) if likelihood is None else likelihood
    return shaken(
        DeepGP.start(
            settings, likelihood, d_in=d_in, feed_inputs=feed_inputs, key=jax.random.key(7)
        )
    )


def inputs(n=6, d_in=D_IN, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, d_in)))


def layer_noises(model, noise):
    """The noise `(W, Omega)` of each layer, stacks taken apart."""
    single = []
    for block, block_noise in zip(model.blocks, noise, strict=True):
        W, Omega = block_noise.W, block_noise.features.Omega
        if isinstance(block, Layer):
            single.append((W, Omega))
        else:
            assert isinstance(block, Stack)
            single.extend(
                (W[i], None if Omega is None else Omega[i]) for i in range(block.n_layers)
            )
    return single
