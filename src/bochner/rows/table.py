"""A table in memory, and the rows of each training step."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped


class Table(eqx.Module):
    """Inputs, targets and row weights on the device.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.table import Table
        >>> Table.of(np.zeros((5, 2)), np.zeros((5, 1))).n_rows
        5
    """

    X: Float[Array, "n d_in"]
    Y: Shaped[Array, "n targets"]
    weights: Float[Array, " n"]

    @classmethod
    def of(cls, X, Y, weights=None, dtype=jnp.float32) -> "Table":
        """Move arrays to the device; weights are ones by default."""
        Y = jnp.asarray(Y, jnp.int32 if np.issubdtype(np.asarray(Y).dtype, np.integer) else dtype)
        weights = np.ones(len(X)) if weights is None else weights
        return cls(jnp.asarray(X, dtype), Y, jnp.asarray(weights, dtype))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.X.shape[0]

    @property
    def total_weight(self) -> float:
        """The sum of the rows' weights."""
        return float(np.sum(np.asarray(self.weights), dtype=np.float64))

    def in_steps(self, batch_size: int, seed: tuple[int, ...]) -> "StepsInMemory":
        """Cut the rows into training steps."""
        return StepsInMemory(self, batch_size, seed)

    def rows(self, index: Int[Array, " batch"]) -> "Table":
        """Gather some rows."""
        return Table(self.X[index], self.Y[index], self.weights[index])


class Tables(Table):
    """Tables of equal size, of which each teaches models of its own: their arrays have the tables as first axis.

    A step takes the rows of the same numbers from all of them.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from bochner.rows.table import Table, Tables
        >>> tables = Tables.stack([Table.of(np.zeros((5, 2)), np.zeros((5, 1)))] * 3)
        >>> tables.n_rows, tables.rows(jnp.arange(2)).X.shape
        (5, (3, 2, 2))
    """

    X: Float[Array, "tables n d_in"]
    Y: Shaped[Array, "tables n targets"]
    weights: Float[Array, "tables n"]

    @classmethod
    def stack(cls, tables: Sequence[Table]) -> "Tables":
        """Put tables of equal size together."""
        columns = zip(*((table.X, table.Y, table.weights) for table in tables), strict=True)
        return cls(*(jnp.stack(column) for column in columns))

    @property
    def n_rows(self) -> int:
        """The number of rows of each table."""
        return self.X.shape[1]

    @property
    def total_weight(self) -> float:
        """The sum of the weights of the first table's rows."""
        return float(np.sum(np.asarray(self.weights[0]), dtype=np.float64))

    def rows(self, index: Int[Array, " batch"]) -> "Tables":
        """Gather some rows of each table."""
        return Tables(self.X[:, index], self.Y[:, index], self.weights[:, index])

    def of_members(self, n_members: int) -> "Tables":
        """Give each member its table, the members of a table after each other."""
        repeat = functools.partial(jnp.repeat, repeats=n_members // len(self.X), axis=0)
        return Tables(repeat(self.X), repeat(self.Y), repeat(self.weights))

    def one(self) -> Table:
        """Give the table of which these arrays are, where a map over tables has taken their axis away."""
        return Table(self.X, self.Y, self.weights)


class AbstractSteps(ABC):
    """The rows of each training step, as a function of the step alone.

    Attributes:
        batch_size: rows of a step, at most those there are.
        stride: how many tables on the next one is that will be asked for, so that it can be read ahead.
    """

    batch_size: int
    stride: int = 1

    @abstractmethod
    def take(
        self, start: int, n_steps: int, capacity: int
    ) -> tuple[Table, Int[np.ndarray, "capacity batch"] | None]:
        """Give a table and the rows in it of steps from `start` on, padded to `capacity` lines; None means all rows."""

    @abstractmethod
    def steps_of_table(self, start: int) -> int | None:
        """How many steps from `start` on take their rows from one table; None where all do."""


class TrainingData(Protocol):
    """What training can learn from: a `Table` in memory, or rows on disk that come a part at a time."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        ...

    @property
    def total_weight(self) -> float:
        """The sum of the rows' weights."""
        ...

    def in_steps(self, batch_size: int, seed: tuple[int, ...]) -> AbstractSteps:
        """Cut the rows into training steps."""
        ...


class StepsInMemory(AbstractSteps):
    """Steps on one table; a batch of all rows needs no order.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.table import StepsInMemory, Table
        >>> steps = StepsInMemory(Table.of(np.zeros((5, 2)), np.zeros((5, 1))), 2, seed=(0,))
        >>> steps.take(start=0, n_steps=2, capacity=3)[1].shape
        (3, 2)
    """

    def __init__(self, table: Table, batch_size: int, seed: tuple[int, ...]):
        self._table = table
        whole = batch_size >= table.n_rows
        self.batch_size = min(batch_size, table.n_rows)
        self._order = None if whole else RowOrder(table.n_rows, batch_size, seed)

    def take(self, start: int, n_steps: int, capacity: int):  # noqa: D102
        if self._order is None:
            return self._table, None
        return self._table, padded_lines(self._order.steps(start, n_steps), capacity)

    def steps_of_table(self, start: int) -> int | None:  # noqa: D102
        return None


def padded_lines(index: Int[np.ndarray, "n batch"], capacity: int) -> np.ndarray:
    """Add lines of zeros up to a number of lines, so that chunks of any length share their shape.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.table import padded_lines
        >>> padded_lines(np.ones((1, 2), np.int32), 2).tolist()
        [[1, 1], [0, 0]]
    """
    return np.pad(index, ((0, capacity - len(index)), (0, 0)))


class RowOrder:
    """Which rows each training step uses: random epochs, as a function of the seed and the step alone.

    Each epoch is a new permutation cut into whole batches; what is left over waits for another permutation. Nothing
    needs to be stored to go on from a given step.

    Example:
        >>> from bochner.rows.table import RowOrder
        >>> order = RowOrder(n_rows=10, batch_size=5, seed=(0,))
        >>> sorted(order.steps(0, 2).ravel().tolist())
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(self, n_rows: int, batch_size: int, seed: tuple[int, ...]):
        self.n_rows, self.batch_size, self.seed = n_rows, batch_size, seed
        self._epoch, self._batches = -1, np.empty((0, batch_size), np.int32)

    def steps(self, start: int, n_steps: int) -> np.ndarray:
        """The rows of `n_steps` steps from `start` on, one line a step."""
        return np.concatenate(list(self._pieces(start, n_steps)))

    def _pieces(self, start: int, n_steps: int) -> Iterator[np.ndarray]:
        per_epoch = self.n_rows // self.batch_size
        step, end = start, start + n_steps
        while step < end:
            epoch, first = divmod(step, per_epoch)
            piece = self._shuffled(epoch, per_epoch)[first : first + end - step]
            step += len(piece)
            yield piece

    def _shuffled(self, epoch: int, per_epoch: int) -> np.ndarray:
        if epoch != self._epoch:
            generator = np.random.default_rng((*self.seed, epoch))
            order = generator.permutation(self.n_rows)[: per_epoch * self.batch_size]
            self._epoch = epoch
            self._batches = order.reshape(per_epoch, self.batch_size).astype(np.int32)
        return self._batches
