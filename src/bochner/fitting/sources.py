"""Tables of named columns as training data: read by passes, encoded, and held in memory or streamed by size."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset

from bochner.tables.encoding import Encoder
from bochner.tables.sampling import Reservoir
from bochner.tables.source import TableError, TableSource, open_table
from bochner.tables.targets import find_task, target_values

_SAMPLE_ROWS = 100_000
_SAMPLE_SEED = 0
_NUMBERS_IN_MEMORY = 2**24
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def is_source(X: Any, *, encoded: bool = False) -> bool:
    """Whether X is a table of named columns to be read: a path or an Arrow table; a frame where columns are encoded.

    Example:
        >>> from bochner.fitting.sources import is_source
        >>> is_source("table.csv"), is_source([[1.0]])
        (True, False)
    """
    if isinstance(X, str | Path | TableSource | pa.Table | pyarrow.dataset.Dataset):
        return True
    return encoded and hasattr(X, "columns")


def task_of(source: TableSource, target: str) -> tuple[str, str]:
    """Tell the task that a target column poses, and why, in words; reads no further than it must."""
    input_names(source, target, ())
    if source.n_rows == 0:
        raise TableError(f"{source.name} has no rows. Check how it was written or filtered.")
    seen = pa.chunked_array([], type=source.schema.field(target).type)
    for batch in source.batches([target]):
        distinct = batch.column(0).drop_null().unique()
        seen = pa.chunked_array([*seen.chunks, distinct], type=seen.type).unique()
        seen = pa.chunked_array([seen])
        if len(seen) > 2:
            break
    return find_task(seen)


def _opened(source: Any, types: Mapping[str, pa.DataType] | None = None) -> TableSource:
    return source if isinstance(source, TableSource) else open_table(source, types=types)


@dataclasses.dataclass(frozen=True, eq=False)
class Reader:
    """How a table is read for a fitted model.

    Attributes:
        encoder: of its columns; None where the model was fitted to numbers.
        names: of the columns of numbers, where they have some.
        d_in: how many columns of numbers there are.
        classes: of the target; None for regression.
    """

    encoder: Encoder | None
    names: tuple[str, ...] | None
    d_in: int
    classes: np.ndarray | None

    @property
    def type_of_target(self) -> pa.DataType:
        """The type in which targets are read, so that a file cannot suggest another one."""
        if self.classes is None:
            return pa.float64()
        text = self.classes.dtype.kind in "OU"
        return pa.string() if text else pa.from_numpy_dtype(self.classes.dtype)


@dataclasses.dataclass(frozen=True)
class TrainingSource:
    """A table with a target column after the first pass over it.

    Attributes:
        table: the rows.
        target: name of the target's column.
        inputs: names of the other columns in use.
        sample: rows drawn uniformly, or all of them where they are few.
        n_rows: number of rows.
        classes: how many rows each value of the target has; empty for regression.
    """

    table: TableSource
    target: str
    inputs: tuple[str, ...]
    sample: pa.Table
    n_rows: int
    classes: dict[Any, int]

    @classmethod
    def open(
        cls, source: Any, target: str, ignore: Sequence[str], *, classification: bool
    ) -> "TrainingSource":
        """Read the table once: check the target, count rows and classes, draw the sample."""
        table = _opened(source)
        inputs = input_names(table, target, ignore)
        reservoir, n_rows, classes = Reservoir(_SAMPLE_ROWS, _SAMPLE_SEED), 0, Counter()
        for batch in table.batches([*inputs, target]):
            values = target_values(batch, target, classification=classification, row=n_rows)
            if classification:
                classes.update(values.tolist())
            n_rows += batch.num_rows
            reservoir.add(batch)
        if n_rows == 0:
            raise TableError(f"{table.name} has no rows. Check how it was written or filtered.")
        return cls(table, target, inputs, reservoir.sample(), n_rows, dict(classes))

    def sample_targets(self, *, classification: bool) -> np.ndarray:
        """The targets of the sample."""
        return target_values(self.sample, self.target, classification=classification)

    def fits_in_memory(self, encoder: Encoder) -> bool:
        """Whether the encoded rows are few enough to be held."""
        return self.n_rows * len(encoder.feature_names) <= _NUMBERS_IN_MEMORY

    def column(self, name: str) -> np.ndarray:
        """Read one column of all rows, missing values as one more value."""
        values = [batch.column(0).dictionary_encode() for batch in self.table.batches([name])]
        whole = pa.chunked_array(values).unify_dictionaries().combine_chunks()
        return np.asarray(whole.indices.fill_null(-1).to_numpy(zero_copy_only=False))

    def encoded_batches(
        self, encoder: Encoder, *, classification: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read the table again, as inputs and targets a batch at a time."""
        for batch in self.table.batches([*self.inputs, self.target]):
            yield (
                encoder(batch),
                target_values(batch, self.target, classification=classification),
            )


def input_names(table: TableSource, target: str, ignore: Sequence[str]) -> tuple[str, ...]:
    """Give the columns to learn from, after checking the names that a user wrote."""
    names = table.schema.names
    for name in (target, *ignore):
        if name not in names:
            raise TableError(
                f"{table.name} has no column {name!r}; its columns are {', '.join(map(repr, names))}."
            )
    unused = {target, *ignore}
    # Pandas writes the index of a frame as a column of such a name.
    inputs = tuple(n for n in names if n not in unused and not _PANDAS_INDEX.fullmatch(n))
    if not inputs:
        raise TableError(f"{table.name} has no column left to learn from beside {target!r}.")
    return inputs


def encoded_matrix(reader: Reader, source: Any) -> np.ndarray:
    """Read all rows of a table as the matrix of numbers that a fitted model takes."""
    matrices = [X for X, _ in encoded_batches(reader, source)]
    return np.concatenate(matrices) if matrices else np.empty((0, reader.d_in))


def encoded_batches(
    reader: Reader, source: Any, target: str | None = None
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Read a table for a fitted model, a batch of rows at a time, as numbers and as it is.

    A target's column has the type that it had at the fit.

    A model fitted on an array of numbers takes the columns with its feature names, or, where it knows none, all
    columns in their order.
    """
    if reader.encoder is not None:
        targets = {} if target is None else {target: reader.type_of_target}
        table = _opened(source, {**reader.encoder.types, **targets})
        for batch in table.batches():
            yield reader.encoder(batch), batch
        return
    table = _opened(source, None)
    names = table.schema.names if reader.names is None else list(reader.names)
    known = set(table.schema.names)  # made anew at each look
    missing = [name for name in names if name not in known]
    if missing:
        raise TableError(f"{table.name} lacks the columns {', '.join(map(repr, missing))}.")
    for batch in table.batches():
        columns = [target_values(batch, name, classification=False) for name in names]
        yield np.column_stack(columns), batch


def rows_with_targets(
    reader: Reader, source: Any, target: str, max_rows: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read the first rows of a table for a fitted model, as the matrix of numbers that it takes and their targets."""
    inputs, targets, n_rows = [], [], 0
    for X, batch in encoded_batches(reader, source, target):
        inputs.append(X)
        classification = reader.classes is not None
        targets.append(target_values(batch, target, classification=classification, row=n_rows))
        n_rows += len(X)
        if max_rows is not None and n_rows >= max_rows:
            break
    if n_rows == 0:
        raise TableError(f"{source} has no rows.")
    return np.concatenate(inputs)[:max_rows], np.concatenate(targets)[:max_rows]
