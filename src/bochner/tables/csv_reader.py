"""CSV files, plain or compressed, read in blocks; types are settled by a first pass."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.types as is_

from bochner.tables.casting import MISSING_WORDS, Kind, TableError, compute, find_kind
from bochner.tables.readers import AbstractReader, check_width
from bochner.tables.reading import Reading
from bochner.tables.text_file import TextFile, unique_names

_BLOCK = 1 << 20
_LARGEST_BLOCK = 64 << 20
_CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (.*?): (invalid value '(.*)'|.*)",
    re.DOTALL,
)
_BEYOND = "after the last separator"
"""What a column is called that has no name, since the header has none for it, and no values."""
_RAGGED = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns?, got (\d+)")
_WIDER = {
    pa.null(): (
        pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"),
        pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"),
    ),
    pa.int64(): (pa.float64(),),
    pa.date32(): (pa.timestamp("s"), pa.timestamp("ns")),
    pa.timestamp("s"): (pa.timestamp("ns"),),
    pa.timestamp("s", "UTC"): (pa.timestamp("ns", "UTC"),),
}  # fmt: skip


class CsvReader(AbstractReader):
    """A CSV file with a header; encoding and separator are found where they are not said.

    PyArrow finds the types. It looks at the first block only, so a first pass over the whole file settles them: where
    a later value does not fit, the column gets a wider type. With `types` there is no such pass: columns have the given
    types, all others are text.
    """

    def __init__(self, path: Path, types: Mapping[str, pa.DataType] | None, reading: Reading):
        self._file = TextFile(path, reading)
        self._missing = [*MISSING_WORDS, *reading.na]
        self._block = _BLOCK
        self._names: list[str] = []
        try:
            self._names = self._header()
            self.schema, self.n_rows = self._settle() if types is None else self._given(types)
        except pa.ArrowInvalid as error:
            raise self._explained(error) from error
        except UnicodeDecodeError as error:
            raise self._undecodable() from error

    @property
    def separator(self) -> str:  # noqa: D102
        return self._file.separator

    @property
    def read_as_numbers(self) -> list[str]:  # noqa: D102
        return [field.name for field in self.schema if field.type == pa.float64()]

    def take_as_text(self, columns: Sequence[str]) -> None:  # noqa: D102
        chosen = (
            (one.name, pa.string() if one.name in columns else one.type) for one in self.schema
        )
        self.schema = pa.schema(list(chosen))

    def texts(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: D102
        return self._batches(list(columns), dict.fromkeys(columns, pa.string()))

    def read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: D102
        types = {name: self.schema.field(name).type for name in columns}
        try:
            yield from self._batches(columns, types)
        except pa.ArrowInvalid as error:
            raise self._explained(error) from error
        except UnicodeDecodeError as error:
            raise self._undecodable() from error

    def _header(self) -> list[str]:
        alone = self._file.header if self._file.rows_trail or self._file.header_trails else None
        with self._reader(None, {}, alone) as reader:
            names = reader.schema.names
        check_width(len(names))
        return unique_names(names[:-1] if self._file.header_trails else names)

    @property
    def _fields(self) -> list[str]:
        """What the fields of a row are called."""
        return [*self._names, *[_BEYOND] * self._file.rows_trail] if self._names else []

    def _given(self, types: Mapping[str, pa.DataType]) -> tuple[pa.Schema, None]:
        chosen = [(name, _readable(types.get(name, pa.string()))) for name in self._names]
        return pa.schema(chosen), None

    def _settle(self) -> tuple[pa.Schema, int]:
        types: dict[str, pa.DataType] = {}
        while True:
            try:
                return self._check(types)
            except pa.ArrowInvalid as error:
                found = _CONVERSION.match(str(error))
                if not found or "UTF8" in found[4] or int(found[1]) == len(self._names):
                    raise
                column = self._names[int(found[1])]
                types = {**types, column: pa.string()} if types else self._widened()

    def _check(self, types: Mapping[str, pa.DataType]) -> tuple[pa.Schema, int]:
        n_rows = sum(batch.num_rows for batch in self._batches(None, types))
        schema = self._schema(types)
        for field in schema:
            if is_.is_binary(field.type):
                raise self._undecodable()
        return schema, n_rows

    def _schema(self, types: Mapping[str, pa.DataType]) -> pa.Schema:
        with self._reader(None, types) as reader:
            return pa.schema([field for field in reader.schema if field.name in self._names])

    def _widened(self) -> dict[str, pa.DataType]:
        """Start from the types of the first block and widen each until it holds all values of its column."""
        inferred = self._schema({})
        types = {field.name: field.type for field in inferred}
        as_text = dict.fromkeys(self._names, pa.string())
        for batch in self._batches(None, as_text):
            for name in self._names:
                types[name] = _widen(batch.column(name), types[name])
        return types

    def _batches(
        self, columns: list[str] | None, types: Mapping[str, pa.DataType]
    ) -> Iterator[pa.RecordBatch]:
        """Read all batches; where a row does not fit into a block, start over with larger ones."""
        n_given = 0
        while True:
            n_passed, new = 0, None
            try:
                with self._reader(columns, types) as reader:
                    for batch in reader:
                        new = batch.slice(max(n_given - n_passed, 0))
                        n_passed += batch.num_rows
                        n_given = max(n_given, n_passed)
                        if self._file.rows_trail:
                            new = new.select(new.schema.names[:-1])
                        if new.num_rows:
                            yield new
                self._check_closed(new)
                return
            except pa.ArrowInvalid as error:
                self._enlarge_blocks(error)

    def _reader(
        self,
        columns: list[str] | None,
        types: Mapping[str, pa.DataType],
        header_alone: str | None = None,
    ) -> pyarrow.csv.CSVStreamingReader:
        """Start to read all rows, or the header alone, given as text."""
        if self._file.rows_trail and columns is not None:
            columns = [*columns, _BEYOND]
        alone = f"{header_alone}\n".encode(self._file.encoding) if header_alone else None
        while True:
            try:
                return pyarrow.csv.open_csv(
                    self._file.stream() if alone is None else pa.BufferReader(alone),
                    # One thread, since only then do errors name the row.
                    read_options=pyarrow.csv.ReadOptions(
                        use_threads=False,
                        block_size=self._block,
                        encoding=self._file.encoding,
                        skip_rows=0 if alone else self._file.n_lines_before,
                        column_names=self._fields or None,
                        skip_rows_after_names=1 if self._names else 0,
                    ),
                    parse_options=pyarrow.csv.ParseOptions(
                        delimiter=self._file.separator,
                        newlines_in_values=True,
                        invalid_row_handler=_comments_skipped,
                    ),
                    convert_options=pyarrow.csv.ConvertOptions(
                        column_types={**types, _BEYOND: pa.null()},
                        include_columns=columns,
                        null_values=self._missing,
                        strings_can_be_null=True,
                    ),
                )
            except pa.ArrowInvalid as error:
                self._enlarge_blocks(error)

    def _check_closed(self, last: pa.RecordBatch | None) -> None:
        """Refuse a last field that runs on over lines to the end of the file, which PyArrow does not mind."""
        if (
            not last
            or last.schema.names[-1] != self._names[-1]
            or last.schema.types[-1] != pa.string()
        ):
            return
        field = last.column(-1)[-1].as_py()
        if field and "\n" in field and not self._file.ends_with_quotation_mark():
            raise TableError(
                f"a quotation mark is not closed: the last row, from {field.splitlines()[0][:60]!r} on, holds all the "
                "rest of the file. Close it, or double it where it is part of the text."
            )

    def _enlarge_blocks(self, error: pa.ArrowInvalid) -> None:
        message = str(error)
        if "straddl" not in message and "cannot infer number of columns" not in message:
            raise error
        if self._block >= _LARGEST_BLOCK:
            raise TableError(
                f"a row does not end within {_LARGEST_BLOCK >> 20} MiB, or not at all. Check for a quotation mark that "
                "is not closed; otherwise remove the long field."
            ) from error
        self._block *= 4

    def _explained(self, error: pa.ArrowInvalid) -> TableError:
        message = str(error)
        if found := _RAGGED.match(message):
            line = f"line {found[1]} (empty lines not counted)" if found[1] else "a line"
            return TableError(
                f"{line} has {found[3]} fields, the header has {found[2]}. Correct the line; fields that hold the "
                f"separator {self._file.separator!r} or quotation marks must be quoted."
            )
        if found := _CONVERSION.match(message):
            column = self._fields[int(found[1])]
            where = f"column {column!r}" + (f", line {found[2]}" if found[2] else "")
            if "UTF8" in found[4]:
                return self._undecodable()
            value = found[5] if len(found[5] or "") <= 60 else f"{found[5][:57]}..."
            return TableError(
                f"{where}: expected {_WORDS.get(found[3], found[3])}; got {value!r}. Correct it, or leave the cell "
                "empty where the value is not known."
            )
        if "mpty CSV" in message:
            return TableError("the file has no rows and no header. Check how it was written.")
        return TableError(f"the file cannot be read as CSV ({' '.join(message.split())[:300]}).")

    def _undecodable(self) -> TableError:
        return TableError(
            f"the text is not in {self._file.encoding}. Name its encoding: `--encoding latin-1`, in Python "
            "`open_table(path, encoding='latin-1')`."
        )


_WORDS = {"double": "a number", "int64": "an integer", "bool": "true or false", "null": "nothing"}


def _comments_skipped(row: Any) -> str:
    """Pass over comments among the rows, which have another number of fields."""
    return "skip" if row.text.lstrip().startswith("#") else "error"


def _readable(type: pa.DataType) -> pa.DataType:  # noqa: A002
    """The type itself where CSV is read to it alike; text where the conversion knows more forms."""
    native = find_kind(type) in (Kind.NUMBER, Kind.BOOLEAN) and not is_.is_dictionary(type)
    return type if native else pa.string()


def _widen(texts: pa.Array, type: pa.DataType) -> pa.DataType:  # noqa: A002
    """The type itself where it holds all of some texts, or the first of its wider ones that does."""
    if texts.null_count == len(texts):
        return type
    trimmed = compute.utf8_trim_whitespace(texts)
    for candidate in (type, *_WIDER.get(type, ())):
        try:
            trimmed.cast(candidate)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        return candidate
    return pa.string()
