import numpy as np
import pytest

from bochner.rows.spool import Spool, StepsOnDisk

N = 1003


@pytest.fixture
def spool():
    with Spool(d_in=2, n_targets=1, classes=True) as spool:
        numbers = np.arange(N)
        X = np.column_stack([numbers, -numbers]).astype(float)
        for part in np.array_split(np.arange(N), 7):
            spool.append(X[part], numbers[part, None] % 5, 1.0 + numbers[part])
        yield spool


def used(steps, n_steps, start=0):
    rows = []
    for step in range(start, start + n_steps):
        table, index = steps.take(step, 1, 1)
        rows.append(np.asarray(table.X[index[0], 0], int))
    return np.stack(rows)


def test_rows_come_back_as_they_were_written(spool):
    assert spool.n_rows == N
    assert spool.total_weight == N + N * (N - 1) / 2
    table = spool.table(spool.read(500, 10))
    np.testing.assert_array_equal(table.X[:, 0], np.arange(500, 510))
    np.testing.assert_array_equal(table.Y[:, 0], np.arange(500, 510) % 5)
    np.testing.assert_array_equal(table.weights, np.arange(501, 511))
    assert table.Y.dtype == np.int32
    with pytest.raises(EOFError):
        spool.read(N - 1, 2)


def test_a_row_comes_at_most_once_an_epoch_and_all_rows_equally_often(spool):
    steps = StepsOnDisk(spool, 20, (3,), part_rows=200, block_rows=10)
    per_epoch = (N // 10 // 20) * 200 // 20
    counts = np.zeros(N, int)
    for epoch in range(40):
        rows = used(steps, per_epoch, epoch * per_epoch)
        assert len(np.unique(rows)) == rows.size
        counts[rows.ravel()] += 1
    # A binomial count of 40 epochs that each hold a row with probability 1000 / 1003.
    assert counts.min() >= 34
    assert counts.max() == 40


def test_a_part_is_from_everywhere_in_the_file(spool):
    # A file sorted by its target must train like a shuffled one: means of batches vary like those of random rows.
    steps = StepsOnDisk(spool, 50, (0,), part_rows=500, block_rows=5)
    means = used(steps, 40).mean(axis=1)
    deviation = N / np.sqrt(12) / np.sqrt(50)
    assert abs(means.mean() - N / 2) < 4 * deviation / np.sqrt(40)
    assert means.std() < 1.6 * deviation


def test_steps_depend_on_seed_and_step_alone(spool):
    def order(seed=(1,)):
        return StepsOnDisk(spool, 20, seed, part_rows=100, block_rows=10)

    whole = used(order(), 30)
    np.testing.assert_array_equal(used(order(), 10, start=20), whole[20:])
    assert not np.array_equal(used(order((2,)), 30), whole)
    assert not np.array_equal(np.sort(whole[:5].ravel()), np.sort(whole[5:10].ravel()))


def test_chunks_end_where_a_part_ends(spool):
    steps = StepsOnDisk(spool, 30, (0,), part_rows=100, block_rows=10)
    assert [steps.steps_of_table(start) for start in (0, 1, 2, 3, 5)] == [3, 2, 1, 3, 1]
    _, index = steps.take(0, 2, 8)
    assert index.shape == (8, 30)


def test_a_batch_larger_than_a_part_works(spool):
    for batch_size in (150, 155, N):
        steps = StepsOnDisk(spool, batch_size, (0,), part_rows=100, block_rows=10)
        table, index = steps.take(0, 1, 1)
        assert index.shape[1] == steps.batch_size <= table.n_rows
        assert steps.batch_size >= min(batch_size, 1000)


def test_few_rows_are_held_in_memory(spool):
    table, _ = spool.in_steps(20, (0,)).take(0, 1, 1)
    assert table.n_rows == N


def test_a_full_disk_is_told_in_words(spool, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    with pytest.raises(OSError, match=r"Make room there.*TMPDIR"):
        spool.append(np.ones((1, 2)), np.zeros((1, 1)), np.ones(1))
