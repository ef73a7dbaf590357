"""NumPy files, `.npy` and `.npz`, read in pieces and without pickle."""

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from bochner.tables.casting import TableError
from bochner.tables.readers import AbstractTypedReader, check_width

_MOST_BY_COLUMNS = 2**31


class _Member(NamedTuple):
    """One array of a file: how it is stored, and the columns it gives."""

    name: str
    n_rows: int
    width: int
    by_columns: bool
    dtype: np.dtype
    columns: list[str]


class ArrayReader(AbstractTypedReader):
    """The arrays of a `.npy` or `.npz` file as columns.

    A matrix named X, or the only array, gives columns x0, x1, ...; an array of one dimension gives one column under its
    own name, another matrix its name with numbers.
    """

    def __init__(self, path: Path):
        self._path = path
        with self._members() as names:
            self._arrays = []
            for name in names:
                with self._stream(name) as stream:
                    self._arrays.append(_describe(name, len(names) == 1, stream))
        lengths = {member.name: member.n_rows for member in self._arrays}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name!r} has {n}" for name, n in lengths.items())
            raise TableError(
                f"the arrays have different numbers of rows: {told}. Give all the same."
            )
        fields = [
            (column, _to_arrow(np.empty(0, member.dtype)).type)
            for member in self._arrays
            for column in member.columns
        ]
        self.schema, self.n_rows = pa.schema(fields), self._arrays[0].n_rows

    def read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: D102
        wanted = [member for member in self._arrays if set(member.columns) & set(columns)]
        with contextlib.ExitStack() as stack:
            pieces = []
            for member in wanted:
                stream = stack.enter_context(self._stream(member.name))
                _describe(member.name, True, stream)  # passes the header
                pieces.append(_pieces(member, stream, n_rows))
            for matrices in zip(*pieces, strict=True):
                found = {
                    column: _to_arrow(matrix[:, index])
                    for member, matrix in zip(wanted, matrices, strict=True)
                    for index, column in enumerate(member.columns)
                    if column in columns
                }
                yield pa.RecordBatch.from_pydict(found)

    @contextlib.contextmanager
    def _members(self) -> Iterator[list[str]]:
        if not zipfile.is_zipfile(self._path):
            yield ["X"]
            return
        with zipfile.ZipFile(self._path) as archive:
            files = archive.namelist()
        names = [name.removesuffix(".npy") for name in files if _is_array(name)]
        if "xl/workbook.xml" in files:
            raise TableError(
                "this is an Excel workbook, which is not read. Save its sheet as CSV; in Python, hand in a frame: "
                "`fit(pandas.read_excel(path), 'price')`."
            )
        if not names:
            raise TableError(
                "the archive holds no NumPy arrays. Save the table as CSV, Parquet or .npz."
            )
        if len(set(names)) < len(names):
            raise TableError("several arrays have the same name. Give each its own.")
        yield names

    @contextlib.contextmanager
    def _stream(self, name: str) -> Iterator[Any]:
        if not zipfile.is_zipfile(self._path):
            with self._path.open("rb") as stream:
                yield stream
            return
        with zipfile.ZipFile(self._path) as archive, archive.open(f"{name}.npy") as stream:
            yield stream


def _is_array(name: str) -> bool:
    return name.endswith(".npy")


def _read_header(name: str, stream: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        return read(stream)
    except zipfile.BadZipFile:
        raise
    except Exception as error:  # NumPy parses it as Python, and lets through what that raises
        raise TableError(
            f"the header of array {name!r} is damaged. Write the file again."
        ) from error


def _describe(name: str, alone: bool, stream: Any) -> _Member:
    shape, by_columns, dtype = _read_header(name, stream)
    if dtype.hasobject:
        raise TableError(
            f"array {name!r} holds Python objects, which are not read since they can run code. Save numbers or text."
        )
    if dtype.kind not in "biufUSmM" or dtype.itemsize == 0:
        raise TableError(f"array {name!r} has type {dtype}; expected numbers, text or dates.")
    if len(shape) not in (1, 2) or 0 in shape[1:] or min(shape) < 0:
        raise TableError(f"array {name!r} has shape {shape}; expected a vector or a matrix.")
    width = shape[1] if len(shape) == 2 else 1
    check_width(width)
    n_bytes = shape[0] * width * dtype.itemsize
    if by_columns and width > 1 and n_bytes > _MOST_BY_COLUMNS:
        raise TableError(
            f"array {name!r} is stored column by column and has {n_bytes:,} bytes; to find its rows all of it must be "
            f"held, of which there may be {_MOST_BY_COLUMNS:,}. Save `numpy.ascontiguousarray` of it."
        )
    return _Member(
        name, shape[0], width, by_columns and width > 1, dtype, _columns(name, shape, alone)
    )


def _columns(name: str, shape: tuple[int, ...], alone: bool) -> list[str]:
    matrix = alone or name == "X"
    if len(shape) == 1:
        return ["x0"] if matrix and name == "X" else [name]
    if matrix:
        return [f"x{index}" for index in range(shape[1])]
    return [name] if shape[1] == 1 else [f"{name.lower()}{index}" for index in range(shape[1])]


def _pieces(member: _Member, stream: Any, n_rows: int) -> Iterator[np.ndarray]:
    row_bytes = member.width * member.dtype.itemsize
    if member.by_columns:  # rows are spread over the whole array, so it is read at once
        whole = np.frombuffer(_exactly(stream, row_bytes * member.n_rows, member), member.dtype)
        matrix = whole.reshape(member.width, member.n_rows).T
        for start in range(0, member.n_rows, n_rows):
            yield matrix[start : start + n_rows]
        return
    for start in range(0, member.n_rows, n_rows):
        n = min(n_rows, member.n_rows - start)
        piece = _exactly(stream, row_bytes * n, member)
        yield np.frombuffer(piece, member.dtype).reshape(n, member.width)


def _exactly(stream: Any, n_bytes: int, member: _Member) -> bytes:
    pieces, missing = [], n_bytes
    while missing:
        piece = stream.read(min(missing, 1 << 24))  # the header may promise more than there is
        if not piece:
            raise TableError(
                f"array {member.name!r} ends early: {missing} bytes are missing. Write the file again."
            )
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def _to_arrow(values: np.ndarray) -> pa.Array:
    kind = values.dtype.kind
    if kind == "f" and values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    if kind in "mM" and np.datetime_data(values.dtype)[0] not in ("D", "s", "ms", "us", "ns"):
        values = values.astype(f"{kind}8[s]")
    if kind == "S":
        values = np.char.decode(values, "utf-8")
    if kind in "US":
        return pa.array(values.tolist(), pa.string())
    return pa.array(np.ascontiguousarray(values, values.dtype.newbyteorder("=")), from_pandas=True)
