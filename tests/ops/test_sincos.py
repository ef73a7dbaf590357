import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.ops import fourier_features, sincos


@pytest.mark.parametrize("largest", [1.0, 100.0, 1e4])
def test_sine_and_cosine_in_single_precision_are_exact_to_two_ulps(largest):
    x = np.linspace(-largest, largest, 200_001).astype(np.float32)
    sine, cosine = jax.jit(sincos)(jnp.asarray(x))
    exact = x.astype(np.float64)
    np.testing.assert_allclose(sine, np.sin(exact), rtol=0, atol=2.4e-7)
    np.testing.assert_allclose(cosine, np.cos(exact), rtol=0, atol=2.4e-7)


def test_sine_and_cosine_are_exact_near_multiples_of_a_quarter_turn():
    turns = np.arange(-2000, 2001)[:, None] * np.pi / 2
    x = (turns + np.linspace(-1e-3, 1e-3, 11)).astype(np.float32)
    sine, cosine = sincos(jnp.asarray(x))
    exact = x.astype(np.float64)
    np.testing.assert_allclose(sine, np.sin(exact), rtol=0, atol=2.4e-7)
    np.testing.assert_allclose(cosine, np.cos(exact), rtol=0, atol=2.4e-7)


def test_values_that_are_not_finite_give_none_that_are():
    sine, cosine = sincos(jnp.array([np.inf, -np.inf, np.nan], jnp.float32))
    assert not np.isfinite(sine).any()
    assert not np.isfinite(cosine).any()


def test_double_precision_is_that_of_the_library(x64):
    x = jnp.linspace(-50, 50, 1001)
    sine, cosine = sincos(x)
    np.testing.assert_allclose(sine, np.sin(x), rtol=0, atol=1e-15)
    np.testing.assert_allclose(cosine, np.cos(x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_are_those_of_sine_and_cosine(order, x64):
    def value(x):
        sine, cosine = sincos(x)
        return jnp.sum(sine * jnp.exp(cosine))

    def plain(x):
        return jnp.sum(jnp.sin(x) * jnp.exp(jnp.cos(x)))

    x = jnp.linspace(-5, 5, 101)
    differentiate = jax.grad if order == 1 else jax.hessian
    np.testing.assert_allclose(differentiate(value)(x), differentiate(plain)(x), atol=1e-13)


def test_single_precision_derivatives_need_no_other_sine():
    x = jnp.linspace(-5, 5, 101, dtype=jnp.float32)
    derivative = jax.grad(lambda x: jnp.sum(sincos(x)[0]))(x)
    np.testing.assert_allclose(derivative, np.cos(np.asarray(x, np.float64)), atol=2.4e-7)


def test_fourier_features_are_cosines_above_sines_with_their_derivatives(x64):
    Z = jnp.asarray(np.random.default_rng(0).normal(size=(5, 7)))
    A = jnp.asarray(np.random.default_rng(1).normal(size=(10, 7)))

    def plain(Z):
        return jnp.concatenate([jnp.cos(Z), jnp.sin(Z)])

    np.testing.assert_allclose(fourier_features(Z), plain(Z), atol=1e-15)
    for differentiate in (jax.grad, jax.hessian, jax.jacfwd):
        actual = differentiate(lambda Z: jnp.sum(A * fourier_features(Z) ** 3))(Z)
        expected = differentiate(lambda Z: jnp.sum(A * plain(Z) ** 3))(Z)
        np.testing.assert_allclose(actual, expected, atol=1e-12)
