"""Columns of a table that a model has not learned from, beside its rows, or as they are."""

from typing import Any

import pyarrow as pa

from bochner.fitting.sources import Reader, encoded_batches, is_source
from bochner.tables.source import TableError


def column_of(reader: Reader, source: Any, name: str, target: str | None = None) -> list[Any]:
    """Read one column of a table as Python's values; of rows with a target alone, if one is named.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.fitting.columns import column_of
        >>> from bochner.fitting.sources import Reader
        >>> column_of(Reader(None, ("a",), 1, None), pa.table({"a": [1, 2], "b": ["x", None]}), "b")
        ['x', None]
    """
    if not is_source(source, encoded=True):
        raise ValueError(
            f"{name!r} names a column, so X must be a table; give an array with one entry for each row."
        )
    found: list[Any] = []
    for _, batch in encoded_batches(reader, source, target):
        if name not in batch.schema.names:
            raise TableError(f"there is no column {name!r}; the columns are {batch.schema.names}.")
        found += batch.column(name).to_pylist()
    return found


def rows_as_they_are(reader: Reader, source: Any, target: str) -> pa.Table:
    """Read the columns that a model was fitted to, and its target, of all rows that have one.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.fitting.columns import rows_as_they_are
        >>> from bochner.fitting.sources import Reader
        >>> table = pa.table({"a": [1.0, 2.0], "id": ["x", "y"], "price": [3.0, 4.0]})
        >>> rows_as_they_are(Reader(None, ("a",), 1, None), table, "price").column_names
        ['a', 'price']
    """
    names = reader.names if reader.encoder is None else reader.encoder.input_names
    batches = []
    for _, batch in encoded_batches(reader, source, target):
        kept = [n for n in batch.schema.names if n != target] if names is None else names
        batches.append(batch.select([*kept, target]))
    return pa.Table.from_batches(batches).combine_chunks()
