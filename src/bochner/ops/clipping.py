"""A function of columns whose gradients are clipped on their way back, so that none grows through it."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

Function = Callable[[Float[Array, "_ batch"], PyTree], Float[Array, "_ batch"]]
"""A function of columns and of other arrays."""


def with_clipped_gradient(
    function: Function, F: Float[Array, "_ batch"], others: PyTree
) -> Float[Array, "_ batch"]:
    """Compute `function(F, others)`, with the gradient with respect to each column of F clipped.

    It keeps its direction, and its norm is at most that of the gradient with respect to the same column of the result.
    Gradients with respect to `others` are exact. Derivatives in forward mode are not defined.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.ops import with_clipped_gradient
        >>> scaled = lambda F, factor: F * factor
        >>> of_sum = jax.grad(lambda F: with_clipped_gradient(scaled, F, jnp.array([[0.5, 3.0]])).sum())
        >>> of_sum(jnp.ones((1, 2)))
        Array([[0.5, 1. ]], dtype=float32)
    """
    return _clipped(function, F, others)


def _value(function: Function, F: Array, others: PyTree) -> Array:
    return function(F, others)


def _forward(function: Function, F: Array, others: PyTree):
    return jax.vjp(function, F, others)


def _backward(function: Function, exact: Callable, of_outputs: Array):
    of_inputs, of_others = exact(of_outputs)
    longest, length = (jnp.linalg.norm(G, axis=0, keepdims=True) for G in (of_outputs, of_inputs))
    smallest = jnp.finfo(length.dtype).tiny
    return of_inputs * jnp.minimum(1.0, longest / jnp.maximum(length, smallest)), of_others


_clipped = jax.custom_vjp(_value, nondiff_argnums=(0,))
_clipped.defvjp(_forward, _backward)
