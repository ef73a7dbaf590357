"""JSON: one object a line, or a list of objects, held in memory."""

import codecs
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json
import pyarrow.types as is_

from bochner.tables.casting import TableError
from bochner.tables.memory_reader import MemoryReader
from bochner.tables.readers import AbstractReader

_MOST_BYTES = 1 << 28
_MARK = codecs.BOM_UTF8  # as PowerShell writes it
_AT_ONCE = 4096
_START = re.compile(rb"(\[\s*[\[{]|\{\s*\")")
_EXPECTED = (
    "JSON must be one object a line, or a list of objects, with the names of the columns as keys: in pandas "
    "`frame.to_json(path, orient='records', lines=True)`."
)


def is_json(file: io.BufferedIOBase) -> bool:
    """Tell whether a file starts as one of objects does, after a byte order mark and blanks if there are any.

    Example:
        >>> import io
        >>> from bochner.tables.json_reader import is_json
        >>> is_json(io.BytesIO(b'{"a": 1}')), is_json(io.BytesIO(b"[0, 1),[1, 2)"))
        (True, False)
    """
    read = file.read(_AT_ONCE)
    start = read.removeprefix(_MARK).lstrip()
    while read and not start:
        read = file.read(_AT_ONCE)
        start = read.lstrip()
    return _START.match(start + file.read(_AT_ONCE)) is not None


def json_reader(path: Path) -> AbstractReader:
    """Open a file of objects."""
    if path.stat().st_size > _MOST_BYTES:
        raise TableError(
            f"a JSON file may have {_MOST_BYTES >> 20} MiB; this one has {path.stat().st_size >> 20}. Save the table "
            "as CSV or Parquet."
        )
    text = path.read_bytes().removeprefix(_MARK).lstrip()
    table = _table_of_list(text) if text.startswith(b"[") else _table_of_lines(text)
    if all(is_.is_nested(field.type) for field in table.schema):
        raise TableError(_EXPECTED)
    return MemoryReader(table)


def _table_of_lines(text: bytes) -> pa.Table:
    try:
        # In one block, and with an end of the last line: without either PyArrow drops values that are rare.
        return pyarrow.json.read_json(
            pa.BufferReader(text + b"\n"), pyarrow.json.ReadOptions(block_size=len(text) + 1)
        )
    except pa.ArrowInvalid as error:
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"{_EXPECTED} PyArrow says: {reason}.") from error


def _table_of_list(text: bytes) -> pa.Table:
    rows = json.loads(text)
    if not all(isinstance(row, dict) for row in rows):
        raise TableError(_EXPECTED)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        OverflowError,
    ):  # of several types: as they are written
        return pa.array(
            [
                value if value is None or isinstance(value, str) else json.dumps(value)
                for value in values
            ]
        )
