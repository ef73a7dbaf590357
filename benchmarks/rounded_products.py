"""What a GPU's rounded products compute, on any device: factors lose their last bits, and sums are float32."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bochner.ops import AbstractBackend
from bochner.ops.fused_layer import Precision
from bochner.ops.fused_layer.layer import square_weights

_MANTISSA_BITS = {Precision.TF32: 10, Precision.BFLOAT16: 7}


class RoundedLayer(AbstractBackend):
    """A layer whose products, forward and backward, have their factors rounded as the hardware rounds them.

    Example:
        >>> import jax.numpy as jnp
        >>> from benchmarks.rounded_products import RoundedLayer
        >>> from bochner.kernels import RBF
        >>> from bochner.ops.fused_layer import Precision
        >>> kernel, path = RBF(jnp.zeros(()), jnp.zeros(())), RoundedLayer(Precision.BFLOAT16)
        >>> path.outputs(kernel, (jnp.zeros((1, 2)),), jnp.ones((1, 3)), jnp.full((6, 1), 1.001)).tolist()
        [[3.0, 3.0]]
    """

    precision: Precision = eqx.field(static=True)

    def outputs(self, kernel, inputs, Omega, W):
        return self._product(W.T, kernel.features(self._project(inputs, Omega)))

    def moments(self, kernel, inputs, Omega, mean, variance):
        parts = kernel.activate(self._project(inputs, Omega))
        squares, constant = square_weights(variance, kernel.n_parts)
        variances = self._product(squares.T, parts[0] ** 2) + constant[:, None]
        return self._product(mean.T, jnp.concatenate(parts)), variances

    def _project(self, inputs, Omega) -> Array:
        return self._product(Omega.T, jnp.concatenate(inputs))

    def _product(self, a: Array, b: Array) -> Array:
        return product(_MANTISSA_BITS[self.precision], a, b)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def product(bits: int, a: Float[Array, "m k"], b: Float[Array, "k n"]) -> Float[Array, "m n"]:
    """Multiply matrices whose entries keep so many bits after the first."""
    return _forward(bits, a, b)[0]


def _forward(bits: int, a: Array, b: Array):
    a, b = _rounded(bits, a), _rounded(bits, b)
    return a @ b, (a, b)


def _backward(bits: int, factors: tuple[Array, Array], gradient: Array):
    a, b = factors
    gradient = _rounded(bits, gradient)
    return gradient @ b.T, a.T @ gradient


product.defvjp(_forward, _backward)


def _rounded(bits: int, x: Array) -> Array:
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=bits)
