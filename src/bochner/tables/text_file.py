"""What a file of text looks like before its fields are read: encoding, separator, where the header is."""

import codecs
import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from bochner.tables.casting import TableError
from bochner.tables.reading import Reading

_HEAD = 1 << 16
_SCANNED_AT_ONCE = 1 << 22
_SEPARATORS = ",;\t|"
_LINES_COMPARED = 20
_SEPARATOR_LINE = re.compile(r"sep=(.)$")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_MOST_CONTROLS = 0.05
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r") + b"\x7f"
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_OTHER_FORMATS = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"ORC": "an ORC file",
    b"%PDF": "a PDF document",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
}


class TextFile:
    r"""A file of rows with separated fields, plain or gzip.

    Example:
        >>> import pathlib, tempfile
        >>> from bochner.tables.reading import Reading
        >>> from bochner.tables.text_file import TextFile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
        >>> _ = path.write_bytes("# a comment\nGröße;Farbe\n1,5;rot\n".encode("utf-16"))
        >>> file = TextFile(path, Reading())
        >>> file.encoding, file.separator, file.n_lines_before
        ('utf-16', ';', 1)

    Attributes:
        path: of the file.
        encoding: of its text.
        separator: between fields.
        n_lines_before: lines before the header.
        header_alone: whether no line follows it.
        header: its line.
        rows_trail: whether rows end with a separator more than the header has.
        header_trails: whether the header ends with a separator more than rows have.
    """

    def __init__(self, path: Path, reading: Reading):
        self.path = path
        with path.open("rb") as file:
            self.compression = "gzip" if file.read(2) == b"\x1f\x8b" else None
        head = self._head()
        self.encoding = reading.encoding or _marked(head) or self._found_encoding()
        lines = head.decode(self.encoding, errors="replace").lstrip("\ufeff").splitlines()
        found = _SEPARATOR_LINE.match(lines[0])
        self.n_lines_before = _n_comments(lines, 1 if found else 0)
        lines = lines[self.n_lines_before :]
        if not any(line.strip() for line in lines):
            raise TableError("the file has no rows and no header. Check how it was written.")
        asked = reading.sep if reading.sep and reading.sep in lines[0] else None
        self.separator = asked or (found[1] if found else _separator(lines[:_LINES_COMPARED]))
        self.header_alone = len(lines) == 1 and len(head) < _HEAD
        self.header = lines[0]
        more = _more_fields(lines[:_LINES_COMPARED], self.separator)
        ends = [line.rstrip(" ").endswith(self.separator) for line in lines[:_LINES_COMPARED]]
        self.rows_trail = more == {1} and all(ends[1:])
        self.header_trails = more == {-1} and ends[0]

    def stream(self) -> pa.NativeFile:
        """Open the bytes from the start."""
        if self.header_alone:  # a header without an end of line is no table to PyArrow
            end = "\n".encode(self.encoding).removeprefix(codecs.BOM_UTF16)
            return pa.BufferReader(self._head() + end)
        return pa.input_stream(self.path, compression=self.compression)

    def ends_with_quotation_mark(self) -> bool:
        """Whether the last character of the text is one."""
        if self.compression or self.encoding.startswith("utf-16"):
            return True  # not known without reading it all again
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - 1024))
            return file.read().rstrip().endswith(b'"')

    def _head(self) -> bytes:
        with pa.input_stream(self.path, compression=self.compression) as stream:
            head = stream.read(_HEAD)
        if not head.strip():
            raise TableError("the file is empty. Check how it was written.")
        _check_is_rows(head)
        return head

    def _found_encoding(self) -> str:
        """Tell UTF-8 from the encoding of Windows for Western Europe, which holds Latin-1."""
        n_valid = n_invalid = 0
        unused = frozenset(b"\x81\x8d\x8f\x90\x9d")
        has_unused = False
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        for chunk in self._chunks():
            if chunk.isascii() and not decoder.getstate()[0]:
                continue
            others = [character for character in decoder.decode(chunk) if character > "\x7f"]
            invalid = sum("\udc80" <= character <= "\udcff" for character in others)
            n_valid, n_invalid = n_valid + len(others) - invalid, n_invalid + invalid
            has_unused = has_unused or not unused.isdisjoint(chunk)
        if n_invalid == 0:
            return "utf-8"
        if n_valid > n_invalid:
            raise TableError(
                f"most of the text is in UTF-8, but {n_invalid} bytes are not. Write the file again, or name its "
                "encoding: `--encoding`, in Python `open_table(path, encoding=...)`."
            )
        encoding = "latin-1" if has_unused else "cp1252"
        warnings.warn(
            f"{self.path}: the text is not in UTF-8, and is read as {encoding}, of Western Europe. `--encoding` names "
            "another one, in Python `open_table(path, encoding=...)`.",
            UserWarning,
            stacklevel=4,
        )
        return encoding

    def _chunks(self) -> Iterator[bytes]:
        with pa.input_stream(self.path, compression=self.compression) as stream:
            while chunk := stream.read(_SCANNED_AT_ONCE):
                yield chunk


def _marked(head: bytes) -> str | None:
    """Give the encoding that a byte order mark says, or zeros at every second place."""
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        every_second = head[start::2]
        if len(every_second) > 3 and every_second.count(0) > 0.7 * len(every_second):
            return encoding
    return None


def _check_is_rows(head: bytes) -> None:
    for start, name in _OTHER_FORMATS.items():
        if head.startswith(start):
            raise TableError(
                f"this is {name}, which is not read. Save the table as CSV or Parquet; in Python, hand in a "
                "frame, such as `pandas.read_excel` gives of a workbook."
            )
    text = head.lstrip(codecs.BOM_UTF8).lstrip()
    if text.startswith((b"[", b"{")) and re.match(rb'[\[{]\s*[\[{"]', text):
        raise TableError(
            "this is JSON that is compressed or in another encoding than UTF-8. Write it again without, or save the "
            "table as CSV or Parquet."
        )
    n_controls = len(head) - len(head.translate(None, _CONTROLS))
    if _marked(head) is None and n_controls > _MOST_CONTROLS * len(head):
        raise TableError(
            "this is neither text nor Parquet, Feather, .npz or .npy. Save the table as CSV or Parquet."
        )


def _n_comments(lines: list[str], start: int) -> int:
    """Count lines at the beginning that are no header: those after a number sign, and empty ones."""
    n = start
    while n < len(lines) and (not lines[n].strip() or lines[n].lstrip().startswith("#")):
        n += 1
    # A header may begin with a number sign, too: then the rows have as many fields as it has.
    last = n - 1
    if last >= start and lines[last].lstrip().startswith("#") and n < len(lines):
        counts = [_counts(line) for line in lines[last : last + 2]]
        if any(counts[0].values()) and counts[0] == counts[1] and _holds_numbers(lines[n]):
            return last
    return n


def _holds_numbers(line: str) -> bool:
    return re.search(r"(^|[,;\t|])\s*[-+]?[0-9]", line) is not None


def _separator(lines: list[str]) -> str:
    """Choose what occurs in the header, best as often in each row as there, quoted fields left out."""
    header, rows = _counts(lines[0]), [_counts(line) for line in lines[1:] if line.strip()]
    found = [mark for mark in _SEPARATORS if header[mark]]
    if not found:  # one column: any mark that its cells do not hold
        cells = "".join(lines)
        return next((mark for mark in _SEPARATORS if mark not in cells), ",")

    def fitness(mark: str) -> tuple[float, int]:
        same = sum(row[mark] == header[mark] for row in rows) / len(rows) if rows else 1.0
        return (round(same, 1), header[mark])

    return max(found, key=fitness)


def _more_fields(lines: list[str], separator: str) -> set[int]:
    """Tell how many fields rows have more than the header; the last line may be cut short."""
    n_header = _QUOTED.sub("", lines[0]).count(separator)
    rows = [line for line in (lines[1:-1] or lines[1:]) if line.strip()]
    return {_QUOTED.sub("", line).count(separator) - n_header for line in rows}


def _counts(line: str) -> dict[str, int]:
    bare = _QUOTED.sub("", line)
    return {mark: bare.count(mark) for mark in _SEPARATORS}


def unique_names(names: list[str]) -> list[str]:
    """Give each column a name of its own, and warn where that is another one than in the table.

    Example:
        >>> import warnings
        >>> from bochner.tables.text_file import unique_names
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     unique_names(["a", "b", "a", "", ""])
        ['a', 'b', 'a (2)', '', 'column 5']
    """
    taken, seen, unique, renamed = set(names), set(), [], []
    for place, name in enumerate(names):
        if name in seen:
            choices = (f"{name} ({number})" for number in itertools.count(2))
            new = next(
                choice
                for choice in itertools.chain([] if name else [f"column {place + 1}"], choices)
                if choice not in taken
            )
            taken.add(new)
            if name:
                renamed.append(f"{name!r} to {new!r}")
            name = new
        seen.add(name)
        unique.append(name)
    if renamed:
        warnings.warn(
            f"several columns have the same name; further ones are renamed: {', '.join(renamed)}.",
            UserWarning,
            stacklevel=3,
        )
    return unique
