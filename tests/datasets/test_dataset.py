import numpy as np
import pytest

from bochner.datasets.dataset import Dataset

N = 103
DATA = Dataset("numbers", np.arange(2.0 * N).reshape(N, 2), np.arange(N), ("a", "b"))


def test_blocks_are_stretches_that_together_hold_every_row_once():
    tests = [DATA.block(number)[3] for number in range(10)]
    np.testing.assert_array_equal(np.concatenate(tests), np.arange(N))
    assert {len(rows) for rows in tests} == {10, 11}


@pytest.mark.parametrize("parts", [DATA.block(3), DATA.split(3)])
def test_a_part_has_each_row_in_training_or_in_test(parts):
    X, y, X_test, y_test = parts
    assert sorted([*y, *y_test]) == list(range(N))
    np.testing.assert_array_equal(X[:, 0], 2.0 * y)
    np.testing.assert_array_equal(X_test[:, 0], 2.0 * y_test)


def test_a_block_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="10 blocks, from 0 on; got 10"):
        DATA.block(10)
