import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_softmax
from scipy.stats import bernoulli

from bochner.likelihoods import CLASSIFICATION_LIKELIHOODS, Bernoulli, Softmax

N_CLASSES = {name: kind.n_classes or 3 for name, kind in CLASSIFICATION_LIKELIHOODS.items()}


def example(name, seed=0):
    likelihood = CLASSIFICATION_LIKELIHOODS[name]()
    d_out = likelihood.n_functions(N_CLASSES[name])
    return likelihood, jnp.asarray(np.random.default_rng(seed).normal(size=(4, d_out)))


@pytest.mark.parametrize("name", N_CLASSES)
def test_probabilities_sum_to_one_over_the_classes(name, x64):
    likelihood, F = example(name)
    log_probabilities = likelihood.log_probabilities(F)
    assert log_probabilities.shape == (4, N_CLASSES[name])
    np.testing.assert_allclose(jnp.exp(log_probabilities).sum(axis=1), 1.0, rtol=1e-12)


def test_softmax_equals_scipys(x64):
    likelihood, F = example("softmax")
    np.testing.assert_allclose(likelihood.log_probabilities(F), log_softmax(F, axis=1), rtol=1e-12)


def test_bernoulli_equals_scipys(x64):
    likelihood, F = example("bernoulli")
    Y = jnp.array([[0], [1], [1], [0]])
    expected = bernoulli(expit(np.asarray(F))).logpmf(np.asarray(Y))[:, 0]
    np.testing.assert_allclose(likelihood.log_prob(F, Y), expected, rtol=1e-10)


def test_one_function_for_two_classes_equals_two_functions_of_which_one_is_zero(x64):
    _, F = example("bernoulli")
    both = jnp.concatenate([jnp.zeros_like(F), F], axis=1)
    np.testing.assert_allclose(
        Bernoulli().log_probabilities(F), Softmax().log_probabilities(both), rtol=1e-10
    )


@pytest.mark.parametrize("name", N_CLASSES)
def test_the_log_probability_is_that_of_the_target_class(name, x64):
    likelihood, F = example(name)
    table = likelihood.log_probabilities(F)
    for label in range(N_CLASSES[name]):
        Y = jnp.full((4, 1), label)
        np.testing.assert_array_equal(likelihood.log_prob(F, Y), table[:, label])


@pytest.mark.parametrize("name", N_CLASSES)
def test_log_probabilities_stay_finite_for_extreme_functions(name):
    likelihood, F = example(name)
    extreme = 1e4 * F.astype(jnp.float32)
    assert jnp.all(jnp.isfinite(likelihood.log_probabilities(extreme)))
    gradient = jax.grad(lambda F: jnp.sum(likelihood.log_prob(F, jnp.zeros((4, 1), int))))(extreme)
    assert jnp.all(jnp.isfinite(gradient))


@pytest.mark.parametrize("name", N_CLASSES)
def test_samples_follow_the_probabilities(name, key):
    likelihood, F = example(name)
    n = 20_000
    sample = jax.jit(jax.vmap(lambda key: likelihood.sample(F, key=key)))
    samples = np.asarray(sample(jax.random.split(key, n)))
    assert samples.shape == (n, 4, 1)
    assert np.issubdtype(samples.dtype, np.integer)
    probabilities = np.exp(np.asarray(likelihood.log_probabilities(F), np.float64))
    for label in range(N_CLASSES[name]):
        p = probabilities[:, label]
        share = (samples[:, :, 0] == label).mean(axis=0)
        assert np.abs((share - p) / np.sqrt(p * (1 - p) / n)).max() < 4
