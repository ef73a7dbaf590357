"""Parameters of estimators as plain JSON, and back."""

import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from bochner.exact.kernels import AbstractKernel
from bochner.members.kinds import SETTINGS
from bochner.system.saving import ModelFileError
from bochner.system.taking import listed, taken

_MEMBERS = {kind.__name__: kind for kind in SETTINGS.values()}
# They belong to one machine or one call; where a file is opened the device may not exist.
_NOT_STORED = {"device", "distributed", "checkpoint", "resume", "callbacks"}


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
