"""Sums that several programs of a kernel share: each writes its own part, and the parts are added afterward.

The order of additions is then always the same, so that a computation gives the same bits every time.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float


def sum_of_splits(partial: Float[Array, "splits *shape"]) -> Float[Array, "*shape"]:
    """Add the parts along the first axis.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.ops.fused_layer.partial_sums import sum_of_splits
        >>> sum_of_splits(jnp.ones((3, 2))).tolist()
        [3.0, 3.0]
    """
    return partial[0] if partial.shape[0] == 1 else jnp.sum(partial, axis=0)
