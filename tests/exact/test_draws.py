"""Functions drawn from models: the features of their priors first, then the draws themselves."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from bochner.exact import draws
from bochner.exact.draws import draw_functions
from bochner.exact.encode_program import encoded
from bochner.exact.kernels import RBF, Constant, Laplace, Linear
from bochner.exact.landmarks import LandmarkProcess
from bochner.exact.laws import Mixture
from bochner.exact.tails import Tails
from tests.exact.models import (
    PRODUCT_KERNEL,
    class_part,
    constant_part,
    density_part,
    encoding,
    frequencies,
    matrix,
    parameters,
    regression_part,
)

EXTENT = (-50.0, 60.0)
N_DRAWS = 200
PRIORS = {
    "laplace": Laplace(),
    "laplace of some": Laplace(0, 3),
    "rbf": RBF(),
    "rbf of some": RBF(1, 3),
    "linear": Linear(),
    "constant": Constant(),
    "sum": Laplace() + RBF() + Linear() + Constant(),
    "product": RBF(0) * Laplace(1, 3) * Linear(2),
    "constants": Constant() + Constant(),
    "sums and products": PRODUCT_KERNEL,
}


def new_rows() -> np.ndarray:
    """Rows between those seen, one far away, one with a missing number, one with a category never seen."""
    X = matrix(9, seed=5)
    X[:, 2] += 0.3
    X[6, 0], X[7, 1], X[8, 3:] = 4.0, np.nan, 0.0
    X[:6, 1] = np.where(np.isnan(X[:6, 1]), 0.5, X[:6, 1])
    return X


@pytest.mark.parametrize("kernel", PRIORS.values(), ids=PRIORS)
def test_products_of_features_are_the_covariance_in_the_mean(kernel):
    rows, rng = encoding()(new_rows()), np.random.default_rng(100)
    v = parameters(kernel, rows, rng)
    features = kernel.features(v, rows.layout, 2048)
    with jax.enable_x64(True):
        at_rows = jax.jit(lambda drawn: features.at(encoded(rows), drawn))
        found = [at_rows(features.draw(rng)) for _ in range(40)]
    F = np.concatenate(found, axis=1)
    products = F[:, None] * F[None]
    error = products.std(axis=2) / F.shape[1] ** 0.5 + 1e-9
    z = (products.mean(axis=2) - kernel.covariance(v, rows, rows)) / error
    assert np.abs(z).max() < 4.5


def moments_of(process, rows):
    """The mean and the whole covariance of a process at rows, by its formula and not by its code."""
    if isinstance(process, LandmarkProcess):
        known = process.landmarks
        K = known.kernel.covariance(known.v, rows, rows)
        of_landmarks = known.kernel.covariance(known.v, known.rows, known.rows)
        half = np.linalg.cholesky(of_landmarks + 1e-9 * np.eye(len(of_landmarks)))
        F = np.linalg.solve(half, known.kernel.covariance(known.v, known.rows, rows)).T
        A = process.factor @ process.factor.T
        return F @ process.weights, K - F @ F.T + F @ np.linalg.solve(A, F.T)
    K = process.kernel.covariance(process.v, rows, rows)
    cross = process.kernel.covariance(process.v, process.rows, rows)
    M = process.kernel.covariance(process.v, process.rows, process.rows) + np.diag(process.noise)
    return cross.T @ np.linalg.solve(M, process.targets), K - cross.T @ np.linalg.solve(M, cross)


def values_of_draws(part, X, n=N_DRAWS):
    functions = draw_functions(part, encoding(), EXTENT, n, np.random.default_rng(100))
    return np.stack([f(X) for f in functions])


@pytest.mark.parametrize("kernel", ["table", "product"])
@pytest.mark.parametrize("kind", ["exact", "landmarks"])
def test_draws_have_mean_and_covariance_of_the_posterior(kind, kernel):
    part, X = regression_part(kind, kernel), new_rows()
    rows = encoding()(X)
    mean, covariance = moments_of(part.process, rows)
    for found, expected in zip(
        part.process.predict(rows), (mean, np.diag(covariance)), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    off = part.transform(values_of_draws(part, X)) - mean
    variances = np.diag(covariance)
    z = off.mean(axis=0) / np.sqrt(variances / N_DRAWS)
    assert np.abs(z).max() < 4.5
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / N_DRAWS)
    assert np.abs((off.T @ off / N_DRAWS - covariance) / error).max() < 4.5
    # All directions in which functions vary at all have the same say.
    sizes, directions = np.linalg.eigh(covariance)
    kept = sizes > 0.01 * sizes.max()
    squares = np.sum((off @ directions[:, kept]) ** 2 / sizes[kept], axis=1)
    assert abs(squares.mean() - kept.sum()) < 4.5 * squares.std() / N_DRAWS**0.5


@pytest.mark.parametrize("kind", ["exact", "landmarks"])
def test_tails_widen_functions_as_they_widen_laws(kind):
    part = dataclasses.replace(regression_part(kind), tails=Tails(5.0, 1.3))
    X = np.concatenate([new_rows(), matrix(40)[:9]])  # the noise of its targets at rows it knows
    mixture = Mixture(np.ones(1), [part.law(encoding()(X))], EXTENT)
    values = values_of_draws(part, X)
    z = (values.mean(axis=0) - mixture.mean) / np.sqrt(mixture.epistemic / N_DRAWS)
    assert np.abs(z).max() < 4.5
    ratios = np.mean((values - mixture.mean) ** 2, axis=0) / mixture.epistemic
    assert np.abs(ratios - 1).max() < 4.5 * (2 / N_DRAWS) ** 0.5
    assert abs(ratios.mean() - 1) < 0.2


@pytest.mark.parametrize("transform", ["log", "yeo-johnson"])
def test_values_are_means_of_the_target_where_it_is_transformed(transform):
    """The mean over functions of the mean given each is the mean of the law."""
    part = regression_part("exact", "table", transform)
    X = new_rows()[[0, 1, 2, 3, 4, 5, 7, 8]]
    wide = (-1e6, 1e6)
    (law,) = [part.law(encoding()(X))]
    functions = draw_functions(part, encoding(), wide, N_DRAWS, np.random.default_rng(100))
    values = np.stack([f(X) for f in functions])
    expected = Mixture(np.ones(1), [law], wide).mean
    z = (values.mean(axis=0) - expected) / (values.std(axis=0) / N_DRAWS**0.5)
    assert np.abs(z).max() < 4.5


@pytest.mark.parametrize(("kind", "n_classes"), [("exact", 3), ("landmarks", 2)])
def test_classes_add_up_to_one_and_average_to_their_probabilities(kind, n_classes):
    part, X = class_part(kind, n_classes), new_rows()
    values = values_of_draws(part, X)
    assert values.shape == (N_DRAWS, len(X), n_classes)
    np.testing.assert_allclose(values.sum(axis=2), 1.0, rtol=1e-12)
    means, variances = part.functions.predict(encoding()(X))
    normal = np.random.default_rng(101).normal(size=(20_000, *means.shape))
    f = (means + np.sqrt(variances) * normal) / part.temperature
    expected = scipy.special.softmax(f, axis=2)
    error = expected.std(axis=0) / N_DRAWS**0.5
    assert np.abs((values.mean(axis=0) - expected.mean(axis=0)) / error).max() < 4.5
    ratios = np.mean((values - expected.mean(axis=0)) ** 2, axis=0) / expected.var(axis=0)
    assert abs(ratios.mean() - 1) < 0.15


def test_what_is_the_same_for_all_rows_is_drawn_as_such():
    X, rng = new_rows(), np.random.default_rng(100)
    (f,) = draw_functions(constant_part(), encoding(), EXTENT, 1, rng)
    np.testing.assert_allclose(f(X), 3.0)
    (f,) = draw_functions(frequencies(), encoding(), EXTENT, 1, rng)
    np.testing.assert_allclose(f(X), np.tile([0.3, 0.7], (len(X), 1)))


PARTS = {
    "exact": regression_part,
    "landmarks, all else": lambda: regression_part("landmarks", "product", "log", True),
    "classes": lambda: class_part("landmarks", 3),
    "density": density_part,
    "constant": constant_part,
    "frequencies": frequencies,
}


@pytest.fixture(scope="module", params=PARTS.values(), ids=PARTS)
def drawn(request):
    """Three functions of a part."""
    return draw_functions(request.param(), encoding(), EXTENT, 3, np.random.default_rng(100))


def of_row(f):
    return lambda x: f(x[None])[0]


def derivatives(f, X):
    """The derivatives of each row's values, from those of sums over rows."""
    J = jax.jacrev(lambda X: jnp.sum(f(X), axis=0))(X)
    return np.moveaxis(np.asarray(J), -2, 0)


def test_values_are_the_same_traced_and_not(drawn):
    f = drawn[0]
    X = jnp.asarray(new_rows(), jnp.float32)
    expected = f(np.asarray(X))
    assert isinstance(expected, np.ndarray)
    assert expected.dtype == np.float64
    traced = f(X)
    assert isinstance(traced, jax.Array)
    assert traced.dtype == jnp.float32
    np.testing.assert_allclose(traced, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(f(np.asarray(X)[::-1]), expected[::-1], rtol=1e-10)
    with jax.enable_x64(True):
        np.testing.assert_allclose(f(jnp.asarray(new_rows())), f(new_rows()), rtol=1e-12)
    assert not jax.config.jax_enable_x64


def test_derivatives_of_a_traced_draw_equal_finite_differences(drawn):
    f, X, step = drawn[0], new_rows().astype(np.float32), 3e-8
    columns = [0, 1, 2]  # the others are the dummies of a category
    differences = [
        (f(X + step * unit) - f(X - step * unit)) / (2 * step) for unit in np.eye(6)[columns]
    ]
    J = derivatives(f, jnp.asarray(X))
    np.testing.assert_allclose(J[..., columns], np.stack(differences, -1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(J[..., 3:], 0)
    np.testing.assert_array_equal(J[7, ..., 1], 0)  # where it is missing
    dX = np.random.default_rng(101).normal(size=X.shape).astype(np.float32)
    _, found = jax.jvp(f, (jnp.asarray(X),), (jnp.asarray(dX),))
    np.testing.assert_allclose(found, np.einsum("n...d,nd->n...", J, dX), rtol=1e-4, atol=1e-5)
    X[0, 0], X[1, 0] = np.inf, 1e30
    assert np.isfinite(derivatives(f, jnp.asarray(X))).all()


def test_values_and_derivatives_can_be_compiled_and_mapped_in_single_precision(drawn):
    f, X = drawn[0], jnp.asarray(new_rows(), jnp.float32)
    both = jax.jit(jax.vmap(lambda x: (of_row(f)(x), jax.jacrev(of_row(f))(x))))
    values, slopes = both(X)
    np.testing.assert_allclose(values, f(X), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(slopes, derivatives(f, X), rtol=1e-5, atol=1e-6)


def test_functions_differ_and_the_generator_decides_which_they_are():
    part, X = regression_part(), new_rows()
    one, other = values_of_draws(part, X, n=2)
    assert (one != other).all()
    np.testing.assert_array_equal(values_of_draws(part, X, n=2), [one, other])


def test_functions_of_a_model_share_what_is_compiled(compilations):
    functions = draw_functions(regression_part(), encoding(), EXTENT, 5, np.random.default_rng(0))
    for f in functions:
        f(new_rows())
    assert [name for name in compilations if "of_matrix" in name] == ["jit(of_matrix)"]


@pytest.fixture
def plane():
    """A function that compiles in no time."""
    part = regression_part("exact", "linear")
    return draw_functions(part, encoding(), EXTENT, 1, np.random.default_rng(0))[0]


def test_whole_numbers_are_taken_as_numbers(plane):
    X = np.ones((2, 6), int)
    found = plane(jnp.asarray(X))
    assert jnp.issubdtype(found.dtype, jnp.floating)
    np.testing.assert_allclose(found, plane(X), rtol=1e-6)


def test_many_rows_are_taken_block_by_block(plane, monkeypatch):
    X = np.tile(new_rows(), (3, 1))
    whole = plane(X)
    monkeypatch.setattr(draws, "_BLOCK", 9)
    np.testing.assert_allclose(plane(X), whole, rtol=1e-12)
    monkeypatch.setattr(draws, "_BLOCK", 20)
    np.testing.assert_allclose(plane(X), whole, rtol=1e-12)
    assert plane(X[:0]).shape == (0,)
