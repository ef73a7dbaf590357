import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bochner.posteriors.gaussians import FactorizedGaussian
from tests.reference import gaussians
from tests.reference.derivatives import assert_gradient_matches_finite_differences


def random_q(shape, seed=0):
    generator = np.random.default_rng(seed)
    return FactorizedGaussian(
        jnp.asarray(generator.normal(size=shape)), jnp.asarray(generator.normal(size=shape))
    )


@pytest.mark.parametrize("prior_shape", [(), (3, 1), (3, 4)])
def test_kl_equals_the_supplements_formula(prior_shape, x64):
    q = random_q((3, 4))
    prior_log_var = np.random.default_rng(1).normal(size=prior_shape)
    prior_variance = np.broadcast_to(np.exp(prior_log_var), (3, 4))
    expected = gaussians.kl(np.asarray(q.mean), np.exp(q.log_var), prior_variance)
    assert float(q.kl(jnp.asarray(prior_log_var))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("values", [(0.7, 0.3, 1.0), (-2.0, 4.0, 0.5), (0.0, 1e-3, 2.0)])
def test_kl_equals_the_integral_it_stands_for(values, x64):
    mean, variance, prior_variance = values
    q = FactorizedGaussian(jnp.array([mean]), jnp.log(jnp.array([variance])))
    expected = gaussians.kl_by_quadrature(mean, variance, prior_variance)
    assert float(q.kl(jnp.log(prior_variance))) == pytest.approx(expected, rel=1e-7)


def test_gradient_of_the_kl_matches_finite_differences(x64):
    q, prior_log_var = random_q((3, 2)), jnp.array([[0.3], [-0.5], [1.0]])
    assert_gradient_matches_finite_differences(
        lambda both: both[0].kl(both[1]), (q, prior_log_var), rtol=1e-7
    )


@settings(max_examples=50, deadline=None)
@given(st.floats(-20, 20), st.floats(-15, 10), st.floats(-10, 10))
def test_kl_is_never_negative(mean, log_var, prior_log_var):
    q = FactorizedGaussian(jnp.full((1,), mean), jnp.full((1,), log_var))
    assert float(q.kl(jnp.asarray(prior_log_var))) >= -1e-6


def test_kl_is_zero_only_at_the_prior(x64):
    prior_log_var = jnp.array([[0.3], [-0.5]])
    at_prior = FactorizedGaussian(jnp.zeros((2, 3)), jnp.broadcast_to(prior_log_var, (2, 3)))
    assert float(at_prior.kl(prior_log_var)) == 0.0
    moved = FactorizedGaussian(at_prior.mean.at[0, 0].set(1e-3), at_prior.log_var)
    assert float(moved.kl(prior_log_var)) > 0.0


def test_draws_are_the_mean_plus_the_standard_deviation_times_noise(x64):
    q, epsilon = random_q((2, 3)), np.random.default_rng(3).normal(size=(2, 3))
    expected = np.asarray(q.mean) + np.sqrt(np.exp(np.asarray(q.log_var))) * epsilon
    np.testing.assert_allclose(q.sample(jnp.asarray(epsilon)), expected, rtol=1e-12)


def test_draws_have_the_mean_and_variance_of_q(key):
    q, n = random_q((2, 3)), 20_000
    draws = np.asarray(jax.vmap(q.sample)(jax.random.normal(key, (n, 2, 3))))
    variance = np.asarray(q.variance)
    assert np.abs((draws.mean(axis=0) - q.mean) / np.sqrt(variance / n)).max() < 4
    assert np.abs((draws.var(axis=0) / variance - 1) / np.sqrt(2 / n)).max() < 4
