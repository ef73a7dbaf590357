"""Cosine and sine features of projected inputs, with the frequencies as rows and the data as columns."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bochner.ops.sincos import sincos


@jax.custom_jvp
def fourier_features(Z: Float[Array, "rf batch"]) -> Float[Array, "feat batch"]:
    """Compute `concatenate([cos(Z), sin(Z)])`; the derivative reads the features and computes no sine again.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.ops import fourier_features
        >>> fourier_features(jnp.zeros((1, 2))).tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """
    sine, cosine = sincos(Z)
    return jnp.concatenate([cosine, sine])


@fourier_features.defjvp
def _fourier_features_jvp(primals, tangents):
    (Z,), (dZ,) = primals, tangents
    # Without the barrier XLA sees through the concatenation and computes sine and cosine apart, more than once.
    Phi = jax.lax.optimization_barrier(fourier_features(Z))
    cosine, sine = Phi[: Z.shape[0]], Phi[Z.shape[0] :]
    return Phi, jnp.concatenate([-sine * dZ, cosine * dZ])
