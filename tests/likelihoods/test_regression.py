"""One dictionary of examples drives every invariant of the likelihoods of numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from bochner.likelihoods import REGRESSION_LIKELIHOODS
from tests.reference.likelihoods import EXAMPLES, N_TARGETS

CONTINUOUS = [name for name in EXAMPLES if not REGRESSION_LIKELIHOODS[name].discrete]
DISCRETE = [name for name in EXAMPLES if REGRESSION_LIKELIHOODS[name].discrete]

pytestmark = pytest.mark.usefixtures("x64")


def test_every_likelihood_has_an_example():
    assert set(EXAMPLES) == set(REGRESSION_LIKELIHOODS)
    for name, example in EXAMPLES.items():
        assert type(example()[0]) is REGRESSION_LIKELIHOODS[name]


@pytest.mark.parametrize("name", EXAMPLES)
def test_log_densities_equal_scipys(name):
    likelihood, F, law = EXAMPLES[name]()
    Y = EXAMPLES[name].targets(np.random.default_rng(1), (3, N_TARGETS))
    expected = law.logpmf(Y) if likelihood.discrete else law.logpdf(Y)
    np.testing.assert_allclose(likelihood.log_density(F, jnp.asarray(Y)), expected, rtol=1e-9)
    np.testing.assert_allclose(
        likelihood.log_prob(F, jnp.asarray(Y)), expected.sum(axis=1), rtol=1e-9
    )


def density(likelihood, F):
    """Of the first target of the first row, as a function of a number or an array."""
    log_density = jax.jit(
        jax.vmap(lambda y: likelihood.log_density(F[:1], jnp.full((1, N_TARGETS), y))[0, 0])
    )
    return lambda y: np.exp(np.asarray(log_density(jnp.atleast_1d(jnp.asarray(y, float)))))


@pytest.mark.parametrize("name", EXAMPLES)
def test_densities_integrate_to_one_and_give_the_moments(name):
    likelihood, F, _ = EXAMPLES[name]()
    p = density(likelihood, F)
    mean, variance = (float(moment[0, 0]) for moment in likelihood.moments(F))
    if likelihood.discrete:
        counts = np.arange(200.0)
        integrals = [np.sum(p(counts) * counts**power) for power in range(3)]
    else:
        # y = mean + tan(t) maps the line to an interval, tails included.
        integrals = [
            quad(lambda t: _of_angle(p, mean, t, power), -np.pi / 2, np.pi / 2, limit=200)[0]  # noqa: B023
            for power in range(3)
        ]
    assert integrals[0] == pytest.approx(1.0, abs=1e-6)
    assert integrals[1] == pytest.approx(mean, rel=1e-5, abs=1e-6)
    assert integrals[2] - integrals[1] ** 2 == pytest.approx(variance, rel=1e-3)


def _of_angle(p, mean, t, power):
    y = mean + np.tan(t)
    return float(p(y)[0]) * y**power / np.cos(t) ** 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_moments_equal_scipys(name):
    likelihood, F, law = EXAMPLES[name]()
    mean, variance = likelihood.moments(F)
    np.testing.assert_allclose(mean, law.mean(), rtol=1e-10)
    np.testing.assert_allclose(variance, law.var(), rtol=1e-10)


@pytest.mark.parametrize("name", EXAMPLES)
def test_distribution_functions_equal_scipys(name):
    likelihood, F, law = EXAMPLES[name]()
    for shift in (-5.0, -0.5, 0.0, 0.7, 4.0):
        Y = np.asarray(likelihood.moments(F)[0]) + shift
        np.testing.assert_allclose(
            likelihood.cdf(F, jnp.asarray(Y)), law.cdf(Y), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_derivative_of_the_distribution_function_is_the_density(name):
    likelihood, F, _ = EXAMPLES[name]()
    Y, step = likelihood.moments(F)[0] + 0.3, 1e-5
    slope = (likelihood.cdf(F, Y + step) - likelihood.cdf(F, Y - step)) / (2 * step)
    np.testing.assert_allclose(slope, jnp.exp(likelihood.log_density(F, Y)), rtol=1e-5)


@pytest.mark.parametrize("name", DISCRETE)
def test_the_distribution_function_of_counts_steps_by_the_probability_of_each_count(name):
    likelihood, F, _ = EXAMPLES[name]()
    for count in range(8):
        Y = jnp.full((3, N_TARGETS), float(count))
        step = likelihood.cdf(F, Y) - likelihood.cdf(F, Y - 1)
        np.testing.assert_allclose(step, jnp.exp(likelihood.log_density(F, Y)), rtol=1e-6)
        np.testing.assert_array_equal(likelihood.cdf(F, Y + 0.5), likelihood.cdf(F, Y))


@pytest.mark.parametrize("name", EXAMPLES)
def test_samples_have_the_moments_and_the_distribution(name, key):
    likelihood, F, law = EXAMPLES[name]()
    n = 20_000
    sample = jax.jit(jax.vmap(lambda key: likelihood.sample(F, key=key)))
    samples = np.asarray(sample(jax.random.split(key, n)))
    mean, variance = (np.asarray(moment) for moment in likelihood.moments(F))
    assert np.abs((samples.mean(axis=0) - mean) / np.sqrt(variance / n)).max() < 4
    for quantile in (0.1, 0.5, 0.9):
        y = law.ppf(quantile)
        p = law.cdf(y)
        share = (samples <= y).mean(axis=0)
        assert np.abs((share - p) / np.sqrt(p * (1 - p) / n)).max() < 4
    rows_and_targets = samples[0].ravel() if not likelihood.discrete else np.arange(6)
    assert len(np.unique(rows_and_targets)) == 6
