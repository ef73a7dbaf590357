"""Tables written a part at a time; at the end the file appears whole, or not at all."""

import contextlib
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet


class _Writer:
    """Opens the file with the columns of the first part."""

    def __init__(self, target: Any, is_parquet: bool):
        self._target, self._is_parquet = target, is_parquet
        self._writer: Any = None

    def write(self, part: pa.RecordBatch) -> None:
        if self._writer is None:
            kind = pyarrow.parquet.ParquetWriter if self._is_parquet else pyarrow.csv.CSVWriter
            self._writer = kind(self._target, part.schema)
        self._writer.write_batch(part)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@contextlib.contextmanager
def open_output(output: str) -> Iterator[_Writer]:
    """Write a CSV or Parquet file by its name; "-" prints CSV.

    Example:
        >>> import os, tempfile
        >>> import pyarrow as pa
        >>> from bochner.cli.writing import open_output
        >>> path = os.path.join(tempfile.mkdtemp(), "out.csv")
        >>> with open_output(path) as writer:
        ...     writer.write(pa.RecordBatch.from_pydict({"a": [1, 2]}))
        >>> open(path).read().split()
        ['"a"', '1', '2']
    """
    if output == "-":
        writer = _Writer(pa.PythonFile(sys.stdout.buffer, "w"), is_parquet=False)
        yield writer
        writer.close()
        sys.stdout.flush()
        return
    path = Path(output)
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"--output must end in .csv or .parquet, or be -; got {output!r}.")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(
            f"--output {output} cannot be written: it is a folder, or its folder is missing."
        )
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    writer = _Writer(str(temporary), is_parquet=path.suffix == ".parquet")
    try:
        yield writer
        writer.close()
        if not temporary.exists():
            raise ValueError("the table has no rows, so there is nothing to write.")
        os.replace(temporary, path)
    except BaseException:
        writer.close()
        temporary.unlink(missing_ok=True)
        raise
