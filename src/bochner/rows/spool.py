"""Rows on disk, ready to train on: a file of float32 numbers, read in random order a part at a time."""

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from bochner.rows.table import AbstractSteps, RowOrder, Table, padded_lines

BLOCK_ROWS = 512
"""Rows next to each other in the file that stay together in a part."""

PART_ROWS = 2**17
"""Rows that are in memory at once, and shuffled together."""


class Spool:
    """Scaled inputs, targets and weights of many rows in a temporary file, which is removed when the spool is closed.

    A file keeps memory free, and unlike CSV or Parquet gives a few rows from anywhere at the cost of reading them, so
    that data in any order, even sorted by the target, can be shuffled well.

    Args:
        d_in: inputs.
        n_targets: targets.
        classes: whether targets are numbers of classes.
        folder: where the file is made; the system's folder for temporary files by default.
        named: whether other processes can open the file, by what `shared` tells them.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.spool import Spool
        >>> with Spool(d_in=2, n_targets=1, classes=False) as spool:
        ...     spool.append(np.ones((5, 2)), np.zeros((5, 1)), np.ones(5))
        ...     spool.n_rows, spool.read(3, 2).shape
        (5, (2, 4))
    """

    def __init__(
        self,
        *,
        d_in: int,
        n_targets: int,
        classes: bool,
        folder: str | Path | None = None,
        named: bool = False,
    ):
        self.d_in, self.n_targets, self.classes = d_in, n_targets, classes
        self._n_columns = d_in + n_targets + 1
        if named:
            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115
                dir=folder, buffering=0, prefix="bochner-", suffix=".spool"
            )
        else:
            # Removed by the system with its last handle, so that even a killed process leaves nothing behind.
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        self.n_rows, self.total_weight = 0, 0.0

    def shared(self) -> dict[str, Any]:
        """Tell what another process needs to read the same rows, which are written out first."""
        os.fsync(self._file.fileno())  # other hosts see them only then
        return {
            "path": os.path.abspath(self._file.name),
            "d_in": self.d_in,
            "n_targets": self.n_targets,
            "classes": self.classes,
            "n_rows": self.n_rows,
            "total_weight": self.total_weight,
        }

    @classmethod
    def opened(
        cls,
        *,
        path: str,
        d_in: int,
        n_targets: int,
        classes: bool,
        n_rows: int,
        total_weight: float,
    ) -> "Spool":
        """Open the rows of another process's spool, to read them."""
        spool = cls.__new__(cls)
        spool.d_in, spool.n_targets, spool.classes = d_in, n_targets, classes
        spool._n_columns = d_in + n_targets + 1
        spool.n_rows, spool.total_weight = n_rows, total_weight
        try:
            spool._file = open(path, "rb", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise OSError(
                error.errno,
                f"a worker cannot read the rows in {path} ({error.strerror}): name a folder that all hosts share",
            ) from error
        return spool

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    def append(
        self,
        X: Float[np.ndarray, "n d_in"],
        Y: Shaped[np.ndarray, "n targets"],
        weights: Float[np.ndarray, " n"],
    ) -> None:
        """Add rows at the end."""
        rows = np.empty((len(X), self._n_columns), np.float32)
        rows[:, : self.d_in] = X
        rows[:, self.d_in : -1] = Y
        rows[:, -1] = weights
        try:
            _write_all(self._file.fileno(), _bytes(rows))
        except OSError as error:
            raise OSError(
                error.errno,
                f"the rows could not be written to the folder for temporary files ({os.strerror(error.errno or 0)}). "
                "Make room there, or name another folder in the environment variable TMPDIR",
            ) from error
        self.n_rows += len(rows)
        self.total_weight += float(np.sum(weights))

    def read(self, start: int, n_rows: int) -> Float[np.ndarray, "n columns"]:
        """Read rows as they were appended: inputs, targets and weight side by side."""
        rows = np.empty((n_rows, self._n_columns), np.float32)
        view, offset = _bytes(rows), start * self._n_columns * 4
        while view:
            n_bytes = os.preadv(self._file.fileno(), [view], offset)
            if n_bytes == 0:
                raise EOFError("the spool holds fewer rows than asked for.")
            view, offset = view[n_bytes:], offset + n_bytes
        return rows

    def table(self, rows: Float[np.ndarray, "n columns"]) -> Table:
        """Move rows to the device."""
        X, Y, weights = np.split(rows, [self.d_in, self.d_in + self.n_targets], axis=1)
        return Table.of(X, Y.astype(np.int32) if self.classes else Y, weights[:, 0])

    def in_steps(self, batch_size: int, seed: tuple[int, ...]) -> AbstractSteps:
        """Cut the rows into training steps."""
        if self.n_rows <= PART_ROWS:
            return self.table(self.read(0, self.n_rows)).in_steps(batch_size, seed)
        return StepsOnDisk(self, batch_size, seed)


class StepsOnDisk(AbstractSteps):
    """Steps whose rows come from a spool in parts: many blocks from everywhere in the file, shuffled together.

    In each epoch blocks are cut from another start on (around the end, so that all rows are alike) and put in another
    order; what does not fill the last part waits for another epoch. The next part is read while this one is used.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.spool import Spool, StepsOnDisk
        >>> with Spool(d_in=1, n_targets=1, classes=False) as spool:
        ...     spool.append(np.arange(100.0)[:, None], np.zeros((100, 1)), np.ones(100))
        ...     steps = StepsOnDisk(spool, 10, seed=(0,), part_rows=50, block_rows=5)
        ...     table, index = steps.take(start=0, n_steps=5, capacity=5)
        ...     table.n_rows, len(np.unique(table.X[index.ravel()]))
        (50, 50)
    """

    def __init__(
        self,
        spool: Spool,
        batch_size: int,
        seed: tuple[int, ...],
        *,
        part_rows: int | None = None,
        block_rows: int | None = None,
    ):
        part_rows = max(part_rows or PART_ROWS, batch_size)
        self._spool, self._seed = spool, seed
        self._block_rows = min(block_rows or BLOCK_ROWS, spool.n_rows)
        n_blocks = spool.n_rows // self._block_rows
        self._blocks_a_part = min(-(-part_rows // self._block_rows), n_blocks)
        self._part_rows = self._blocks_a_part * self._block_rows
        self.batch_size = min(batch_size, self._part_rows)
        self._steps_a_part = self._part_rows // self.batch_size
        self._parts_an_epoch = n_blocks // self._blocks_a_part
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="bochner-reader")
        self._coming: dict[int, Future[np.ndarray]] = {}
        self._number, self._table = -1, None
        self._order: RowOrder | None = None

    def steps_of_table(self, start: int) -> int:  # noqa: D102
        return self._steps_a_part - start % self._steps_a_part

    def take(self, start: int, n_steps: int, capacity: int):  # noqa: D102
        number, first = divmod(start, self._steps_a_part)
        table = self._part(number)
        assert self._order is not None
        return table, padded_lines(self._order.steps(first, n_steps), capacity)

    def _part(self, number: int) -> Table:
        if number != self._number or self._table is None:
            self._table = None  # frees the memory before the next one is made
            part = self._coming.pop(number, None) or self._reader.submit(self._read, number)
            self._table, self._number = self._spool.table(part.result()), number
            self._order = RowOrder(self._part_rows, self.batch_size, (*self._seed, 1, number))
            coming = number + self.stride
            self._coming = {coming: self._reader.submit(self._read, coming)}
        return self._table

    def _read(self, number: int) -> np.ndarray:
        return np.concatenate(list(self._blocks(number)))

    def _blocks(self, number: int) -> Iterator[np.ndarray]:
        epoch, part = divmod(number, self._parts_an_epoch)
        generator = np.random.default_rng((*self._seed, 0, epoch))
        n_rows = self._spool.n_rows
        offset = generator.integers(n_rows)
        order = generator.permutation(n_rows // self._block_rows)
        for block in order[part * self._blocks_a_part : (part + 1) * self._blocks_a_part]:
            start = int(offset + block * self._block_rows) % n_rows
            before_end = min(self._block_rows, n_rows - start)
            yield self._spool.read(start, before_end)
            if before_end < self._block_rows:
                yield self._spool.read(0, self._block_rows - before_end)


def _bytes(rows: np.ndarray) -> memoryview:
    return rows.reshape(-1).view(np.uint8).data


def _write_all(handle: int, view: memoryview) -> None:
    while view:
        view = view[os.write(handle, view) :]
