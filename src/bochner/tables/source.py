"""Tables from files, standard input and memory, read in batches of rows."""

import dataclasses
import os
import shutil
import stat
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from bochner.tables.array_reader import ArrayReader
from bochner.tables.casting import Kind, TableError, compute, convert, find_kind
from bochner.tables.csv_reader import CsvReader
from bochner.tables.json_reader import is_json, json_reader
from bochner.tables.memory_reader import DatasetReader, MemoryReader, frame_to_arrow
from bochner.tables.parquet_reader import ParquetFolder, ParquetReader
from bochner.tables.readers import (
    BYTES_OF_A_BATCH,
    ROWS_OF_A_BATCH,
    AbstractReader,
    check_width,
    errors_in_words,
)
from bochner.tables.reading import Reading
from bochner.tables.recognition import groups_alone, recognized
from bochner.tables.unread import Unread

__all__ = ["TableError", "TableSource", "open_table"]

_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_EXPECTED_STARTS = {".parquet": b"PAR1", ".npz": b"PK", ".npy": b"\x93NUMPY"}


class TableSource:
    """A table that can be read from its start any number of times, in bounded memory.

    Attributes:
        name: what messages call it.
        schema: the columns and their Arrow types.
        n_rows: the number of rows, None where only a pass over the table would tell.

    Example:
        >>> import pyarrow as pa
        >>> from bochner import open_table
        >>> table = open_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", None]}))
        >>> [batch.num_rows for batch in table.batches(["b"], n_rows=2)]
        [2, 1]
    """

    def __init__(
        self,
        name: str,
        reader: AbstractReader,
        types: Mapping[str, pa.DataType] | None,
        reading: Reading,
    ):
        self.name = name
        self._reader = reader
        names = reader.schema.names
        check_width(len(names))
        repeated = sorted(name for name, n in Counter(names).items() if n > 1)
        if repeated:
            raise TableError(
                f"several columns are named {', '.join(map(repr, repeated))}. Give each its own name."
            )
        # What was recognized before is told of anew; what is recognized now has been told.
        self._warns = types is not None
        self.reading = reading if types is not None else self._recognized(reading)
        self.schema = pa.schema([self._field(field, types or {}) for field in reader.schema])

    def _field(self, field: pa.Field, types: Mapping[str, pa.DataType]) -> pa.Field:
        notation = self.reading.columns.get(field.name)
        found = field.type if notation is None else notation.type
        return pa.field(field.name, types.get(field.name, found))

    def _recognized(self, reading: Reading) -> Reading:
        """Find the columns of text that hold numbers or dates."""
        reader = self._reader

        def texts(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
            for batch in _validated(reader.texts(names)):
                columns = {name: batch.column(name).cast(pa.string()) for name in names}
                yield _without_words(pa.RecordBatch.from_pydict(columns), reading.na)

        names = [one.name for one in reader.schema if one.type in _TEXTS]
        numbers = reader.read_as_numbers
        european = reader.separator == ";" and not numbers
        columns = recognized(texts, names, reading, european=european)
        if "," in (reading.decimal, *(getattr(one, "decimal", "") for one in columns.values())):
            columns |= groups_alone(texts, numbers)
        reader.take_as_text(list(columns))
        return dataclasses.replace(reading, columns={**reading.columns, **columns})

    @property
    def n_rows(self) -> int | None:
        """The number of rows, None where only a pass over the table would tell."""
        return self._reader.n_rows

    def batches(
        self, columns: Sequence[str] | None = None, n_rows: int = ROWS_OF_A_BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Read the table from its start, `n_rows` rows at a time; fewer where rows are very long.

        The columns come in the order asked for, or all in the order of the table.
        """
        names = self.schema.names if columns is None else list(columns)
        known = set(self.schema.names)  # made anew at each look
        missing = [name for name in names if name not in known]
        if missing:
            raise TableError(
                f"{self.name}: there is no column {', '.join(map(repr, missing))}. The columns are "
                f"{_listed(self.schema.names)}."
            )
        if n_rows < 1:
            raise ValueError(f"`n_rows` must be at least 1; got {n_rows}.")
        return self._converted(names, n_rows) if names else iter(())

    def _converted(self, names: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([self.schema.field(name) for name in names])
        notations = {name: self.reading.columns[name] for name in names if self._is_noted(name)}
        cells = {name: Unread(name, notation) for name, notation in notations.items()}
        first_row = 0
        with errors_in_words(self.name):
            for batch in _regrouped(_validated(self._reader.read(names, n_rows)), n_rows):
                batch = _without_words(batch, self.reading.na)
                arrays = []
                for field in schema:
                    column = batch.column(field.name)
                    if field.name in cells and find_kind(column.type) is Kind.TEXT:
                        column = cells[field.name].read(column.cast(pa.string()), first_row)
                    place = f"column {field.name!r}"
                    arrays.append(convert(column, field.type, place=place, first_row=first_row))
                first_row += batch.num_rows
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if self._warns:
            for one in cells.values():
                one.warn()

    def _is_noted(self, name: str) -> bool:
        notation = self.reading.columns.get(name)
        return notation is not None and self.schema.field(name).type == notation.type


def open_table(
    source: Any,
    *,
    sep: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    date_format: str | None = None,
    na: Sequence[str] = (),
) -> TableSource:
    r"""Open a table for `fit` and the like, and say how it is written where that is not found rightly.

    Numbers and dates that people write, such as `1.234,56`, `$5` or `31.12.2023`, are recognized where a whole column
    agrees. A fitted model reads further tables in the same way.

    Args:
        source: the path of a CSV file (plain or gzip), a Parquet file, a folder of Parquet files, a Feather, JSON,
            `.npz` or `.npy` file, or of a pipe that gives one; "-" for CSV (or one of the other files) from standard
            input; a pandas, Polars or Arrow table; or an Arrow dataset. The content decides what a file is, whatever
            its name. A CSV file is read once in full here, to settle its types and count its rows.
        sep: what stands between the fields of a CSV file.
        encoding: of its text, such as `"latin-1"`.
        decimal: mark before decimals, "." or ",".
        thousands: mark between groups of digits: ",", ".", " " or "'".
        date_format: pattern of dates, such as `"%d.%m.%Y"`.
        na: texts that mean that nothing is known, beside empty cells, `NA`, `?` and the like.

    Returns:
        A source that `fit` takes in the place of a path; its `batches()` are read anew each time.

    Example:
        >>> import tempfile, pathlib
        >>> from bochner import open_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "a.csv")
        ...     _ = path.write_text("size,color\n1,red\n2.5,\n")
        ...     table = open_table(path)
        ...     rows = [row for batch in table.batches() for row in batch.to_pylist()]
        >>> rows
        [{'size': 1.0, 'color': 'red'}, {'size': 2.5, 'color': None}]
    """
    if isinstance(na, str):
        raise ValueError(f"`na` must be a list of texts that mean missing; got {na!r}.")
    return open_table_as(
        source, None, Reading(sep, encoding, decimal, thousands, date_format, tuple(na))
    )


def open_table_as(
    source: Any, types: Mapping[str, pa.DataType] | None, reading: Reading
) -> TableSource:
    """Open a table in the way of an earlier one.

    Args:
        source: as for `open_table`.
        types: Arrow types of columns by name; other columns of a CSV file are text. Without them a CSV file is read
            once in full, and notations are found.
        reading: how text is written.
    """
    name = str(source) if isinstance(source, str | os.PathLike) else "the table"
    if not name:
        raise TableError("the name of the table is empty; give the path of a file or folder.")
    if name == "-":
        if sys.stdin is None:
            raise TableError("standard input is closed; give the path of a table.")
        return _open_copy("standard input", sys.stdin.buffer, types, reading)
    if isinstance(source, str | os.PathLike) and _can_be_read_once(source):
        with errors_in_words(name), open(source, "rb") as stream:
            return _open_copy(name, stream, types, reading)
    with errors_in_words(name):
        if isinstance(source, str | os.PathLike):
            return TableSource(name, _file_reader(Path(source), types, reading), types, reading)
        return TableSource(name, _memory_reader(source), types, reading)


def _can_be_read_once(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pipe, such as a shell makes of `<(zcat table.csv.gz)`, or another stream."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _open_copy(
    name: str, stream: Any, types: Mapping[str, pa.DataType] | None, reading: Reading
) -> TableSource:
    """Open what can be read but once, by a copy of it in the temporary folder."""
    handle, path = tempfile.mkstemp(prefix="bochner-", suffix=".csv")
    try:
        with errors_in_words(name):
            _copy(stream, handle, name)
            table = TableSource(name, _file_reader(Path(path), types, reading), types, reading)
    except BaseException:
        os.unlink(path)
        raise
    weakref.finalize(table, os.unlink, path)
    return table


def _copy(stream: Any, handle: int, name: str) -> None:
    try:
        with os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)
    except OSError as error:
        raise TableError(
            f"{name} cannot be copied to {tempfile.gettempdir()} ({error.strerror or error}). Make room there, or name "
            "another folder in the environment variable TMPDIR."
        ) from error


def _file_reader(
    path: Path, types: Mapping[str, pa.DataType] | None, reading: Reading
) -> AbstractReader:
    if path.is_dir():
        return ParquetFolder(path)
    with path.open("rb") as file:
        start = file.read(64)
        file.seek(0)
        holds_objects = is_json(file)
    if start.startswith(b"PAR1"):
        return ParquetReader(path)
    if start.startswith(b"ARROW1"):
        return DatasetReader(pyarrow.dataset.dataset(path, format="ipc"))
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY")):
        return ArrayReader(path)
    if holds_objects:
        return json_reader(path)
    expected = _EXPECTED_STARTS.get(path.suffix.lower())
    if expected is not None:
        raise TableError(
            f"this is no {path.suffix.lower()} file: it starts with {start[:6]!r}, not {expected!r}. Write it again, "
            "or give it the ending of what it is."
        )
    if types is not None:
        noted = {name: one.type for name, one in reading.columns.items()}
        types = {n: pa.string() if noted.get(n) == own else own for n, own in types.items()}
    return CsvReader(path, types, reading)


def _memory_reader(source: Any) -> AbstractReader:
    if isinstance(source, pyarrow.dataset.Dataset):
        return DatasetReader(source)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not isinstance(source, pa.Table):
        if not hasattr(source, "columns"):
            raise TableError(
                f"expected a path or a table of pandas, Polars or Arrow; got {type(source).__name__}."
            )
        source = frame_to_arrow(source)
    return MemoryReader(source)


def _without_words(batch: pa.RecordBatch, words: Sequence[str]) -> pa.RecordBatch:
    """Take some texts as missing."""
    if not words:
        return batch
    arrays = []
    for column in batch.columns:
        if column.type in _TEXTS:
            found = compute.is_in(
                compute.utf8_trim_whitespace(column), value_set=pa.array(words, column.type)
            )
            column = compute.if_else(found, pa.scalar(None, column.type), column)
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _validated(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Check what readers take on trust: texts that are not UTF-8, places outside dictionaries."""
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=True)
            except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
                raise TableError(
                    f"column {name!r} is damaged ({error}). Write the table again, with text in UTF-8."
                ) from error
        yield batch


def _regrouped(batches: Iterator[pa.RecordBatch], n_rows: int) -> Iterator[pa.RecordBatch]:
    """Cut and join batches to `n_rows` rows; what waits stays below a limit of bytes."""
    waiting: list[pa.RecordBatch] = []
    n_waiting = n_bytes = 0
    for batch in batches:
        while batch.num_rows:
            piece = batch.slice(0, n_rows - n_waiting)
            batch = batch.slice(piece.num_rows)
            waiting.append(piece)
            n_waiting += piece.num_rows
            n_bytes += piece.nbytes
            if n_waiting == n_rows or n_bytes > BYTES_OF_A_BATCH:
                yield _joined(waiting)
                waiting, n_waiting, n_bytes = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return table.to_batches()[0]


def _listed(names: list[str], at_most: int = 20) -> str:
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(map(repr, names[:at_most])) + more
