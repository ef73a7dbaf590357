"""A layer's outputs and their gradients in double precision, from the formula alone."""

import jax
import jax.numpy as jnp
import numpy as np


def features(kernel: str, Z):
    if kernel == "rbf":
        return jnp.concatenate([jnp.cos(Z), jnp.sin(Z)])
    degree = int(kernel[-1])
    return jnp.where(Z > 0, jnp.maximum(Z, 0.0) ** degree, 0.0)


def outputs(kernel: str, inputs, Omega, W):
    return W.T @ features(kernel, Omega.T @ jnp.concatenate(inputs))


def moments(kernel: str, inputs, Omega, mean, variance):
    Phi = features(kernel, Omega.T @ jnp.concatenate(inputs))
    return mean.T @ Phi, variance.T @ Phi**2


def values_and_gradients(function, arguments, cotangents):
    """Evaluate a function of arrays in float64, and the gradient of its outputs weighted by `cotangents`."""
    with jax.enable_x64(True):
        arguments, cotangents = jax.tree.map(
            lambda leaf: jnp.asarray(np.asarray(leaf, np.float64)), (arguments, cotangents)
        )
        values, pullback = jax.vjp(function, *arguments)
        return jax.tree.map(np.asarray, (values, pullback(cotangents)))


def distance(actual, expected) -> float:
    """How far an array is from another, relative to its size; NaN counts as infinitely far."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    error = np.linalg.norm(actual - expected) / max(np.linalg.norm(expected), 1e-30)
    return float(error) if np.isfinite(error) else float("inf")
