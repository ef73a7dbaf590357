import jax.numpy as jnp
import numpy as np
import pytest

from bochner.kernels import KERNELS, ArcCosine, Matern
from tests.reference import covariances

VARIANCE = 1.7
LENGTHSCALES = {1: [0.8], 2: [0.7, 1.9], 5: [0.7, 1.9, 1.2, 3.0, 0.9]}


def make(name, lengthscale):
    return KERNELS[name](
        log_variance=jnp.log(VARIANCE), log_lengthscale=jnp.log(jnp.asarray(lengthscale))
    )


def points(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("d", LENGTHSCALES)
@pytest.mark.parametrize("name", KERNELS)
def test_covariance_equals_the_reference_with_ard(name, d, x64):
    X, X2 = points(6, d), points(4, d, seed=1)
    expected = covariances.matrix(name, X, X2, VARIANCE, LENGTHSCALES[d])
    actual = make(name, LENGTHSCALES[d]).covariance(jnp.asarray(X), jnp.asarray(X2))
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_one_lengthscale_for_all_inputs_equals_equal_ard_lengthscales(name, x64):
    X = jnp.asarray(points(5, 3))
    shared = make(name, 0.6).covariance(X, X)
    np.testing.assert_allclose(shared, make(name, [0.6] * 3).covariance(X, X), rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_covariance_is_symmetric_and_positive_semidefinite(name, x64):
    X = points(40, 3)
    X[1] = X[0]  # a repeated row
    K = np.asarray(make(name, [0.7, 1.9, 1.2]).covariance(jnp.asarray(X), jnp.asarray(X)))
    np.testing.assert_allclose(K, K.T, rtol=1e-10)
    assert np.linalg.eigvalsh(K).min() > -1e-6 * np.trace(K)


@pytest.mark.parametrize("name", KERNELS)
def test_variance_multiplies_the_covariance(name, x64):
    X = jnp.asarray(points(4, 2))
    kernel, zero = make(name, [0.7, 1.9]), jnp.zeros(())
    unit = KERNELS[name](log_variance=zero, log_lengthscale=kernel.log_lengthscale)
    np.testing.assert_allclose(
        kernel.covariance(X, X), VARIANCE * unit.covariance(X, X), rtol=1e-12
    )


@pytest.mark.parametrize("name", [name for name in KERNELS if not name.startswith("arccos")])
def test_stationary_covariances_of_a_point_with_itself_are_the_variance(name, x64):
    X = jnp.asarray(points(4, 2))
    np.testing.assert_allclose(np.diag(make(name, [0.7, 1.9]).covariance(X, X)), VARIANCE)


@pytest.mark.parametrize("name", ["arccos0", "arccos1", "arccos2"])
def test_arccosine_covariance_is_finite_at_the_origin(name):
    X = jnp.array([[0.0, 0.0], [1.0, 2.0]])
    K = make(name, [0.7, 1.9]).covariance(X, X)
    assert np.isfinite(K).all()
    if name != "arccos0":
        assert K[0, 0] == K[0, 1] == 0.0


@pytest.mark.parametrize("degree", [-1, 3, 1.5])
def test_other_degrees_of_the_arccosine_kernel_are_refused(degree):
    with pytest.raises((ValueError, TypeError)) as error:
        ArcCosine(jnp.zeros(()), jnp.zeros(()), degree=degree)
    assert "degree" in str(error.value)


@pytest.mark.parametrize("smoothness", [0.0, 1.0, 3.5])
def test_other_smoothness_of_the_matern_kernel_is_refused(smoothness):
    with pytest.raises(ValueError, match=f"`smoothness`.*0.5, 1.5 or 2.5; got {smoothness}"):
        Matern(jnp.zeros(()), jnp.zeros(()), smoothness=smoothness)
