"""Random features times weights, without building the feature matrix."""

from jaxtyping import Array, Float


def combine(
    parts: tuple[Float[Array, "batch rf"], ...], weights: Float[Array, "feat d_out"]
) -> Float[Array, "batch d_out"]:
    """Compute `concatenate(parts, axis=1) @ weights` as a sum of one product a part.

    The concatenation would write and read the largest array of the layer once more.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.ops import combine
        >>> combine((jnp.ones((2, 3)), jnp.zeros((2, 3))), jnp.ones((6, 1))).tolist()
        [[3.0], [3.0]]
    """
    n_rf = parts[0].shape[-1]
    products = [part @ weights[i * n_rf : (i + 1) * n_rf] for i, part in enumerate(parts)]
    return sum(products[1:], start=products[0])
