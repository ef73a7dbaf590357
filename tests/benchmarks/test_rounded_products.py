"""Rounded products that a CPU emulates: they round every factor, and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.rounded_products import RoundedLayer, product
from bochner.kernels import RBF
from bochner.ops import XlaLayer
from bochner.ops.fused_layer import Precision


def rounded(x, bits):
    """Keep the nearest number with so many bits after the first, ties to even."""
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.round(mantissa * 2 ** (bits + 1)), exponent - bits - 1)


@pytest.mark.parametrize("bits", [7, 10])
def test_both_factors_of_every_product_are_rounded(bits):
    generator = np.random.default_rng(0)
    a, b, gradient = (
        jnp.asarray(generator.normal(size=size), jnp.float32) for size in ((3, 5), (5, 4), (3, 4))
    )
    value, pullback = jax.vjp(lambda a, b: product(bits, a, b), a, b)
    of_a, of_b = pullback(gradient)
    a, b, gradient = (rounded(x, bits) for x in (a, b, gradient))
    for actual, expected in ((value, a @ b), (of_a, gradient @ b.T), (of_b, a.T @ gradient)):
        np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("precision", "distance"), [(Precision.TF32, 2e-3), (Precision.BFLOAT16, 2e-2)]
)
@pytest.mark.parametrize("moments", [False, True])
def test_a_rounded_layer_is_near_the_exact_one_and_not_equal(precision, distance, moments):
    generator = np.random.default_rng(1)
    kernel = RBF(jnp.zeros(()), jnp.zeros(()))
    inputs = tuple(jnp.asarray(generator.normal(size=(d, 40)), jnp.float32) for d in (4, 3))
    Omega = jnp.asarray(generator.normal(size=(7, 20)) / 3, jnp.float32)
    weights = [jnp.asarray(generator.normal(size=(40, 2)) / 6, jnp.float32)]
    if moments:
        weights.append(weights[0] ** 2)
    results = [
        (path.moments if moments else path.outputs)(kernel, inputs, Omega, *weights)
        for path in (RoundedLayer(precision), XlaLayer())
    ]
    for actual, exact in zip(*map(jax.tree.leaves, results), strict=True):
        apart = np.abs(actual - exact).max() / np.abs(exact).max()
        assert distance / 100 < apart < distance
