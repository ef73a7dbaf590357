import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bochner.tables.sampling import Reservoir


def stream(n, cuts):
    """The numbers below n, cut into batches at the given places."""
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    for first, last in itertools.pairwise(edges):
        values = np.arange(first, last)
        texts = pa.array([str(value % 3) for value in values], pa.string()).dictionary_encode()
        yield pa.record_batch({"a": pa.array(values, pa.int64()), "b": texts})


def sampled(n_rows, seed, batches):
    reservoir = Reservoir(n_rows, seed)
    for batch in batches:
        reservoir.add(batch)
    return reservoir.sample()


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 300),
    n_rows=st.sampled_from([1, 5, 40, 299]),
    cuts=st.lists(st.integers(0, 300), max_size=8),
    seed=st.integers(0, 5),
)
def test_the_sample_does_not_depend_on_the_batches(n, n_rows, cuts, seed):
    sample = sampled(n_rows, seed, stream(n, cuts))
    values = sample["a"].to_pylist()
    assert values == sampled(n_rows, seed, stream(n, []))["a"].to_pylist()
    assert values == sorted(set(values))
    assert len(values) == min(n, n_rows)
    reservoir = Reservoir(n_rows, seed)
    for batch in stream(n, cuts):
        reservoir.add(batch)
    assert reservoir.places.tolist() == values
    assert sample["b"].to_pylist() == [str(value % 3) for value in values]


def test_many_small_batches_give_the_same_sample():
    whole, small = stream(2000, []), stream(2000, range(0, 2000, 2))
    assert sampled(50, 1, whole)["a"].equals(sampled(50, 1, small)["a"])


def test_every_row_is_as_likely():
    counts = np.zeros(60)
    n_draws = 1000
    for seed in range(n_draws):
        counts[sampled(12, seed, stream(60, [13, 40]))["a"].to_numpy()] += 1
    expected = n_draws * 12 / 60
    # Rows exclude each other, which makes the counts a little less variable than Poisson's.
    statistic = ((counts - expected) ** 2 / (expected * (1 - 12 / 60))).sum() * 59 / 60
    assert 0.001 < stats.chi2(59).sf(statistic) < 0.999


def test_memory_stays_in_proportion_to_the_sample():
    reservoir = Reservoir(100, seed=0)
    values = pa.record_batch({"a": np.arange(10_000.0)})
    for _ in range(500):
        reservoir.add(values)
        assert sum(piece.num_rows for piece in reservoir._pieces) <= 10_000
    assert sum(piece.get_total_buffer_size() for piece in reservoir._pieces) < 100_000
    assert reservoir.n_seen == 5_000_000


def test_sizes_and_empty_streams_are_checked():
    with pytest.raises(ValueError, match="`n_rows` must be at least 1; got 0"):
        Reservoir(0, seed=0)
    with pytest.raises(ValueError, match="No rows were added"):
        Reservoir(1, seed=0).sample()
    empty = Reservoir(1, seed=0)
    empty.add(pa.record_batch({"a": pa.array([], pa.int8())}))
    assert empty.sample().schema.names == ["a"]
