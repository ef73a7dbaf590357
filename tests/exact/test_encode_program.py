import jax
import numpy as np
import pytest

from bochner.exact.encode_program import encoded, encoder
from bochner.exact.matrix import MatrixColumns
from tests.exact.models import encoding, matrix

NAMES = ("numbers", "ranks", "codes")


def arrays(rows):
    return [getattr(rows, name) for name in NAMES]


def encode(columns, X):
    with jax.enable_x64(True):
        return jax.jit(lambda X: arrays(encoder(columns)(X)))(np.asarray(X))


def wild():
    X = matrix(30, seed=4)
    X[0], X[1], X[2, :3] = np.nan, 0.0, 1e200
    X[3, :3], X[4, 0], X[5, 3:] = -1e30, np.inf, [0, 0, 0.5]
    return X


@pytest.mark.parametrize("make", [lambda: matrix(50), wild], ids=["usual", "wild"])
def test_it_is_the_encoding_of_columns(make):
    columns, X = encoding(), make()
    expected = columns(X)
    for name, found in zip(NAMES, encode(columns, X), strict=True):
        np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-13, atol=1e-13)


def test_single_precision_is_widened_first():
    X = wild().clip(-1e30, 1e30).astype(np.float32)
    expected = encoding()(X)
    for name, found in zip(NAMES, encode(encoding(), X), strict=True):
        np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("X", "sources"),
    [
        (np.ones((5, 2)), [(0,), (1,)]),
        (np.eye(6), [(0, 1, 2), (3,)]),
        (np.repeat(np.eye(3), 2, axis=0), [(0, 1, 2)]),
        (np.random.default_rng(0).normal(size=(20_000, 2)), [(1,)]),
        (np.geomspace(1e-40, 1, 30)[:, None], [(0,)]),
        (1e-100 * np.arange(9.0)[:, None], [(0,)]),
    ],
    ids=["constant", "rare values", "no numbers", "many knots", "close knots", "tiny"],
)
def test_it_is_so_for_tables_out_of_the_ordinary(X, sources):
    columns = MatrixColumns.learn(X, sources)
    expected = columns(X[:50])
    for name, found in zip(NAMES, encode(columns, X[:50]), strict=True):
        assert found.shape == getattr(expected, name).shape
        np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-12, atol=1e-12)


def test_derivatives_are_there_at_the_center_too():
    columns = MatrixColumns.learn(np.array([[-1.0], [0.0], [1.0]]), [(0,)])
    with jax.enable_x64(True):
        value = jax.jit(lambda x: encoder(columns)(x[None, None]).numbers[0, 0])
        slope = jax.grad(value)(np.float64(0.0))
    np.testing.assert_allclose(slope, 1.5**0.5)


def test_features_of_some_columns_are_those_of_rows():
    columns, X = encoding(), matrix(20)
    rows = columns(X)
    with jax.enable_x64(True):
        some = jax.jit(lambda X: arrays(encoder(columns)(X).of_columns((1, 3))))(X)
    expected = rows.of_columns((1, 3))
    assert encoded(rows).of_columns((1, 3)).layout == expected.layout
    for name, found in zip(NAMES, some, strict=True):
        np.testing.assert_allclose(found, getattr(expected, name), atol=1e-13)
