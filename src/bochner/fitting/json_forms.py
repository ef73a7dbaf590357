"""Values of estimators as plain JSON and back: parameters, classes, and checks of what a header holds."""

import re
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from bochner.exact.kernels import AbstractKernel
from bochner.fitting.kinds import Constant, Exact, Landmarks, Linear
from bochner.fitting.settings import Deep
from bochner.system.saving import ModelFileError
from bochner.system.taking import listed, taken

_MEMBERS: dict[str, type[BaseEstimator]] = {
    kind.__name__: kind for kind in (Constant, Deep, Exact, Landmarks, Linear)
}
# They belong to one machine or one call; where a file is opened the device may not exist.
_NOT_STORED = {"device", "distributed", "checkpoint", "resume", "callbacks"}
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


def stored_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Give the constructor's parameters that can be stored; others, such as random generators, are left out."""
    stored = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in _NOT_STORED:
            continue
        try:
            stored[name] = _parameter_to_json(value)
        except TypeError:
            continue
    return stored


def parameters_from(header: Mapping[str, Any], kind: type[BaseEstimator]) -> dict[str, Any]:
    """Give the arguments of an estimator's constructor back; their values are checked when they are used, in `fit`."""
    stored = taken(header, "parameters", dict)
    unknown = stored.keys() - (kind().get_params(deep=False).keys() - _NOT_STORED)
    if unknown:
        raise ModelFileError(f"it holds parameters that are not known: {listed(unknown)}.")
    return {name: _parameter_from_json(value) for name, value in stored.items()}


def _parameter_to_json(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return _parameter_to_json(value.tolist())
    if isinstance(value, tuple):
        return {"tuple": [_parameter_to_json(item) for item in value]}
    if isinstance(value, list):
        return [_parameter_to_json(item) for item in value]
    if isinstance(value, dict):
        pairs = value.items()
        return {"dict": [[_parameter_to_json(k), _parameter_to_json(v)] for k, v in pairs]}
    if type(value) in _MEMBERS.values():
        return {"member": [type(value).__name__, _parameter_to_json(value.get_params())]}
    if isinstance(value, AbstractKernel):
        return str(value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{type(value)} cannot be stored")


def _parameter_from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_parameter_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((form, items),) = value.items()
    if form == "tuple" and isinstance(items, list):
        return tuple(_parameter_from_json(item) for item in items)
    if form == "member" and isinstance(items, list) and len(items) == 2:
        name, settings = items[0], _parameter_from_json(items[1])
        if not isinstance(name, str) or name not in _MEMBERS or not isinstance(settings, dict):
            raise ModelFileError(f"a member is unknown: {reprlib.repr(name)}.")
        return _MEMBERS[name](**settings)
    if form == "dict" and isinstance(items, list):
        return {_parameter_from_json(k): _parameter_from_json(v) for k, v in items}
    raise ModelFileError(f"a parameter has an unknown form: {reprlib.repr(value)}.")


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
