"""Instructions of NVIDIA GPUs that Pallas has no name for."""

import jax
import jax.numpy as jnp
from jaxtyping import Array


def multiply_add(a: Array, b: Array, c: Array, *, interpret: bool) -> Array:
    """Compute `a * b + c` in one instruction; of what is written so plainly, the compiler leaves a part in two.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.ops.fused_layer.instructions import multiply_add
        >>> float(multiply_add(jnp.array(2.0), jnp.array(3.0), jnp.array(1.0), interpret=True))
        7.0
    """
    shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in (a, b, c)))
    if interpret or shape == ():  # numbers that all lanes share are few
        return a * b + c
    return _instruction(
        "fma.rn.f32 $0, $1, $2, $3;", *(jnp.broadcast_to(x, shape) for x in (a, b, c))
    )


def fast_sine(x: Array) -> Array:
    """Compute the sine by the special-function unit."""
    return _instruction("sin.approx.f32 $0, $1;", x)


def fast_cosine(x: Array) -> Array:
    """Compute the cosine by the special-function unit."""
    return _instruction("cos.approx.f32 $0, $1;", x)


def _instruction(text: str, *operands: Array) -> Array:
    # Where no kernel runs, Pallas need not be loaded.
    from jax.experimental.pallas import triton as pallas_triton

    like = operands[0]
    (value,) = pallas_triton.elementwise_inline_asm(
        text,
        args=list(operands),
        constraints=",".join(["=f", *["f"] * len(operands)]),
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(like.shape, like.dtype)],
    )
    return value
