import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner import datasets
from bochner.datasets.infinite_digits import (
    N_IMAGES,
    InfiniteDigits,
    base_digit,
    field_numbers,
)

needs_data = pytest.mark.skipif(
    not os.environ.get("BOCHNER_DATA"),
    reason="the environment variable BOCHNER_DATA does not name the folder of data files",
)


@pytest.fixture(scope="module")
def data():
    return datasets.load("mnist8m")


def numbers(n, low=70_000, seed=0):
    return np.random.default_rng(seed).integers(low, N_IMAGES, size=n)


def test_field_numbers_follow_the_arithmetic_of_unsigned_32_bit_numbers():
    index = np.concatenate([numbers(1000), [70_000, N_IMAGES - 1]])
    k1, k2 = field_numbers(jnp.asarray(index))
    expected_k1 = [((131_071 * int(i)) % 2**32) % 1521 for i in index]
    expected_k2 = [(k + 1 + 2 * int(i)) % 1522 for k, i in zip(expected_k1, index, strict=True)]
    assert k1.tolist() == expected_k1
    assert k2.tolist() == expected_k2


def test_each_training_digit_has_134_deformed_versions():
    base = np.bincount(np.asarray(base_digit(jnp.arange(N_IMAGES))), minlength=70_000)
    assert set(base[:10_000]) == {1}
    assert set(base[10_000:]) == {135}


def by_hand(digits: InfiniteDigits, i: int) -> np.ndarray:
    """One image as the original's steps are written, in NumPy."""
    side = 28
    x = np.asarray(digits.digits)[10_000 + (i - 10_000) % 60_000].astype(float).reshape(side, side)
    k1 = ((131_071 * i) % 2**32) % 1521
    k2 = (k1 + 1 + 2 * i) % 1522
    s = 1.0 if (k1 + k2) % 2 == 0 else -1.0
    smooth, slope = np.asarray(digits.smoothing, float), np.asarray(digits.derivative, float)
    F = np.asarray(digits.fields, float)
    v = x + s * (F[k1] * (smooth @ x @ slope.T) - F[k2] * (slope @ x @ smooth.T))
    v = np.trunc(np.clip(v, 0, 255))
    shifted = np.zeros((side + 2, side + 2))
    down, right = [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0)][
        k1 % 9
    ]
    shifted[1 + down : 29 + down, 1 + right : 29 + right] = v
    return shifted[1:-1, 1:-1].ravel()


@needs_data
def test_images_follow_the_steps_of_the_generator(data):
    index = numbers(60)
    expected = np.stack([by_hand(data.X, int(i)) for i in index])
    difference = np.abs(data.X[index].astype(float) - expected)
    # Rounding may move a value across a whole number before it is truncated.
    assert difference.max() <= 1
    assert np.mean(difference > 0) < 1e-3


@needs_data
def test_the_first_images_are_those_of_mnist_unchanged(data):
    mnist = datasets.load("mnist")
    index = np.array([0, 9_999, 10_000, 69_999])
    np.testing.assert_array_equal(data.X[index], mnist.X[[60_000, 69_999, 0, 59_999]])
    assert data.y[index].tolist() == mnist.y[[60_000, 69_999, 0, 59_999]].tolist()
    assert data.splits[0].tolist() == list(range(10_000))


@needs_data
def test_labels_are_those_of_the_digits_that_images_are_made_from(data):
    index = numbers(1000)
    mnist = datasets.load("mnist")
    assert data.y[index].tolist() == mnist.y[(index - 10_000) % 60_000].tolist()
    assert data.y[index].tolist() == data.X.label(jnp.asarray(index)).tolist()
    assert len(data.y) == N_IMAGES == len(data.X)


@needs_data
def test_an_image_does_not_depend_on_what_else_is_asked_for(data):
    index = numbers(40)
    np.testing.assert_array_equal(data.X[index][7], data.X[index[7:8]][0])
    np.testing.assert_array_equal(data.X[index], datasets.load("mnist8m").X[index])


@needs_data
def test_deformed_digits_differ_from_their_digit_and_still_look_like_digits(data):
    """Their nearest neighbors among other digits of MNIST, pixel by pixel, are mostly of their class."""
    known = np.arange(65_000, 70_000)
    digits = np.random.default_rng(0).integers(10_000, 65_000, size=500)
    deformed, plain = data.X[digits + 60_000 * 7], data.X[digits]
    distance = np.sum(data.X[known].astype(float) ** 2, axis=1) - 2 * (
        deformed.astype(float) @ data.X[known].T.astype(float)
    )
    assert np.mean(np.any(deformed != plain, axis=1)) > 0.99
    assert np.mean(data.y[known[distance.argmin(axis=1)]] == data.y[digits]) > 0.75
    ink = deformed.sum(axis=1, dtype=float) / plain.sum(axis=1, dtype=float)
    assert 0.9 < np.median(ink) < 1.15


@needs_data
def test_rows_are_made_inside_a_compiled_function(data):
    table = data.X.table()
    index = jnp.array([0, 60_000, 8_099_999])
    batch = jax.jit(lambda i: table.rows(i))(index)
    assert batch.X.shape == (3, 784)
    assert float(batch.X.max()) <= 1.0
    np.testing.assert_array_equal(
        np.asarray(batch.X * 255).round(), data.X[10_000 + np.asarray(index)]
    )
    assert batch.Y[:, 0].tolist() == data.y[10_000 + np.asarray(index)].tolist()
    assert table.n_rows == table.total_weight == 8_100_000


@needs_data
def test_training_on_images_made_on_the_fly_learns(data):
    from bochner.gp.layers import LayerSettings
    from bochner.gp.model import DeepGP
    from bochner.likelihoods import Softmax
    from bochner.training import Budget, Plan, train

    model = DeepGP.start(
        [LayerSettings(10, n_rf=50, lengthscale=8.0, log_var=-4.0)], Softmax(),
        d_in=784, feed_inputs=False, key=jax.random.key(0),
    )  # fmt: skip
    trained = train(
        model, data.X.table(), plan=Plan(theta_from=None), budget=Budget(max_steps=60),
        batch_size=100, learning_rate=0.02, key=jax.random.key(1),
    )  # fmt: skip
    per_row = [record.ell / 8.1e6 for record in trained.history]
    assert per_row[-1] > per_row[0] + 0.5


@needs_data
def test_all_images_at_once_are_refused(data):
    with pytest.raises(ValueError, match=r"8,110,000 images would fill 6\.4 GB.*`data\.X\.table"):
        np.asarray(data.X)
    with pytest.raises(ValueError, match="at most 1,000,000"):
        data.part(data.splits[0])
