"""The last layer of a deep model at one draw of the hidden layers: its features, and the noise that it decides."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bochner.gp.model import DeepGP, Noise
from bochner.gp.reparameterization import AbstractReparameterization, DrawWeights
from bochner.ops import AutomaticLayer
from bochner.posteriors.gaussians import FactorizedGaussian


def last_features(
    model: DeepGP,
    X: Float[Array, "batch d_in"],
    noise: Noise,
    reparameterization: AbstractReparameterization = DrawWeights(),  # noqa: B008
) -> Float[Array, "batch feat"]:
    """Compute the features of the last layer at one draw of the hidden layers, in float32 whatever the backend."""
    inputs = model.inputs_of_last(X, noise, reparameterization.on(AutomaticLayer()))
    with jax.default_matmul_precision("float32"):
        return model.blocks[-1].Phi(jnp.concatenate(inputs, axis=1), noise[-1])


def noise_weights(model: DeepGP) -> FactorizedGaussian:
    """Give q(W) of the last layer's functions that decide the noise, which come after those of the targets' means."""
    q_W, n_functions = model.blocks[-1].q_W, model.blocks[-1].width
    n_targets = n_functions // model.likelihood.n_functions(1)
    return jax.tree.map(lambda leaf: leaf[:, n_targets:], q_W)


def log_noise_variances(
    model: DeepGP, Phi: Float[Array, "batch feat"], noise: Noise, n_targets: int
) -> Float[Array, "batch targets"]:
    """Compute the log noise variance of each row and target at one draw of the functions that decide it."""
    W = noise_weights(model).sample(noise[-1].W[:, n_targets:])
    F = jnp.concatenate([jnp.zeros((len(Phi), n_targets), Phi.dtype), Phi @ W], axis=1)
    _, variances = model.likelihood.moments(F)  # pyright: ignore[reportAttributeAccessIssue]
    return jnp.log(variances)
