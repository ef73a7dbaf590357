"""A uniform sample of the rows of a stream."""

import numpy as np
import pyarrow as pa


class Reservoir:
    """Keeps a uniform sample of all rows added, without replacement, in the order they came.

    Each row draws a random number, and the rows with the smallest ones stay. So the sample depends on the seed and the
    rows alone, not on how they are cut into batches.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.sampling import Reservoir
        >>> reservoir = Reservoir(n_rows=3, seed=0)
        >>> for start in range(0, 100, 10):
        ...     reservoir.add(pa.record_batch({"a": range(start, start + 10)}))
        >>> reservoir.sample().num_rows, reservoir.n_seen
        (3, 100)
        >>> bool((reservoir.places == reservoir.sample()["a"].to_numpy()).all())
        True
    """

    _MOST_PIECES = 256

    def __init__(self, n_rows: int, seed: int):
        if n_rows < 1:
            raise ValueError(f"`n_rows` must be at least 1; got {n_rows}.")
        self.n_rows, self.n_seen = n_rows, 0
        self._generator = np.random.default_rng(seed)
        self._below = np.inf
        self._pieces: list[pa.RecordBatch] = []
        self._draws: list[np.ndarray] = []
        self._places: list[np.ndarray] = []
        self._n_held = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Offer the rows of a batch."""
        draws = self._generator.random(batch.num_rows)
        before = self.n_seen
        self.n_seen += batch.num_rows
        (chosen,) = np.nonzero(draws < self._below)
        if len(chosen) == 0 and self._pieces:
            return
        # Taken, not sliced: a slice would keep the whole batch in memory.
        self._pieces.append(batch.take(pa.array(chosen)))
        self._draws.append(draws[chosen])
        self._places.append(before + chosen)
        self._n_held += len(chosen)
        if self._n_held > 2 * self.n_rows or len(self._pieces) > self._MOST_PIECES:
            self._compact()

    def sample(self) -> pa.Table:
        """The sample so far: all rows while there are no more than `n_rows`."""
        if not self._pieces:
            raise ValueError("No rows were added to the reservoir. Add at least one batch.")
        self._compact()
        return pa.Table.from_batches(self._pieces)

    @property
    def places(self) -> np.ndarray:
        """Where the rows of the sample stand among all."""
        self._compact()
        return self._places[0]

    def _compact(self) -> None:
        table = pa.Table.from_batches(self._pieces).unify_dictionaries()
        draws, places = np.concatenate(self._draws), np.concatenate(self._places)
        if len(draws) > self.n_rows:
            kept = np.sort(np.argsort(draws, kind="stable")[: self.n_rows])
            table, draws, places = table.take(pa.array(kept)), draws[kept], places[kept]
        if len(draws) == self.n_rows:
            self._below = float(draws.max())
        self._pieces = table.combine_chunks().to_batches() or self._pieces[:1]
        self._draws, self._places, self._n_held = [draws], [places], len(draws)
