import numpy as np
import pytest
import scipy.stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as reference

from bochner.exact.kernels import RBF, Constant, Laplace, Linear
from bochner.exact.learning import Effort, learn
from bochner.exact.linear_algebra import factorize
from bochner.exact.marginal import GivenNoise, LearnedNoise, negative_log_marginal
from bochner.exact.parts import TABLE_KERNEL
from bochner.exact.process import Process
from tests.exact.tables import mixed_rows, numbers

KERNEL = Laplace() + RBF() + Linear() + Constant()


def setting(n=40, seed=0):
    rng = np.random.default_rng(seed)
    rows = mixed_rows(n, seed)
    v = KERNEL.start(rows.layout, 0.5).values + 0.2 * rng.normal(
        size=KERNEL.n_parameters(rows.layout)
    )
    return rows, v, rng.normal(size=n), 0.05 + rng.random(n)


def test_marginal_likelihood_is_that_of_a_normal_vector():
    rows, v, t, noise = setting()
    found, _ = negative_log_marginal(KERNEL, v, rows, t[:, None], GivenNoise(noise[:, None]))
    covariance = KERNEL.covariance(v, rows, rows) + np.diag(noise)
    expected = scipy.stats.multivariate_normal(cov=covariance).logpdf(t)
    np.testing.assert_allclose(-found - 20 * np.log(2 * np.pi), expected, rtol=1e-8)


def test_marginal_likelihood_of_several_targets_is_a_sum():
    rows, v, t, noise = setting()
    both = negative_log_marginal(
        KERNEL, v, rows, np.stack([t, t**2], 1), GivenNoise(np.stack([noise, 2 * noise], 1))
    )
    first = negative_log_marginal(KERNEL, v, rows, t[:, None], GivenNoise(noise[:, None]))
    second = negative_log_marginal(KERNEL, v, rows, t[:, None] ** 2, GivenNoise(2 * noise[:, None]))
    np.testing.assert_allclose(both[0], first[0] + second[0])
    np.testing.assert_allclose(both[1], first[1] + second[1], atol=1e-10)


def test_gradient_of_marginal_likelihood_equals_differences():
    rows, v, t, relative = setting()
    v, noise = np.append(-1.0, v), LearnedNoise(relative)

    def value(v):
        return negative_log_marginal(KERNEL, v, rows, t[:, None], noise)

    differences = [(value(v + e)[0] - value(v - e)[0]) / 2e-5 for e in 1e-5 * np.eye(len(v))]
    np.testing.assert_allclose(value(v)[1], differences, rtol=1e-5, atol=1e-6)


def test_predictions_equal_those_of_scikit_learn():
    rows, rng = numbers(50, 2), np.random.default_rng(100)
    t, new = rng.normal(size=40), rows[40:]
    peer = GaussianProcessRegressor(1.5 * reference.RBF([0.7, 2.0]), alpha=0.1, optimizer=None)
    mean, deviation = peer.fit(rows.numbers[:40], t).predict(new.numbers, return_std=True)
    process = Process.condition(RBF(), np.log([1.5, 0.7, 2.0]), rows[:40], t, np.full(40, 0.1))
    found, variance = process.predict(new)
    np.testing.assert_allclose(found, mean, atol=1e-8)
    np.testing.assert_allclose(variance, deviation**2, atol=1e-8)


@pytest.mark.parametrize("grouped", [False, True])
def test_left_out_rows_equal_refits_without_their_group(grouped):
    rows, v, t, noise = setting()
    groups = np.random.default_rng(101).integers(0, 12, 40) if grouped else np.arange(40)
    process = Process.condition(KERNEL, v, rows, t, noise)
    mean, variance = process.left_out(groups if grouped else None)
    for group in np.unique(groups):
        out, kept = groups == group, groups != group
        refit = Process.condition(KERNEL, v, rows[kept], t[kept], noise[kept])
        expected, spread = refit.predict(rows[out])
        np.testing.assert_allclose(mean[out], expected, atol=1e-6)
        np.testing.assert_allclose(variance[out], spread + noise[out], atol=1e-6)


def test_far_rows_have_the_variance_of_the_prior():
    rows = numbers(30, 2)
    process = Process.condition(RBF(), np.log([1.5, 0.1, 0.1]), rows[:29], np.ones(29), np.ones(29))
    far = rows[29:]
    far.numbers[:] = 50.0
    assert process.predict(far)[1] == pytest.approx(1.5)


def test_singular_covariances_have_a_factor():
    for M in (np.ones((5, 5)), np.zeros((5, 5)), np.ones((5, 5)) - 1e-7 * np.eye(5)):
        L = factorize(M)
        np.testing.assert_allclose(L @ L.T, M, atol=1e-5)


def test_infinite_covariances_have_none():
    with pytest.raises(FloatingPointError, match="not finite"):
        factorize(np.full((2, 2), np.nan))


def test_parameters_are_learned_from_few_rows_first_and_from_all_then():
    rng = np.random.default_rng(100)
    rows = numbers(200, 2)
    t = np.sin(2 * rows.numbers[:, 0]) + 0.1 * rng.normal(size=200)
    noise = LearnedNoise(np.ones(200))
    v = learn(TABLE_KERNEL, rows, t[:, None], noise, effort=Effort(few=60))
    assert 0.05 < np.exp(v[0]) ** 0.5 < 0.2
    again = learn(TABLE_KERNEL, rows, t[:, None], noise, effort=Effort(few=60))
    np.testing.assert_array_equal(v, again)
