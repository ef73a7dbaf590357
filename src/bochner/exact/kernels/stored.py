"""Kernels as JSON and back, each through the dictionary of the known ones."""

from typing import Any

from bochner.exact.kernels import KERNELS, AbstractKernel, Product, Sum
from bochner.exact.kernels.base import AbstractOfColumns
from bochner.exact.kernels.combined import DEEPEST, AbstractCombined
from bochner.exact.stored_arrays import object_of_kind, places_from
from bochner.system.saving import ModelFileError
from bochner.system.taking import taken

_COMBINED: dict[str, type[AbstractCombined]] = {"sum": Sum, "product": Product}
_FIELDS = {
    kind: {"columns", *made.names_of_options()} if issubclass(made, AbstractOfColumns) else set()
    for kind, made in KERNELS.items()
} | {kind: {"parts"} for kind in _COMBINED}
_MOST_COLUMNS, _LARGEST = 10_000, 1e150


def kernel_to_json(kernel: AbstractKernel) -> dict[str, Any]:
    """Give a kernel as plain values.

    Example:
        >>> from bochner.exact.kernels import Constant, Linear
        >>> from bochner.exact.kernels.stored import kernel_from_json, kernel_to_json
        >>> stored = kernel_to_json(Linear(0, 2) + Constant())
        >>> stored["parts"]
        [{'kind': 'linear', 'columns': [0, 2]}, {'kind': 'constant'}]
        >>> kernel_from_json(stored) == Linear(0, 2) + Constant()
        True
    """
    kind = type(kernel).__name__.lower()
    if kind not in _FIELDS:
        raise TypeError(f"kernels of type {type(kernel).__name__} cannot be stored.")
    if isinstance(kernel, AbstractCombined):
        return {"kind": kind, "parts": [kernel_to_json(part) for part in kernel.parts]}
    if not isinstance(kernel, AbstractOfColumns):
        return {"kind": kind}
    columns = None if kernel.columns is None else list(kernel.columns)
    return {"kind": kind, "columns": columns, **kernel.options}


def kernel_from_json(stored: Any) -> AbstractKernel:
    """Make a kernel from plain values, all of which are checked."""
    try:
        return _kernel_from(stored, DEEPEST)
    except ValueError as error:
        raise ModelFileError(f"a kernel is out of range: {error}") from error


def _kernel_from(stored: Any, depth: int) -> AbstractKernel:
    kind, stored = object_of_kind(stored, _FIELDS, "a kernel")
    if kind in _COMBINED:
        parts = taken(stored, "parts", list)
        if not depth:
            raise ModelFileError("its kernels are combined too deeply.")
        return _COMBINED[kind](tuple(_kernel_from(part, depth - 1) for part in parts))
    columns, options = [], {}
    if "columns" in stored and stored["columns"] is not None:
        taken(stored, "columns", list, lambda own: 0 < len(own) <= _MOST_COLUMNS, "one to many")
        columns = places_from(stored["columns"], 2**31, "the columns of a kernel")
    for name in _FIELDS[kind] - {"columns"}:
        if stored[name] is not None:
            taken(stored, name, (int, float), lambda v: abs(v) <= _LARGEST, "in range")
        options[name] = stored[name]
    return KERNELS[kind](*columns, **options)
