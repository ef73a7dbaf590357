"""Values of estimators as plain JSON and back: parameters, classes, and checks of what a header holds."""

import math
import re
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from bochner.system.saving import ModelFileError

# They belong to one machine or one call; where a file is opened the device may not exist.
_NOT_STORED = {"device", "distributed", "checkpoint", "resume", "callbacks"}
_MOST_CLASS_CHARACTERS = 10_000_000
_CLASS_DTYPES = re.compile(r"str|object|bool|u?int(8|16|32|64)|float(16|32|64)")


def taken(
    values: Mapping[str, Any],
    name: str,
    kind: Any,
    holds: Callable[[Any], bool] = lambda value: True,
    what: str = "",
) -> Any:
    """Take a value of the right type for which something holds.

    Example:
        >>> from bochner.estimators.json_forms import taken
        >>> taken({"n": -1}, "n", int, lambda n: n > 0, "above 0")
        Traceback (most recent call last):
        bochner.system.saving.ModelFileError: 'n' must be above 0; got -1.
    """
    if name not in values:
        raise ModelFileError(f"it lacks {name!r}.")
    value = values[name]
    # A bool is an int to Python, and no number to us.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ModelFileError(f"{name!r} has the wrong type: {reprlib.repr(value)}.")
    if not holds(value):
        raise ModelFileError(f"{name!r} must be {what}; got {reprlib.repr(value)}.")
    return value


def classes_to_json(classes: np.ndarray) -> dict[str, Any]:
    """Give classes as JSON, after checking that they will come back.

    Example:
        >>> import numpy as np
        >>> from bochner.estimators.json_forms import classes_from, classes_to_json
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
    for name, value in estimator.get_params().items():
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
    unknown = stored.keys() - (kind().get_params().keys() - _NOT_STORED)
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
    if form == "dict" and isinstance(items, list):
        return {_parameter_from_json(k): _parameter_from_json(v) for k, v in items}
    raise ModelFileError(f"a parameter has an unknown form: {reprlib.repr(value)}.")


def judged_from(judged: dict[str, Any]) -> dict[str, Any]:
    """Give what a fit and simpler models are worth back, after checking it.

    Example:
        >>> from bochner.estimators.json_forms import judged_from
        >>> judged = {"model": -1.0, "constant": -2.0, "n_rows": 9, "rows": "held out", "predicts": "model"}
        >>> judged_from(judged) == judged
        True
    """
    densities = {"model": True, "constant": True, "linear": False}
    unknown = judged.keys() - {*densities, "n_rows", "rows", "predicts"}
    if unknown:
        raise ModelFileError(f"its judgement holds {listed(unknown)}.")
    for name, required in densities.items():
        if required or name in judged:
            taken(judged, name, float, math.isfinite, "finite")
    taken(judged, "n_rows", int, lambda n: n > 0, "above 0")
    taken(judged, "rows", str)
    taken(judged, "predicts", str, lambda name: name in judged and name in densities, "a model")
    return judged


def json_ready(value: Any) -> Any:
    """Give a value with NumPy's numbers as Python's, keys as text, and tuples as lists."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def listed(names: Any) -> str:
    """Name the first few of many."""
    first = sorted(map(str, names))[:5]
    return ", ".join(reprlib.repr(name) for name in first) + (", …" if len(names) > 5 else "")


def short(error: BaseException) -> str:
    """Say what went wrong in a line or two, whatever the error quotes."""
    text = str(error) or type(error).__name__
    return text if len(text) <= 200 else text[:200] + "…"
