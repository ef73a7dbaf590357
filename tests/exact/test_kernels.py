import math

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as reference
from sklearn.metrics.pairwise import laplacian_kernel

from bochner.exact.kernels import RBF, Constant, Laplace, Linear, Product, Sum
from tests.exact.models import PRODUCT_KERNEL
from tests.exact.tables import mixed_rows, numbers

KERNELS = {
    "laplace": Laplace(),
    "laplace of some": Laplace(1, 3),
    "rbf": RBF(),
    "rbf of some": RBF(0, 3),
    "linear": Linear(),
    "constant": Constant(),
    "sum": Laplace() + RBF() + Linear() + Constant(),
    "product": RBF(0) * Laplace(1, 2) * Linear(),
    "sums and products": PRODUCT_KERNEL,
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def parameters(kernel, rows, seed=1):
    start = kernel.start(rows.layout, 1.0).values
    return start + 0.3 * np.random.default_rng(seed).normal(size=len(start))


# Of the mixed rows. The second column has two axes, of which the first tells whether it is missing.
COLUMN_OF_AXIS = (0, 1, 1, 2, 3)
AXIS_OF_NUMBER = (0, 1, 2, 3, 4, 4, 4)
AXIS_OF_RANK = (0, 2, 3)
AXIS_OF_CODE = (1, 4)


def by_hand(kernel, parameters, rows, i, j):
    """The covariance of two rows, feature by feature; parameters are taken from an iterator."""
    if isinstance(kernel, Sum):
        return sum(by_hand(part, parameters, rows, i, j) for part in kernel.parts)
    if isinstance(kernel, Product):
        return math.prod(by_hand(part, parameters, rows, i, j) for part in kernel.parts)
    if isinstance(kernel, Constant):
        return math.exp(next(parameters))
    wanted = range(4) if kernel.columns is None else kernel.columns
    axes = [axis for axis, column in enumerate(COLUMN_OF_AXIS) if column in wanted]
    log_variance = 0.0 if isinstance(kernel, Linear) else next(parameters)
    of_axis = {axis: math.exp(next(parameters)) for axis in axes}

    def features(name, axis_of):
        values = getattr(rows, name)
        for place, axis in enumerate(axis_of):
            if axis in of_axis:
                yield of_axis[axis], values[i, place], values[j, place]

    z = list(features("numbers", AXIS_OF_NUMBER))
    if isinstance(kernel, Linear):
        return sum(variance * one * other for variance, one, other in z)
    if isinstance(kernel, RBF):
        distance = sum(((one - other) / length) ** 2 / 2 for length, one, other in z)
    else:
        u = features("ranks", AXIS_OF_RANK)
        distance = sum(abs(one - other) / length for length, one, other in u)
        codes = features("codes", AXIS_OF_CODE)
        distance += sum((one != other) / length for length, one, other in codes)
    return math.exp(log_variance - distance)


@every_kernel
def test_covariance_is_that_of_the_formula(kernel):
    rows = mixed_rows(30)
    v = parameters(kernel, rows)
    expected = [[by_hand(kernel, iter(v), rows, i, j) for j in range(9, 25)] for i in range(12)]
    np.testing.assert_allclose(kernel.covariance(v, rows[:12], rows[9:25]), expected, rtol=1e-10)


@pytest.mark.parametrize("n", [30, 150])
@every_kernel
def test_pull_back_is_the_derivative(kernel, n):
    rows = mixed_rows(n)
    v, rng = parameters(kernel, rows), np.random.default_rng(102)
    G = rng.normal(size=(n, n))
    G = G + G.T
    _, pull_back = kernel.with_pull_back(v, rows)

    def value(v):
        return np.sum(G * kernel.covariance(v, rows, rows))

    differences = [(value(v + e) - value(v - e)) / 2e-5 for e in 1e-5 * np.eye(len(v))]
    np.testing.assert_allclose(pull_back(G), differences, rtol=1e-5, atol=1e-4)


@every_kernel
def test_covariance_is_symmetric_and_positive_semidefinite(kernel):
    rows = mixed_rows(40)
    v = parameters(kernel, rows)
    K, _ = kernel.with_pull_back(v, rows)
    np.testing.assert_allclose(K, kernel.covariance(v, rows, rows), atol=1e-12)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(K), kernel.diagonal(v, rows), atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_rbf_equals_that_of_scikit_learn():
    rows = numbers(20, 3)
    lengthscales = np.array([0.5, 1.0, 3.0])
    expected = 2.0 * reference.RBF(lengthscales)(rows.numbers)
    found = RBF().covariance(np.log([2.0, *lengthscales]), rows, rows)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_laplace_equals_that_of_scikit_learn():
    rows = numbers(20, 3)
    lengthscales = np.array([0.5, 1.0, 3.0])
    expected = 2.0 * laplacian_kernel(rows.ranks / lengthscales, gamma=1.0)
    found = Laplace().covariance(np.log([2.0, *lengthscales]), rows, rows)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_linear_equals_that_of_scikit_learn():
    rows = numbers(20, 3)
    expected = reference.DotProduct(sigma_0=2.0)(rows.numbers)
    kernel = Linear() + Constant()
    found = kernel.covariance(np.log([1.0, 1.0, 1.0, 4.0]), rows, rows)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_categories_that_differ_are_a_lengthscale_apart():
    rows = mixed_rows(30).of_columns([3])
    K = Laplace().covariance(np.log([1.0, 2.0]), rows, rows)
    differ = rows.codes != rows.codes.T
    np.testing.assert_allclose(K, np.where(differ, np.exp(-0.5), 1.0))


def test_sums_and_products_are_written_with_operators():
    assert RBF() + Linear() + Constant() == Sum((RBF(), Linear(), Constant()))
    assert RBF() * Linear() == Product((RBF(), Linear()))
