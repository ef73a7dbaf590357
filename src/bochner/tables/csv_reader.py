"""CSV files, plain or compressed, read in blocks; types are settled by a first pass."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.types as is_

from bochner.tables.casting import MISSING_WORDS, Kind, TableError, compute, find_kind
from bochner.tables.readers import AbstractReader, check_width

_BLOCK = 1 << 20
_LARGEST_BLOCK = 64 << 20
_HEAD = 1 << 16
_CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (.*?): (invalid value '(.*)'|.*)",
    re.DOTALL,
)
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
    """A CSV file with a header in UTF-8, separated by commas, or by semicolons or tabs where the header has no comma.

    PyArrow finds the types. It looks at the first block only, so a first pass over the whole file settles them: where
    a later value does not fit, the column gets a wider type. With `types` there is no such pass: columns have the given
    types, all others are text.
    """

    def __init__(self, path: Path, types: Mapping[str, pa.DataType] | None):
        self._path = path
        self._block = _BLOCK
        head = _head(path)
        self._delimiter = _find_delimiter(head)
        # A header without an end of line is no table to PyArrow.
        self._header_alone = head if len(head.splitlines()) == 1 and len(head) < _HEAD else None
        self._names: list[str] = []
        try:
            self._names = self._header()
            self.schema, self.n_rows = self._settle() if types is None else self._given(types)
        except pa.ArrowInvalid as error:
            raise self._explained(error) from error

    def read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: D102
        types = {name: self.schema.field(name).type for name in columns}
        try:
            yield from self._batches(columns, types)
        except pa.ArrowInvalid as error:
            raise self._explained(error) from error

    def _header(self) -> list[str]:
        with self._reader(None, {}) as reader:
            try:
                names = reader.schema.names
            except UnicodeDecodeError as error:
                raise TableError(f"the header is not in UTF-8. {_TO_UTF8}") from error
        check_width(len(names))
        repeated = sorted(name for name, n in Counter(names).items() if n > 1)
        if repeated:
            raise TableError(
                f"several columns are named {', '.join(map(repr, repeated))}. Give each its own name."
            )
        return names

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
                if not found or "UTF8" in found[4]:
                    raise
                column = self._names[int(found[1])]
                types = {**types, column: pa.string()} if types else self._widened()

    def _check(self, types: Mapping[str, pa.DataType]) -> tuple[pa.Schema, int]:
        n_rows = sum(batch.num_rows for batch in self._batches(None, types))
        schema = self._schema(types)
        for field in schema:
            if is_.is_binary(field.type):
                raise TableError(f"column {field.name!r}: the text is not in UTF-8. {_TO_UTF8}")
        return schema, n_rows

    def _schema(self, types: Mapping[str, pa.DataType]) -> pa.Schema:
        with self._reader(None, types) as reader:
            return reader.schema

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
                        if new.num_rows:
                            yield new
                self._check_closed(new)
                return
            except pa.ArrowInvalid as error:
                self._enlarge_blocks(error)

    def _reader(
        self, columns: list[str] | None, types: Mapping[str, pa.DataType]
    ) -> pyarrow.csv.CSVStreamingReader:
        while True:
            try:
                return pyarrow.csv.open_csv(
                    self._stream(),
                    # One thread, since only then do errors name the row.
                    read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=self._block),
                    parse_options=pyarrow.csv.ParseOptions(
                        delimiter=self._delimiter, newlines_in_values=True
                    ),
                    convert_options=pyarrow.csv.ConvertOptions(
                        column_types=dict(types),
                        include_columns=columns,
                        null_values=list(MISSING_WORDS),
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
        if field and "\n" in field and not _ends_with_quotation_mark(self._path):
            raise TableError(
                f"a quotation mark is not closed: the last row, from {field.splitlines()[0][:60]!r} on, holds all the "
                "rest of the file. Close it, or double it where it is part of the text."
            )

    def _stream(self) -> pa.NativeFile:
        if self._header_alone is not None:
            return pa.BufferReader(self._header_alone + b"\n")
        return pa.input_stream(self._path, compression=_compression(self._path))

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
                f"separator {self._delimiter!r} or quotation marks must be quoted."
            )
        if found := _CONVERSION.match(message):
            column = self._names[int(found[1])]
            where = f"column {column!r}" + (f", line {found[2]}" if found[2] else "")
            if "UTF8" in found[4]:
                return TableError(f"{where}: the text is not in UTF-8. {_TO_UTF8}")
            value = found[5] if len(found[5] or "") <= 60 else f"{found[5][:57]}..."
            return TableError(
                f"{where}: expected {_WORDS.get(found[3], found[3])}; got {value!r}. Correct it, or leave the cell "
                "empty where the value is not known."
            )
        if "mpty CSV" in message:
            return TableError("the file has no rows and no header. Check how it was written.")
        return TableError(f"the file cannot be read as CSV ({' '.join(message.split())[:300]}).")


_TO_UTF8 = "Convert the file, for example with `iconv -f latin1 -t utf-8 old.csv > new.csv`."
_WORDS = {"double": "a number", "int64": "an integer", "bool": "true or false"}


def _compression(path: Path) -> str | None:
    with path.open("rb") as file:
        return "gzip" if file.read(2) == b"\x1f\x8b" else None


def _ends_with_quotation_mark(path: Path) -> bool:
    if _compression(path):
        return True  # not known without reading it all again
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1024))
        return file.read().rstrip().endswith(b'"')


def _head(path: Path) -> bytes:
    with pa.input_stream(path, compression=_compression(path)) as stream:
        head = stream.read(_HEAD)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(
            "the text is in UTF-16. Convert the file, for example with `iconv -f utf-16 -t utf-8 old.csv > new.csv`."
        )
    if not head.strip():
        raise TableError("the file is empty. Check how it was written.")
    if b"\x00" in head:
        raise TableError(
            "this is neither text nor Parquet, .npz or .npy. Save the table as CSV or Parquet."
        )
    return head


def _find_delimiter(head: bytes) -> str:
    header = head.lstrip().splitlines()[0]
    return next((mark for mark in ",;\t" if mark.encode() in header), ",")


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
