"""Classes as plain JSON and back, and other values made ready for it."""

import re
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bochner.system.saving import ModelFileError
from bochner.system.taking import taken

_MOST_CLASS_CHARACTERS = 10_000_000
_CLASS_DTYPES = re.compile(r"str|object|bool|u?int(8|16|32|64)|float(16|32|64)")


def classes_to_json(classes: np.ndarray) -> dict[str, Any]:
    """Give classes as JSON, after checking that they will come back.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.json_forms import classes_from, classes_to_json
        >>> classes_to_json(np.array(["no", "yes"]))
        {'dtype': 'str', 'values': ['no', 'yes']}
        >>> classes_from({"dtype": "int8", "values": [3, 5]}).dtype
        dtype('int8')
    """
    dtype = "str" if classes.dtype.kind == "U" else classes.dtype.name
    stored = {"dtype": dtype, "values": classes.tolist()}
    classes_from(json_ready(stored))
    return stored


def classes_from(classes: dict[str, Any]) -> np.ndarray:
    """Give the classes back: of one type, in order, each once."""
    dtype = taken(
        classes, "dtype", str, lambda v: _CLASS_DTYPES.fullmatch(v) is not None, "a type of classes"
    )
    values = taken(classes, "values", list, lambda v: len(v) >= 2, "two classes or more")
    kinds = {type(value) for value in values}
    allowed = {"str": {str}, "bool": {bool}, "object": {str, bool, int, float}}
    if len(kinds) > 1 or not kinds <= allowed.get(dtype, {float if "float" in dtype else int}):
        raise ModelFileError(f"its classes are not all of type {dtype!r}: {reprlib.repr(values)}.")
    if kinds == {str} and len(values) * max(map(len, values)) > _MOST_CLASS_CHARACTERS:
        raise ModelFileError("the names of its classes are too long.")
    found = np.array(values, dtype=dtype)
    if not np.all(found[:-1] < found[1:]):
        raise ModelFileError("its classes are not in order, each once.")
    return found


def json_ready(value: Any) -> Any:
    """Give a value with NumPy's numbers as Python's, keys as text, and tuples as lists."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def short(error: BaseException) -> str:
    """Say what went wrong in a line or two, whatever the error quotes."""
    text = str(error) or type(error).__name__
    return text if len(text) <= 200 else text[:200] + "…"
