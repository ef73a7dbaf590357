"""Tables from files, standard input and memory, read in batches of rows."""

import os
import shutil
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
from bochner.tables.casting import TableError, convert
from bochner.tables.csv_reader import CsvReader
from bochner.tables.memory_reader import DatasetReader, MemoryReader, frame_to_arrow
from bochner.tables.parquet_reader import ParquetFolder, ParquetReader
from bochner.tables.readers import BYTES_OF_A_BATCH, AbstractReader, errors_in_words

__all__ = ["TableError", "TableSource", "open_table"]

_EXPECTED_STARTS = {".parquet": b"PAR1", ".npz": b"PK", ".npy": b"\x93NUMPY"}


class TableSource:
    """A table that can be read from its start any number of times, in bounded memory.

    Attributes:
        name: what messages call it.
        schema: the columns and their Arrow types.
        n_rows: the number of rows, None where only a pass over the table would tell.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.source import open_table
        >>> table = open_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", None]}))
        >>> [batch.num_rows for batch in table.batches(["b"], n_rows=2)]
        [2, 1]
    """

    def __init__(self, name: str, reader: AbstractReader, types: Mapping[str, pa.DataType]):
        self.name = name
        self._reader = reader
        names = reader.schema.names
        repeated = sorted(name for name, n in Counter(names).items() if n > 1)
        if repeated:
            raise TableError(
                f"several columns are named {', '.join(map(repr, repeated))}. Give each its own name."
            )
        fields = [(field.name, types.get(field.name, field.type)) for field in reader.schema]
        self.schema = pa.schema(fields)

    @property
    def n_rows(self) -> int | None:
        """The number of rows, None where only a pass over the table would tell."""
        return self._reader.n_rows

    def batches(
        self, columns: Sequence[str] | None = None, n_rows: int = 65_536
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
        first_row = 0
        with errors_in_words(self.name):
            for batch in _regrouped(_validated(self._reader.read(names, n_rows)), n_rows):
                arrays = [
                    convert(
                        batch.column(field.name),
                        field.type,
                        place=f"column {field.name!r}",
                        first_row=first_row,
                    )
                    for field in schema
                ]
                first_row += batch.num_rows
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def open_table(source: Any, *, types: Mapping[str, pa.DataType] | None = None) -> TableSource:
    r"""Open a table: a path, "-" for standard input, or a table in memory.

    Args:
        source: the path of a CSV file (plain or gzip), a Parquet file, a folder of Parquet files, a `.npz` or a `.npy`
            file; "-" for CSV (or one of the other files) from standard input; a pandas, Polars or Arrow table; or an
            Arrow dataset. The content decides what a file is, whatever its name.
        types: Arrow types of columns by name, for reading a table in the same way as an earlier one. Without them a
            CSV file is read once in full here, to settle its types and count its rows. With them, its other columns are
            text.

    Example:
        >>> import tempfile, pathlib
        >>> from bochner.tables.source import open_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "a.csv")
        ...     _ = path.write_text("size,color\n1,red\n2.5,\n")
        ...     table = open_table(path)
        ...     rows = [row for batch in table.batches() for row in batch.to_pylist()]
        >>> rows
        [{'size': 1.0, 'color': 'red'}, {'size': 2.5, 'color': None}]
    """
    if isinstance(source, str | os.PathLike):
        if str(source) == "-":
            return _open_standard_input(types)
        name = str(source)
        with errors_in_words(name):
            return TableSource(name, _file_reader(Path(source), types), types or {})
    name = "the table"
    with errors_in_words(name):
        return TableSource(name, _memory_reader(source), types or {})


def _open_standard_input(types: Mapping[str, pa.DataType] | None) -> TableSource:
    handle, path = tempfile.mkstemp(prefix="bochner-", suffix=".csv")
    try:
        with errors_in_words("standard input"):
            with os.fdopen(handle, "wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
            table = TableSource("standard input", _file_reader(Path(path), types), types or {})
    except BaseException:
        os.unlink(path)
        raise
    weakref.finalize(table, os.unlink, path)
    return table


def _file_reader(path: Path, types: Mapping[str, pa.DataType] | None) -> AbstractReader:
    if path.is_dir():
        return ParquetFolder(path)
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(b"PAR1"):
        return ParquetReader(path)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY")):
        return ArrayReader(path)
    expected = _EXPECTED_STARTS.get(path.suffix.lower())
    if expected is not None:
        raise TableError(
            f"this is no {path.suffix.lower()} file: it starts with {start[:6]!r}, not {expected!r}. Write it again, "
            "or give it the ending of what it is."
        )
    return CsvReader(path, types)


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
