"""Images stay bytes on the device, and nothing else changes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner import Deep, DeepGPClassifier
from bochner.fitting import training
from bochner.rows.pixels import PixelTable, table_for_batches
from bochner.rows.table import Table

# XLA multiplies with the inverse of what it is asked to divide by.
ONE_ROUNDING = 2**-23


def images(n=40, d_in=64, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, d_in)).astype(np.uint8)


def test_every_byte_becomes_the_number_that_scaling_gives():
    all_bytes = np.tile(np.arange(256, dtype=np.uint8)[:, None], (1, 64))
    table = table_for_batches(all_bytes / 255.0, np.zeros((256, 1)))
    assert isinstance(table, PixelTable)
    assert table.X.dtype == jnp.uint8
    rows = jax.jit(lambda table, index: table.rows(index).X)(table, jnp.arange(256))
    np.testing.assert_allclose(rows, all_bytes / 255.0, rtol=ONE_ROUNDING)


def test_rows_are_those_of_a_plain_table():
    X, Y, weights = images() / 255.0, np.arange(40)[:, None], np.linspace(1, 2, 40)
    index = jnp.asarray([3, 3, 39])
    ours, plain = (make(X, Y, weights).rows(index) for make in (table_for_batches, Table.of))
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=ONE_ROUNDING), ours, plain)


def test_steps_of_all_rows_get_numbers():
    X = images() / 255.0
    table, index = table_for_batches(X, np.zeros((40, 1))).in_steps(40, (0,)).take(0, 1, 1)
    assert index is None
    np.testing.assert_allclose(table.X, X, rtol=ONE_ROUNDING)


@pytest.mark.parametrize(
    "X",
    [
        images() / 254.0,
        images() / 255.0 - 0.5,
        np.where(images() == 7, 1e-3, images() / 255.0),
        images(d_in=63) / 255.0,
        np.full((40, 64), np.nan),
    ],
    ids=["other scale", "centered", "one value between bytes", "too few for an image", "missing"],
)
def test_what_is_not_bytes_stays_float32(X):
    table = table_for_batches(X, np.zeros((40, 1)))
    assert type(table) is Table
    np.testing.assert_array_equal(table.X, X.astype(np.float32))


def test_a_classifier_of_images_is_the_same(monkeypatch):
    X, y = images(300), images(300)[:, 0] // 128
    X[0, 0] = 255
    kinds = []

    def predictions():
        model = DeepGPClassifier(
            Deep(preprocessing="unit", batch_size=50, max_steps=20, theta_from=0),
            preset="paper",
            random_state=0,
        )
        return model.fit(X, y).predict_proba(X[:9])

    def noted(make):
        def made(*arguments):
            table = make(*arguments)
            kinds.append(type(table))
            return table

        return made

    monkeypatch.setattr(training, "table_for_batches", noted(table_for_batches))
    of_bytes = predictions()
    monkeypatch.setattr(training, "table_for_batches", noted(Table.of))
    np.testing.assert_allclose(predictions(), of_bytes, atol=1e-5)
    assert kinds == [PixelTable, Table]
