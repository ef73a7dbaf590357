"""How the factors of a matrix product are rounded; sums are always float32."""

import enum

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

_BY_ROWS = (((1,), (0,)), ((), ()))


class Precision(enum.Enum):
    """What the factors of a product are rounded to before it, where the hardware has such products.

    Example:
        >>> from bochner.ops.fused_layer import Precision
        >>> [precision.name for precision in Precision]
        ['FLOAT32', 'TF32X3', 'TF32', 'BFLOAT16']
    """

    FLOAT32 = "float32"
    """Not at all."""

    TF32X3 = "tf32x3"
    """Split in two numbers of 11 significant bits each: three fast products that are nearly exact together.
    XLA has it on GPUs only."""

    TF32 = "tf32"
    """To 11 significant bits."""

    BFLOAT16 = "bfloat16"
    """To 8 significant bits."""

    @property
    def for_xla(self) -> str:
        """The name of `jax.default_matmul_precision` under which XLA's products, and their derivatives, run."""
        return _FOR_XLA[self]


PRECISIONS = {precision.value: precision for precision in Precision}
"""Precisions by the name used in configurations."""

_FOR_XLA = {
    Precision.FLOAT32: "float32",
    Precision.TF32X3: "TF32_TF32_F32_X3",
    Precision.TF32: "tensorfloat32",
    Precision.BFLOAT16: "BF16_BF16_F32",
}


def tile_product(
    a: Float[Array, "_ _"],
    b: Float[Array, "_ _"],
    precision: Precision,
    *,
    dimension_numbers: tuple = _BY_ROWS,
    interpret: bool = False,
) -> Float[Array, "_ _"]:
    """Multiply two tiles inside a kernel; the interpreter has no split products and multiplies in float32."""
    if precision is Precision.BFLOAT16:
        a, b = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    rounding: lax.Precision | lax.DotAlgorithmPreset = lax.Precision.HIGHEST
    if precision is Precision.TF32:
        rounding = lax.Precision.DEFAULT
    elif precision is Precision.TF32X3 and not interpret:
        rounding = lax.DotAlgorithmPreset.TF32_TF32_F32_X3
    return jax.lax.dot_general(
        a, b, dimension_numbers, precision=rounding, preferred_element_type=jnp.float32
    )
