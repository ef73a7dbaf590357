"""Tables of named columns as training data: read by passes, encoded, and held in memory or streamed by size."""

import dataclasses
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset

from bochner.fitting.inputs import check_number_of_classes
from bochner.fitting.known_targets import KnownTargets
from bochner.fitting.splits import AbstractSplit, split_of
from bochner.tables.casting import Kind, convert, find_kind
from bochner.tables.encoding import Encoder
from bochner.tables.reading import Reading
from bochner.tables.sampling import Reservoir
from bochner.tables.source import TableError, TableSource, open_table_as
from bochner.tables.targets import are_whole, find_task, number_column, target_values

_SAMPLE_ROWS = 100_000
_SAMPLE_SEED = 0
NUMBERS_IN_MEMORY = 2**24
"""Numbers of an encoded table that is held in memory, at most."""
_MOST_DOUBTED = 5
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
        if len(seen) > _MOST_DOUBTED:
            break
    found = find_task(seen)
    if found[0] == "regression" and len(seen) <= _MOST_DOUBTED and are_whole(seen):
        warnings.warn(
            f"target {target!r} holds only {len(seen)} different numbers, all whole. If they name classes, say so: "
            "`--task classification`, in Python `DeepGPClassifier`.",
            UserWarning,
            stacklevel=2,
        )
    return found


def _opened(
    source: Any,
    types: Mapping[str, pa.DataType] | None = None,
    reading: Reading = Reading(),  # noqa: B008
) -> TableSource:
    return source if isinstance(source, TableSource) else open_table_as(source, types, reading)


@dataclasses.dataclass(frozen=True, eq=False)
class Reader:
    """How a table is read for a fitted model.

    Attributes:
        encoder: of its columns; None where the model was fitted to numbers.
        names: of the columns of a user's rows, where they have some.
        d_in: how many columns of numbers come of them.
        classes: of the target; None for regression.
    """

    encoder: Encoder | None
    names: tuple[str, ...] | None
    d_in: int
    classes: np.ndarray | None

    @property
    def column_names(self) -> list[str]:
        """The names of the columns in a user's order, for rows without names."""
        if self.names is not None:
            return list(self.names)
        assert self.encoder is not None
        n_columns = len(self.encoder.columns) + len(self.encoder.dropped)
        return [f"x{place}" for place in range(n_columns)]

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
        places: where these stand among the rows with a target.
        n_rows: number of rows.
        classes: how many rows each value of the target has; empty for regression.
    """

    table: TableSource
    target: str
    inputs: tuple[str, ...]
    sample: pa.Table
    places: np.ndarray
    n_rows: int
    classes: dict[Any, int]

    @classmethod
    def open(
        cls, source: Any, target: str, ignore: Sequence[str], *, classification: bool
    ) -> "TrainingSource":
        """Read the table once: check the target, count rows and classes, draw the sample."""
        table = _opened(source)
        inputs = input_names(table, target, ignore)
        known = KnownTargets(target, classification)
        reservoir, n_rows, classes = Reservoir(_SAMPLE_ROWS, _SAMPLE_SEED), 0, Counter()
        for batch in table.batches([*inputs, target]):
            batch = batch.filter(pa.array(known.rows(batch)))
            values = target_values(batch, target, classification=classification)
            if classification:
                classes.update(values.tolist())
            n_rows += batch.num_rows
            reservoir.add(batch)
        known.warn()
        if n_rows == 0:
            raise TableError(
                f"{table.name} has no rows with a target. Check how it was written or filtered."
                if known.n_rows
                else f"{table.name} has no rows. Check how it was written or filtered."
            )
        if classification:
            check_number_of_classes(classes, n_rows, f"target {target!r}")
        sample, places = reservoir.sample(), reservoir.places
        return cls(table, target, inputs, sample, places, n_rows, dict(classes))

    @property
    def reading(self) -> Reading:
        """How the columns in use are written."""
        return self.table.reading.for_columns([*self.inputs, self.target])

    def sample_targets(self, *, classification: bool) -> np.ndarray:
        """The targets of the sample."""
        return target_values(self.sample, self.target, classification=classification)

    def fits_in_memory(self, encoder: Encoder) -> bool:
        """Whether the encoded rows are few enough to be held."""
        return self.n_rows * len(encoder.feature_names) <= NUMBERS_IN_MEMORY

    def split(
        self, groups: str | None, time: str | None, *, classification: bool
    ) -> AbstractSplit | None:
        """Read which of the rows in use leave together, by one of two columns."""
        found = split_of_table(self.table, groups, time)
        if found is None:
            return None
        known = KnownTargets(self.target, classification)
        used = [known.rows(batch) for batch in self.table.batches([self.target])]
        return found[np.concatenate(used)]

    def encoded_batches(
        self, encoder: Encoder, *, classification: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read the table again, as inputs and targets a batch at a time."""
        known = KnownTargets(self.target, classification)
        for batch in self.table.batches([*self.inputs, self.target]):
            X, rows = encoder(batch, known.n_rows), known.rows(batch)
            batch = batch.filter(pa.array(rows))
            yield X[rows], target_values(batch, self.target, classification=classification)


def split_of_table(
    table: TableSource, groups: str | None, time: str | None
) -> AbstractSplit | None:
    """Read which rows of a table leave together, by one of two columns."""
    numbers = None if groups is None else column_of_values(table, groups)
    moments = None if time is None else column_of_moments(table, time)
    n_rows = max((len(one) for one in (numbers, moments) if one is not None), default=0)
    found = split_of(numbers, moments, n_rows)
    return None if found is None else dataclasses.replace(found, name=groups or time)


def column_of_values(table: TableSource, name: str) -> np.ndarray:
    """Number the different values of a column, missing ones as one more value."""
    values = [batch.column(0).dictionary_encode() for batch in table.batches([name])]
    whole = pa.chunked_array(values).unify_dictionaries().combine_chunks()
    return np.asarray(whole.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def column_of_moments(table: TableSource, name: str) -> np.ndarray:
    """Read a column of numbers, dates or times of all rows."""
    parts = [np.zeros(0)]
    for batch in table.batches([name]):
        column = batch.column(0)
        kind = pa.float64() if find_kind(column.type) is Kind.NUMBER else pa.timestamp("us")
        n_rows = sum(map(len, parts))
        try:
            found = convert(column, kind, place=f"column {name!r}", first_row=n_rows)
        except TableError as error:
            raise TableError(
                f"{table.name}: the times in {name!r} must be numbers or dates ({error})"
            ) from error
        parts.append(found.to_numpy(zero_copy_only=False))
    return np.concatenate(parts[1:] or parts)


def input_names(table: TableSource, target: str, ignore: Sequence[str]) -> tuple[str, ...]:
    """Give the columns to learn from, after checking the names that a user wrote."""
    names = table.schema.names
    for name in (target, *ignore):
        if name not in names:
            raise TableError(
                f"{table.name} has no column {name!r}; its columns are {', '.join(map(repr, names))}."
            )
    if target in ignore:
        raise TableError(
            f"{target!r} is the target, which cannot be ignored or say which rows form a group. Name another column."
        )
    unused = {target, *ignore}
    # Pandas writes the index of a frame as a column of such a name.
    inputs = tuple(n for n in names if n not in unused and not _PANDAS_INDEX.fullmatch(n))
    if not inputs:
        raise TableError(f"{table.name} has no column left to learn from beside {target!r}.")
    return inputs


class Encoded(np.ndarray):
    """A matrix that an encoder has made, which no method encodes once more."""

    # So that what is put together of such matrices is one.
    __array_priority__ = 1.0  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]


def encoded_matrix(reader: Reader, source: Any, *, gaps: bool = False) -> np.ndarray:
    """Read all rows of a table as the matrix of numbers that a fitted model takes.

    With `gaps`, values missing in columns where the fit saw none are NaN.
    """
    matrices = [X for X, _ in encoded_batches(reader, source, gaps=gaps)]
    found = np.concatenate(matrices) if matrices else np.empty((0, reader.d_in))
    return found.view(Encoded)


def encoded_batches(
    reader: Reader, source: Any, target: str | None = None, *, gaps: bool = False
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Read a table for a fitted model, a batch of rows at a time, as numbers and as it is.

    A target's column has the type that it had at the fit; rows without target are left out. With `gaps`, values missing
    in columns where the fit saw none are NaN.

    A model fitted on an array of numbers takes the columns with its feature names, or, where it knows none, all
    columns in their order.
    """
    known = None if target is None else KnownTargets(target, reader.classes is not None)
    for X, batch in _encoded(reader, source, target, gaps):
        X = X.view(Encoded)
        if known is None:
            yield X, batch
            continue
        if target not in batch.schema.names:
            raise TableError(
                f"there is no target column {target!r}. The columns are {', '.join(map(repr, batch.schema.names))}."
            )
        rows = known.rows(batch)
        if rows.any():
            yield X[rows], batch.filter(pa.array(rows))
    if known is not None:
        known.warn()
        known.check()


def _encoded(
    reader: Reader, source: Any, target: str | None, gaps: bool
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    if reader.encoder is None:
        yield from _numbers(reader, source)
        return
    targets = {} if target is None else {target: reader.type_of_target}
    table = _opened(source, {**reader.encoder.types, **targets}, reader.encoder.reading)
    n_rows, empty = 0, list[int]()
    for batch in table.batches():
        X = reader.encoder(batch, n_rows)
        missing, is_empty = reader.encoder.gaps(batch)
        yield (np.where(missing, np.nan, X) if gaps else X), batch
        empty += (np.flatnonzero(is_empty) + n_rows + 1).tolist()
        n_rows += batch.num_rows
    if empty:
        warnings.warn(
            f"{len(empty)} of {n_rows} rows hold no value in any column that the model knows, the first being row "
            f"{empty[0]}: they are predicted as any row.",
            UserWarning,
            stacklevel=2,
        )


def _numbers(reader: Reader, source: Any) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Read columns of numbers, NaN where they are missing."""
    table = _opened(source)
    names = table.schema.names if reader.names is None else list(reader.names)
    known = set(table.schema.names)  # made anew at each look
    missing = [name for name in names if name not in known]
    if missing:
        raise TableError(f"{table.name} lacks the columns {', '.join(map(repr, missing))}.")
    n_rows = 0
    for batch in table.batches():
        columns = [number_column(batch.column(name), name, n_rows) for name in names]
        n_rows += batch.num_rows
        yield np.column_stack(columns), batch


def rows_with_targets(
    reader: Reader,
    source: Any,
    target: str,
    max_rows: int | None = None,
    *,
    gaps: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Read the first rows of a table for a fitted model, as the matrix of numbers that it takes and their targets."""
    inputs, targets, n_rows = [], [], 0
    for X, batch in encoded_batches(reader, source, target, gaps=gaps):
        inputs.append(X)
        classification = reader.classes is not None
        targets.append(target_values(batch, target, classification=classification, row=n_rows))
        n_rows += len(X)
        if max_rows is not None and n_rows >= max_rows:
            break
    if n_rows == 0:
        raise TableError(f"{source} has no rows.")
    X = np.concatenate(inputs).view(Encoded)
    return X[:max_rows], np.concatenate(targets)[:max_rows]
