"""Random features against the exact kernels: unbiased, close, and closer as N_RF^(-1/2)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.features.frequencies import Independent
from bochner.features.random_features import RandomFeatures
from bochner.features.spectra import PriorFixed
from bochner.kernels import KERNELS
from tests.kernels.test_covariance import LENGTHSCALES, VARIANCE, make, points
from tests.reference import covariances

N_FREQUENCIES = 64_000


@functools.cache
def frequencies(name, d, scales_per_coordinate=False):
    """Many epsilon and scales of a kernel."""
    key_epsilon, key_scale = jax.random.split(jax.random.key(0))
    epsilon = Independent().draw(d, N_FREQUENCIES, key=key_epsilon)
    kernel = make(name, LENGTHSCALES.get(d, [1.0] * d))
    if scales_per_coordinate:
        scales = kernel.draw_scales(epsilon.size, key=key_scale)
        return epsilon * scales.reshape(epsilon.shape), jnp.ones(N_FREQUENCIES)
    return epsilon, kernel.draw_scales(N_FREQUENCIES, key=key_scale)


def grams(name, X, lengthscale, n_rf, **options):
    """Draws of `Phi Phi'`, as many as there are frequencies for, in NumPy float64."""
    kernel = make(name, lengthscale)
    epsilon, scales = frequencies(name, X.shape[1], **options)

    @jax.jit
    @jax.vmap
    def gram(epsilon, scale):
        features = RandomFeatures(kernel, PriorFixed.start(kernel, epsilon, scale))
        Phi = features.draw(None).matrix(jnp.asarray(X, jnp.float32))
        return Phi @ Phi.T

    epsilons = np.moveaxis(np.asarray(epsilon).reshape(X.shape[1], -1, n_rf), 1, 0)
    return np.asarray(gram(epsilons, np.asarray(scales).reshape(-1, n_rf)), np.float64)


def z_scores(draws, expected):
    """Of the mean over draws; the rounding of float32 is part of the standard error."""
    error = draws.std(axis=0) / np.sqrt(len(draws)) + 1e-5 * np.abs(expected).max()
    return (draws.mean(axis=0) - expected) / error


@functools.cache
def exact(name, d, n=6):
    return covariances.matrix(name, points(n, d), points(n, d), VARIANCE, LENGTHSCALES[d])


@pytest.mark.parametrize("d", LENGTHSCALES)
@pytest.mark.parametrize("name", KERNELS)
def test_features_are_unbiased_and_close_to_the_exact_kernel(name, d):
    draws = grams(name, points(6, d), LENGTHSCALES[d], n_rf=200)
    expected = exact(name, d)
    assert np.abs(z_scores(draws, expected)).max() < 4
    tolerance = 0.05 if name == "arccos2" else 0.02
    assert np.abs(draws.mean(axis=0) - expected).max() < tolerance * np.abs(expected).max()


@pytest.mark.parametrize("name", KERNELS)
def test_error_of_the_features_falls_as_the_square_root_of_their_number(name):
    numbers = [20, 80, 320]
    errors = [
        np.sqrt(np.mean((grams(name, points(6, 2), LENGTHSCALES[2], n) - exact(name, 2)) ** 2))
        for n in numbers
    ]
    slope = np.polyfit(np.log(numbers), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)


@pytest.mark.parametrize("name", ["matern12", "matern32", "matern52"])
def test_matern_features_need_one_scale_shared_by_the_coordinates(name):
    X, lengthscale = points(6, 3), [1.0, 1.0, 1.0]
    expected = covariances.matrix(name, X, X, VARIANCE, lengthscale)
    shared = grams(name, X, lengthscale, n_rf=200)
    separate = grams(name, X, lengthscale, n_rf=200, scales_per_coordinate=True)
    assert np.abs(z_scores(shared, expected)).max() < 4
    assert np.abs(z_scores(separate, expected)).max() > 20
    assert np.abs(separate.mean(axis=0) - expected).max() > 0.03 * VARIANCE


@pytest.mark.parametrize(("name", "parts"), [("rbf", 2), ("matern32", 2), ("arccos1", 1)])
def test_features_carry_the_factor_of_the_paper(name, parts):
    kernel = make(name, [1.0])
    factor = 1.0 if parts == 2 else 2.0
    assert kernel.n_parts == parts
    assert float(kernel.feature_variance(50)) == pytest.approx(factor * VARIANCE / 50, rel=1e-6)


def test_activations_of_the_arccosine_kernels_are_steps_relus_and_squared_relus():
    Z = jnp.array([[-1.5, 0.0, 0.5, 3.0]])
    for degree, expected in enumerate(([0, 0, 1, 1], [0, 0, 0.5, 3], [0, 0, 0.25, 9])):
        (part,) = make(f"arccos{degree}", [1.0]).activate(Z)
        np.testing.assert_array_equal(part[0], np.array(expected, np.float32))


def test_scales_of_gaussian_frequency_laws_are_ones_and_matern_frequencies_are_student_t(key):
    for name in ("rbf", "arccos1"):
        assert (make(name, [1.0]).draw_scales(50, key=key) == 1).all()
    # The square of the scale is inverse gamma: 1 / scale^2 has mean 1 and variance 1 / nu.
    for name, nu in covariances.SMOOTHNESS.items():
        inverse = np.asarray(make(name, [1.0]).draw_scales(100_000, key=key)) ** -2.0
        assert inverse.mean() == pytest.approx(1.0, abs=4 / np.sqrt(nu * 100_000))
        assert inverse.var() == pytest.approx(1 / nu, rel=0.05)
