"""Parquet: one file, or a folder of files with the same columns."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from bochner.tables.casting import TableError, convert
from bochner.tables.readers import BYTES_OF_A_BATCH, AbstractTypedReader, errors_in_words

_READ_AT_ONCE = 1 << 20


class ParquetReader(AbstractTypedReader):
    """A Parquet file, read page by page, so that large row groups do not fill the memory."""

    def __init__(self, path: Path):
        self._path = path
        with self._open() as file:
            self.schema, self.n_rows = file.schema_arrow, file.metadata.num_rows
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            n_bytes = sum(group.total_byte_size for group in groups)
        # Rows that hold long texts come in small batches.
        self._most_rows = max(
            1, BYTES_OF_A_BATCH * max(file.metadata.num_rows, 1) // max(n_bytes, 1)
        )

    def read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: D102
        with self._open() as file:
            yield from file.iter_batches(
                min(n_rows, self._most_rows), columns=columns, use_threads=False
            )

    def _open(self) -> pyarrow.parquet.ParquetFile:
        # Through a buffer Arrow makes room for a page before it finds that the file ends; a damaged page may promise
        # 2 GiB. Small files need no buffer.
        large = self._path.stat().st_size > BYTES_OF_A_BATCH
        return pyarrow.parquet.ParquetFile(
            self._path,
            buffer_size=_READ_AT_ONCE if large else 0,
            pre_buffer=False,
            page_checksum_verification=True,
        )


class ParquetFolder(AbstractTypedReader):
    """The Parquet files in a folder and its subfolders, in the order of their names.

    Subfolders named `key=value` give a column `key`. All files must have the same columns; where the types differ the
    values get the type that holds all of them.
    """

    def __init__(self, folder: Path):
        dataset = pyarrow.dataset.dataset(folder, format="parquet", partitioning="hive")
        fragments = sorted(dataset.get_fragments(), key=lambda fragment: fragment.path)
        if not fragments:
            raise TableError("the folder holds no Parquet files. Check the path.")
        self._parts: list[tuple[ParquetReader, dict[str, Any]]] = []
        schemas = []
        for fragment in fragments:
            path = Path(fragment.path)
            with errors_in_words(str(path)):
                reader = ParquetReader(path)
            keys = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
            constants = [dataset.schema.field(key) for key in keys]
            schemas.append(pa.schema([*reader.schema, *constants]).remove_metadata())
            self._parts.append((reader, keys))
            _check_same_columns(path, schemas[0], schemas[-1])
        self.schema = pa.unify_schemas(schemas, promote_options="permissive")
        self.n_rows = sum(reader.n_rows or 0 for reader, _ in self._parts)

    def read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: D102
        schema = pa.schema([self.schema.field(name) for name in columns])
        for reader, keys in self._parts:
            stored = [name for name in columns if name not in keys] or reader.schema.names[:1]
            for batch in reader.read(stored, n_rows):
                arrays = [_column(batch, field, keys) for field in schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field, keys: dict[str, Any]) -> pa.Array:
    if field.name in keys:
        return pa.array([keys[field.name]]).cast(field.type).take(pa.array([0] * len(batch)))
    return convert(batch.column(field.name), field.type, place=f"column {field.name!r}")


def _check_same_columns(path: Path, expected: pa.Schema, schema: pa.Schema) -> None:
    for have, lack, verb in ((expected, schema, "lacks"), (schema, expected, "also has")):
        names = [name for name in have.names if name not in lack.names]
        if names:
            raise TableError(
                f"{path} {verb} {', '.join(map(repr, names))}, unlike the first file of the folder. Give all files "
                "the same columns."
            )
