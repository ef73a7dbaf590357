"""Transforms and tails as JSON and back, each through a dictionary of the known ones."""

from typing import Any

import numpy as np

from bochner.exact.stored_arrays import object_of_kind
from bochner.exact.tails import Tails
from bochner.exact.transforms import AbstractTransform, Log, Standardized, YeoJohnson
from bochner.system.saving import ModelFileError
from bochner.system.taking import named, taken

_FIELDS_OF_TRANSFORMS = {
    "standardized": {"center", "scale"},
    "log": {"after"},
    "yeo-johnson": {"before", "power", "after"},
}
_LARGEST = 1e150


def transform_to_json(transform: AbstractTransform) -> dict[str, Any]:
    """Give a transform as plain values.

    Example:
        >>> from bochner.exact.stored_values import transform_from_json, transform_to_json
        >>> from bochner.exact.transforms import Standardized
        >>> stored = transform_to_json(Standardized(1.0, 2.0))
        >>> stored, transform_from_json(stored)
        ({'kind': 'standardized', 'center': 1.0, 'scale': 2.0}, Standardized(center=1.0, scale=2.0))
    """
    match transform:
        case Standardized(center, scale):
            return {"kind": "standardized", "center": float(center), "scale": float(scale)}
        case Log(after):
            return {"kind": "log", "after": transform_to_json(after)}
        case YeoJohnson(before, power, after):
            return {
                "kind": "yeo-johnson",
                "before": transform_to_json(before),
                "power": float(power),
                "after": transform_to_json(after),
            }
    raise TypeError(f"transforms of type {type(transform).__name__} cannot be stored.")


def transform_from_json(stored: Any) -> AbstractTransform:
    """Make a transform from plain values, all of which are checked."""
    kind, stored = object_of_kind(stored, _FIELDS_OF_TRANSFORMS, "a transform")
    if kind == "standardized":
        return _standardized_from(stored)
    after = _standardized_from(stored["after"])
    if kind == "log":
        return Log(after)
    return YeoJohnson(
        _standardized_from(stored["before"]), number_from(stored, "power", 0.0, 2.0), after
    )


def _standardized_from(stored: Any) -> Standardized:
    kind, stored = object_of_kind(stored, _FIELDS_OF_TRANSFORMS, "a transform")
    if kind != "standardized":
        raise ModelFileError("a transform has another one inside than it should.")
    return Standardized(
        number_from(stored, "center", -_LARGEST, _LARGEST),
        number_from(stored, "scale", 1e-300, _LARGEST),
    )


def tails_to_json(tails: Tails) -> dict[str, Any]:
    """Give tails as plain values; no degrees for normal ones.

    Example:
        >>> from bochner.exact.stored_values import tails_from_json, tails_to_json
        >>> from bochner.exact.tails import Tails
        >>> tails_to_json(Tails()), tails_from_json(tails_to_json(Tails(4.0, 0.9)))
        ({'degrees': None, 'factor': 1.0}, Tails(degrees=4.0, factor=0.9))
    """
    degrees = None if np.isinf(tails.degrees) else float(tails.degrees)
    return {"degrees": degrees, "factor": float(tails.factor)}


def tails_from_json(stored: Any) -> Tails:
    """Make tails from plain values, all of which are checked."""
    stored = named(stored, {"degrees", "factor"}, "tails")
    # Below two degrees there is no variance.
    degrees = np.inf if stored["degrees"] is None else number_from(stored, "degrees", 2.01, 1e6)
    return Tails(degrees, number_from(stored, "factor", 1e-6, 1e6))


def number_from(stored: dict[str, Any], name: str, low: float, high: float) -> float:
    """Take a number between bounds."""
    found = taken(
        stored, name, (int, float), lambda v: low <= v <= high, f"between {low:g} and {high:g}"
    )
    return float(found)
