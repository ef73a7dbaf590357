"""Model files: arrays and a JSON header in one safetensors file, written atomically and checked on reading.

`docs/model-file.md` describes the format.
"""

import dataclasses
import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bochner.system.destination import Destination
from bochner.version import __version__

FORMAT_VERSION = 2
_HEADER, _DIGEST = "bochner", "digest"
LONGEST_HEAD = 32_000_000
"""Bytes of names and settings that a file may have."""
LARGEST_FILE = 2**32
"""Bytes that a file may have."""
_MOST_ARRAYS, _MOST_AXES = 100_000, 8
_PIECE = 1 << 20
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_REMEDY = "Use a backup, or save the model again."
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# What a parser may raise on hostile bytes, beside its own errors.
_PARSING_ERRORS = (ValueError, TypeError, KeyError, OverflowError, RecursionError, MemoryError)


class ModelFileError(ValueError):
    """A file that cannot be opened as a model: foreign, damaged, or written by a newer version."""


def write_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
) -> None:
    """Write arrays and a JSON header to a file, so that at any moment the path holds a whole file or the old one.

    Example:
        >>> import numpy as np, tempfile, os
        >>> from bochner.system.saving import read_arrays, write_arrays
        >>> path = os.path.join(tempfile.mkdtemp(), "model.bochner")
        >>> write_arrays(path, {"a": np.arange(3.0)}, {"kind": "example"})
        >>> arrays, header = read_arrays(path)
        >>> arrays["a"].tolist(), header["kind"]
        ([0.0, 1.0, 2.0], 'example')
    """
    replace_file(path, format_arrays(arrays, header))


def replace_file(path: str | Path, content: bytes) -> None:
    """Write a file so that at any moment the path holds it whole, or what was there before.

    Example:
        >>> import os, tempfile
        >>> from bochner.system.saving import replace_file
        >>> path = os.path.join(tempfile.mkdtemp(), "folder", "notes.txt")
        >>> replace_file(path, b"something")
        >>> open(path).read()
        'something'
    """
    destination = Destination(path)
    with destination.open() as file, destination.errors_in_words():
        file.write(content)


def read_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `write_arrays` wrote; anything else gets a `ModelFileError` that says why."""
    path = Path(path)
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder; give the name of a model file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no model file at {path}.")
    if not path.is_file():
        raise ModelFileError(f"{path} is not a regular file, so it is not a model file.")
    try:
        with path.open("rb") as file:
            return _parse(file, os.fstat(file.fileno()).st_size, str(path))
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read ({error.strerror or error}).") from error


def format_arrays(arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> bytes:
    """Give the bytes of a file of arrays with a JSON header; the versions of format and library are added to it.

    Example:
        >>> import numpy as np
        >>> from bochner.system.saving import format_arrays, parse_arrays
        >>> content = format_arrays({"a": np.zeros(2)}, {"kind": "example"})
        >>> parse_arrays(content, "example")[1]["format_version"]
        2
    """
    ordered = {name: _storable(name, array) for name, array in arrays.items()}
    full = {**header, "format_version": FORMAT_VERSION, "bochner_version": __version__}
    text = json.dumps(_encoded(full), sort_keys=True, allow_nan=False)
    return pack(ordered, text)


def pack(arrays: Mapping[str, np.ndarray], text: str) -> bytes:
    """Give the bytes of a safetensors file with a header and a digest; the same contents give the same bytes.

    Example:
        >>> import numpy as np
        >>> from safetensors.numpy import load
        >>> from bochner.system.saving import pack
        >>> load(pack({"a": np.arange(2.0)}, "{}"))["a"].tolist()
        [0.0, 1.0]
    """
    head: dict[str, Any] = {"__metadata__": {_HEADER: text, _DIGEST: digest(arrays, text)}}
    # Large numbers first, so that each array begins at a multiple of their size.
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    end = 0
    for name in order:
        array, start = arrays[name], end
        end += array.nbytes
        kind = _NAMES[array.dtype.str]
        head[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, end]}
    packed = json.dumps(head, separators=(",", ":")).encode()
    packed += b" " * (-len(packed) % 8)
    if len(packed) > LONGEST_HEAD or 8 + len(packed) + end > LARGEST_FILE:
        raise ValueError(
            f"the model is too large for a file: {len(packed):,} bytes of names and settings, of which there may be "
            f"{LONGEST_HEAD:,}, and {end:,} bytes of arrays, {LARGEST_FILE:,} in all. Fit fewer columns, or members "
            "with fewer rows."
        )
    blocks = [arrays[name].tobytes() for name in order]
    return b"".join([len(packed).to_bytes(8, "little"), packed, *blocks])


def parse_arrays(content: bytes, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Give arrays and header from the bytes of a file; `name` stands for the file in errors.

    Example:
        >>> from bochner.system.saving import parse_arrays
        >>> parse_arrays(b"something else", "notes.txt")
        Traceback (most recent call last):
        bochner.system.saving.ModelFileError: notes.txt is not a model file, or it is damaged: its head is incomplete.
    """
    return _parse(io.BytesIO(content), len(content), name)


def digest(arrays: Mapping[str, np.ndarray], text: str) -> str:
    """Compute the SHA-256 of the header's text and of each array's name, type, shape and bytes, in order of names.

    Example:
        >>> import numpy as np
        >>> from bochner.system.saving import digest
        >>> digest({"a": np.zeros(2)}, "{}") == digest({"a": np.zeros(2, np.float32)}, "{}")
        False
    """
    whole = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        whole.update(_line_of(name, array.dtype.str, array.shape))
        whole.update(array.tobytes())
    return whole.hexdigest()


def _line_of(name: str, dtype: str, shape: Sequence[int]) -> bytes:
    return f"\n{json.dumps([name, dtype, list(shape)])}\n".encode()


def _parse(file: BinaryIO, size: int, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    head = file.read(8)
    n_head = int.from_bytes(head, "little")
    if len(head) < 8 or n_head > size - 8:
        raise ModelFileError(
            f"{name} is not a model file, or it is damaged: its head is incomplete."
        )
    if n_head > LONGEST_HEAD:
        raise ModelFileError(
            f"{name} is not a model file: those have heads of up to {LONGEST_HEAD:,} bytes; it has {n_head:,}."
        )
    # Checked before the arrays are read, so that a large foreign file is refused at once.
    text, expected, views = _checked_head(file.read(n_head), size, name)
    if _digest_of_file(file, 8 + n_head, views, text) != expected:
        raise ModelFileError(
            f"{name} is damaged: its contents do not match their digest. {_REMEDY}"
        )
    file.seek(8 + n_head)
    return {view.name: _array(file, view, name) for view in views}, _header(text, name)


@dataclasses.dataclass(frozen=True)
class _View:
    """Where an array lies, counted from the end of the head."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @classmethod
    def of(cls, name: str, found: Any) -> "_View":
        if found.keys() != {"dtype", "shape", "data_offsets"} or found["dtype"] not in _DTYPES:
            raise ValueError(f"{_short(name)} is no array of a known type")
        dtype, shape, places = _DTYPES[found["dtype"]], found["shape"], found["data_offsets"]
        numbers = [*shape, *places]
        if len(shape) > _MOST_AXES or len(places) != 2 or any(type(n) is not int for n in numbers):
            raise ValueError(f"{_short(name)} has an odd shape or place")
        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if min(numbers) < 0 or max(shape, default=0) >= 2**63 or places[1] - places[0] != n_bytes:
            raise ValueError(f"the shape of {_short(name)} does not fit its place")
        return cls(name, dtype, tuple(shape), *places)


def _checked_head(head: bytes, size: int, name: str) -> tuple[str, str, list[_View]]:
    """Give the text of the header, the digest and the arrays' places, in their order, from the head of a file."""
    try:
        parsed = json.loads(head, parse_constant=_refuse, object_pairs_hook=_without_repetition)
        metadata = parsed.pop("__metadata__", {})
        text, expected = metadata.get(_HEADER), metadata.get(_DIGEST)
        if len(parsed) > _MOST_ARRAYS:
            raise ValueError(f"{len(parsed):,} arrays are more than {_MOST_ARRAYS:,}")
        views = sorted(
            (_View.of(key, view) for key, view in parsed.items()),
            key=lambda view: (view.start, view.end),
        )
    except (*_PARSING_ERRORS, AttributeError, IndexError) as error:
        raise ModelFileError(
            f"{name} is not a model file, or it is damaged ({_short(error)})."
        ) from error
    if text is None:
        raise ModelFileError(f"{name} is a safetensors file, but not one of bochner's models.")
    if size > LARGEST_FILE:
        raise ModelFileError(
            f"{name} is not a model file: those have up to {LARGEST_FILE:,} bytes; it has {size:,}."
        )
    ends = [0, *(view.end for view in views)]
    if [view.start for view in views] != ends[:-1]:
        raise ModelFileError(f"{name} is damaged: its arrays do not follow each other. {_REMEDY}")
    if 8 + len(head) + ends[-1] != size:
        raise ModelFileError(
            f"{name} is damaged: it has {size:,} bytes, and its head says {8 + len(head) + ends[-1]:,}. {_REMEDY}"
        )
    if not isinstance(text, str) or not text.isascii() or not isinstance(expected, str):
        raise ModelFileError(f"{name} is damaged: its header or digest is no text. {_REMEDY}")
    return text, expected, views


def _digest_of_file(file: BinaryIO, start: int, views: Sequence[_View], text: str) -> str:
    """Compute the digest a piece at a time, before there is memory for the arrays."""
    whole = hashlib.sha256(text.encode())
    for view in sorted(views, key=lambda view: view.name):
        whole.update(_line_of(view.name, view.dtype, view.shape))
        file.seek(start + view.start)
        for place in range(view.start, view.end, _PIECE):
            whole.update(file.read(min(_PIECE, view.end - place)))
    return whole.hexdigest()


def _array(file: BinaryIO, view: _View, name: str) -> np.ndarray:
    array = np.frombuffer(file.read(view.end - view.start), view.dtype)
    if view.dtype == "|b1" and not np.all(array.view(np.uint8) <= 1):
        raise ModelFileError(f"{name} is damaged: a flag is neither 0 nor 1. {_REMEDY}")
    return array.reshape(view.shape)


def _without_repetition(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _header(text: str, name: str) -> dict[str, Any]:
    try:
        header = json.loads(text, parse_constant=_refuse, object_pairs_hook=_decoded)
    except _PARSING_ERRORS as error:
        raise ModelFileError(
            f"{name} is damaged: its header is no JSON ({_short(error)})."
        ) from error
    found = header.get("format_version") if isinstance(header, dict) else None
    if type(found) is not int or found < 1 or not isinstance(header.get("bochner_version"), str):
        raise ModelFileError(f"{name} is damaged: its header names no versions.")
    if found > FORMAT_VERSION:
        raise ModelFileError(
            f"{name} was written by bochner {header['bochner_version'][:20]}, whose file format {found} this version "
            f"({__version__}) does not know. Upgrade bochner."
        )
    return header


def _storable(name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array, order="C")
    little = array.dtype.newbyteorder("<")
    if little.str not in _NAMES:
        raise TypeError(f"arrays of type {array.dtype} cannot be stored; {name} is one.")
    return array.astype(little, copy=False)


def _encoded(value: Any) -> Any:
    """Put numbers that JSON does not have into words."""
    if isinstance(value, Mapping):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(float(value))}
    return value


def _decoded(pairs: Iterable[tuple[str, Any]]) -> Any:
    value = _without_repetition(list(pairs))
    if value.keys() == {"$float"}:
        return _NONFINITE[value["$float"]]
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _short(what: Any) -> str:
    text = str(what) or type(what).__name__
    return text if len(text) <= 200 else text[:200] + "…"
