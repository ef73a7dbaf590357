"""Tables written a part at a time; at the end the file appears whole, or not at all."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bochner.cli.output import Inputs, Output

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET = ".parquet"
_FORMULA = r"^[=+\-@\t\r\n]"


class _Writer:
    """Starts the table with the columns of the first part."""

    def __init__(self, output: Output, file: Any):
        self._output, self._file = output, file
        self._writer: Any = None

    @property
    def is_empty(self) -> bool:
        return self._writer is None

    def write(self, part: "pa.RecordBatch") -> None:
        import pyarrow.csv
        import pyarrow.parquet

        with self._output.errors_in_words():
            if self._writer is None:
                is_parquet = self._output.path.suffix == _PARQUET
                kind = pyarrow.parquet.ParquetWriter if is_parquet else pyarrow.csv.CSVWriter
                self._writer = kind(self._file, part.schema)
            self._writer.write_batch(part)

    def close(self) -> None:
        if self._writer is not None:
            with self._output.errors_in_words():
                self._writer.close()


def table_output(path: str | Path, inputs: Inputs) -> Output:
    """Give the place of `--output` for a table, which its name says the form of; "-" prints CSV.

    Example:
        >>> from bochner.cli.writing import table_output
        >>> table_output("predictions.xls", {})
        Traceback (most recent call last):
        ValueError: --output must end in .csv or .parquet, or be -; got 'predictions.xls'.
    """
    output = Output("--output", path, inputs)
    if not output.is_special and output.path.suffix not in (".csv", _PARQUET):
        raise ValueError(f"--output must end in .csv or .parquet, or be -; got {str(path)!r}.")
    return output


def without_formulas(part: "pa.RecordBatch") -> "pa.RecordBatch":
    """Put a quote before each text, and each name of a column, that a spreadsheet would take for a formula.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.cli.writing import without_formulas
        >>> without_formulas(pa.RecordBatch.from_pydict({"=a": ["=cmd|x", "red"], "n": [-1, 2]})).to_pydict()
        {"'=a": ["'=cmd|x", 'red'], 'n': [-1, 2]}
    """
    import pyarrow as pa

    from bochner.tables.casting import compute

    names = [f"'{name}" if re.match(_FORMULA, name) else name for name in part.schema.names]
    columns = []
    for column in part.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            marked = compute.binary_join_element_wise("'", column, "")
            column = compute.if_else(
                compute.match_substring_regex(column, _FORMULA), marked, column
            )
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names)


@contextlib.contextmanager
def open_output(output: Output) -> Iterator[_Writer]:
    """Write a CSV or Parquet file by its name.

    Example:
        >>> import os, tempfile
        >>> import pyarrow as pa
        >>> from bochner.cli.writing import open_output, table_output
        >>> path = os.path.join(tempfile.mkdtemp(), "out.csv")
        >>> with open_output(table_output(path, {})) as writer:
        ...     writer.write(pa.RecordBatch.from_pydict({"a": [1, 2]}))
        >>> open(path).read().split()
        ['"a"', '1', '2']
    """
    import pyarrow as pa

    with output.open() as file:
        writer = _Writer(output, pa.PythonFile(file, "w"))
        try:
            yield writer
        except BaseException:
            with contextlib.suppress(Exception):
                writer.close()
            raise
        writer.close()
        if writer.is_empty:
            raise ValueError("the table has no rows, so there is nothing to write.")
