"""Model files: arrays and a JSON header in one safetensors file, written atomically and checked on reading."""

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from bochner.version import __version__

FORMAT_VERSION = 1
_HEADER = "bochner"


class ModelFileError(ValueError):
    """A file that cannot be opened as a model: foreign, damaged, or written by a newer version."""


def write_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
) -> None:
    """Write arrays and a JSON header to a file, so that at any moment the path holds a whole file or the old one.

    Example:
        >>> import numpy as np, tempfile, os
        >>> from bochner.saving import read_arrays, write_arrays
        >>> path = os.path.join(tempfile.mkdtemp(), "model.bochner")
        >>> write_arrays(path, {"a": np.arange(3.0)}, {"kind": "example"})
        >>> arrays, header = read_arrays(path)
        >>> arrays["a"].tolist(), header["kind"]
        ([0.0, 1.0, 2.0], 'example')
    """
    path = Path(path)
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    full = {**header, "format_version": FORMAT_VERSION, "bochner_version": __version__}
    text = json.dumps(full, sort_keys=True, allow_nan=True)
    metadata = {_HEADER: text, "digest": _digest(contiguous, text)}
    content = to_bytes(contiguous, metadata=metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `write_arrays` wrote; anything else gets a `ModelFileError` that says why."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file at {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            names = file.keys()
            arrays = {name: file.get_tensor(name) for name in names} if _HEADER in metadata else {}
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise ModelFileError(
            f"{path} is not a model file, or it is damaged ({error}). Fit and save the model again."
        ) from error
    if _HEADER not in metadata:
        raise ModelFileError(f"{path} is a safetensors file, but not one of bochner's models.")
    text = metadata[_HEADER]
    if metadata.get("digest") != _digest(arrays, text):
        raise ModelFileError(
            f"{path} is damaged: its contents do not match their checksum. Use a backup, or save the model again."
        )
    header = json.loads(text)
    if header["format_version"] > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by bochner {header['bochner_version']}, whose file format "
            f"{header['format_version']} this version ({__version__}) does not know. Upgrade bochner."
        )
    return arrays, header


def _digest(arrays: Mapping[str, np.ndarray], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
