"""Gradients by central differences."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree


def assert_gradient_matches_finite_differences(function, tree, step=1e-6, rtol=1e-6):
    """Compare every entry of the gradient with a central difference; needs float64."""
    flat, unravel = ravel_pytree(tree)
    assert flat.dtype == jnp.float64

    def of_vector(vector):
        return function(unravel(vector))

    steps = step * jnp.eye(flat.size)
    values = jax.jit(jax.vmap(lambda change: (of_vector(flat + change), of_vector(flat - change))))
    above, below = values(steps)
    numerical = np.asarray((above - below) / (2 * step))
    gradient = np.asarray(jax.jit(jax.grad(of_vector))(flat))
    np.testing.assert_allclose(gradient, numerical, rtol=rtol, atol=rtol * np.abs(numerical).max())
