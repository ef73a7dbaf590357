import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bochner.rows.table import RowOrder, Table


@pytest.mark.parametrize(("n_rows", "batch_size"), [(12, 4), (10, 10), (7, 1)])
def test_each_epoch_covers_every_row_once(n_rows, batch_size):
    order, per_epoch = RowOrder(n_rows, batch_size, seed=(3,)), n_rows // batch_size
    epochs = [order.steps(epoch * per_epoch, per_epoch).ravel() for epoch in range(4)]
    for rows in epochs:
        assert sorted(rows) == list(range(n_rows))
    if n_rows > 1:
        assert len({tuple(rows) for rows in epochs}) == 4


def test_rows_that_do_not_fill_a_batch_wait_for_another_epoch():
    order = RowOrder(n_rows=10, batch_size=4, seed=(0,))
    seen = order.steps(0, 40).reshape(20, 8)
    assert all(len(set(epoch)) == 8 for epoch in seen)
    assert set(seen.ravel()) == set(range(10))


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.sampled_from([(10, 3), (12, 4), (5, 5), (100, 7)]),
    cuts=st.lists(st.integers(1, 20), min_size=1, max_size=8),
    start=st.integers(0, 50),
)
def test_any_chunking_gives_the_same_rows(sizes, cuts, start):
    whole = RowOrder(*sizes, seed=(1, 2)).steps(start, sum(cuts))
    order, step, pieces = RowOrder(*sizes, seed=(1, 2)), start, []
    for cut in cuts:
        pieces.append(order.steps(step, cut))
        step += cut
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    fresh = RowOrder(*sizes, seed=(1, 2)).steps(start + sum(cuts) - 1, 1)
    np.testing.assert_array_equal(fresh[0], whole[-1])


def test_a_step_can_be_asked_for_again_after_a_later_one():
    order = RowOrder(n_rows=20, batch_size=5, seed=(4,))
    first = order.steps(0, 3).copy()
    order.steps(40, 10)
    np.testing.assert_array_equal(order.steps(0, 3), first)


def test_seeds_give_different_orders():
    orders = [RowOrder(50, 10, seed=seed).steps(0, 5) for seed in [(0,), (1,), (0, 1)]]
    assert len({order.tobytes() for order in orders}) == 3
    assert orders[0].shape == (5, 10)
    assert orders[0].dtype == np.int32


def test_a_table_keeps_numbers_as_floats_and_classes_as_integers():
    numbers = Table.of(np.zeros((3, 2)), np.ones((3, 1)))
    assert (numbers.X.dtype, numbers.Y.dtype) == (jnp.float32, jnp.float32)
    assert Table.of(np.zeros((3, 2)), np.ones((3, 1), int)).Y.dtype == jnp.int32
    assert jnp.array_equal(numbers.weights, jnp.ones(3))
    assert numbers.n_rows == 3


def test_rows_are_gathered_together_with_their_targets_and_weights():
    X, Y, weights = np.arange(8.0).reshape(4, 2), np.arange(4.0)[:, None], np.arange(4.0)
    rows = Table.of(X, Y, weights).rows(jnp.array([2, 0]))
    np.testing.assert_array_equal(rows.X, X[[2, 0]])
    np.testing.assert_array_equal(rows.Y[:, 0], [2.0, 0.0])
    np.testing.assert_array_equal(rows.weights, [2.0, 0.0])
