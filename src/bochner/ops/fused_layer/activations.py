"""Activations with their derivatives, in arithmetic that Pallas kernels have."""

import enum
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from bochner.ops.fused_layer.instructions import fast_cosine, fast_sine
from bochner.ops.sincos import sincos_of_quarter_turn, without_half_turns

# Adding it to a float32 number below 2^22 leaves no room for a fraction: the sum is rounded to a whole number,
# whose last bit is then the last bit of the sum. Kernels have no rounding instruction of their own in Pallas.
_ROUNDING = 1.5 * 2**23


class Sine(enum.Enum):
    """How kernels compute a sine and a cosine.

    Example:
        >>> from bochner.ops.fused_layer import Sine
        >>> Sine("hardware").name
        'HARDWARE'
    """

    POLYNOMIAL = "polynomial"
    """The polynomials of `bochner.ops.sincos`, after half turns are taken out of the argument; to about 1e-7."""

    HARDWARE = "hardware"
    """The special-function unit, which takes out whole turns itself: to about 4e-7, and far from zero to about
    twice the spacing of numbers there, which a projection has lost anyway. The interpreter has the library's."""


@dataclass(frozen=True)
class CosineSine:
    """The cosine and the sine of a projection.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.ops.fused_layer import CosineSine
        >>> [part.tolist() for part in CosineSine().parts(jnp.zeros(2))]
        [[1.0, 1.0], [0.0, 0.0]]
    """

    sine: Sine = Sine.POLYNOMIAL
    n_parts: ClassVar[int] = 2

    def parts(self, Z: Float[Array, "*tile"], *, interpret: bool = True) -> tuple[Array, ...]:
        """Compute the features of one frequency, one array a part."""
        if self.sine is Sine.HARDWARE:
            return (jnp.cos(Z), jnp.sin(Z)) if interpret else (fast_cosine(Z), fast_sine(Z))
        k, odd = _half_turns(Z, interpret=interpret)
        sine, cosine = sincos_of_quarter_turn(without_half_turns(Z, k))
        return _flip_sign(cosine, odd), _flip_sign(sine, odd)

    def derivatives(self, Z: Float[Array, "*tile"], parts: tuple[Array, ...]) -> tuple[Array, ...]:
        """Compute the derivative of each part, from the parts."""
        cosine, sine = parts
        return -sine, cosine


@dataclass(frozen=True)
class ReluPower:
    """A power of the positive part of a projection; of degree 0, whether it is positive.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.ops.fused_layer import ReluPower
        >>> ReluPower(2).parts(jnp.array([-1.0, 3.0]))[0].tolist()
        [0.0, 9.0]
    """

    degree: int = 1
    n_parts: ClassVar[int] = 1

    def parts(self, Z: Float[Array, "*tile"], *, interpret: bool = True) -> tuple[Array, ...]:
        """Compute the feature of one frequency."""
        if self.degree == 0:
            return (_step(Z),)
        positive = jnp.maximum(Z, 0.0)
        return (positive if self.degree == 1 else positive * positive,)

    def derivatives(self, Z: Float[Array, "*tile"], parts: tuple[Array, ...]) -> tuple[Array, ...]:
        """Compute the derivative of the feature."""
        if self.degree == 0:
            return (jnp.zeros_like(Z),)
        return (_step(Z) if self.degree == 1 else 2.0 * jnp.maximum(Z, 0.0),)


Activation = CosineSine | ReluPower
"""What kernels know how to compute."""


def _step(Z: Array) -> Array:
    return jnp.where(Z > 0, jnp.ones_like(Z), jnp.zeros_like(Z))


def _half_turns(Z: Array, *, interpret: bool) -> tuple[Array, Array]:
    """Count the half turns nearest to Z; give the number, and integers whose highest bit says whether it is odd."""
    if interpret:  # XLA would simplify the sum and the difference below
        k = jnp.round(Z * (1.0 / jnp.pi))
        bits = k.astype(jnp.int32)
    else:
        rounded = Z * (1.0 / jnp.pi) + _ROUNDING
        k = rounded - _ROUNDING
        bits = lax.bitcast_convert_type(rounded, jnp.int32)
    return k, lax.shift_left(bits, jnp.full_like(bits, 31))


def _flip_sign(x: Array, odd: Array) -> Array:
    """Change the sign of x where the highest bit of `odd` is set."""
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.int32) ^ odd, jnp.float32)
