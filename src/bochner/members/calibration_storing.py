"""A calibration as named arrays and JSON, and back; on the way back every value is checked before it is used."""

import datetime
from typing import Any

import numpy as np

from bochner.fitting.task import AbstractTask
from bochner.members.calibration import MOST_ROWS, Calibration
from bochner.system.saving import ModelFileError
from bochner.system.taking import named, taken

_MOST_GROUPS, _LONGEST_NAME = 100_000, 1_000
_ARRAYS = {"scores": np.float64, "weights": np.float64, "group": np.int64}


def calibration_to_stored(
    calibration: Calibration | None,
) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    """Give a calibration as named arrays and plain values."""
    if calibration is None:
        return {}, None
    if len(calibration) > MOST_ROWS:
        raise ModelFileError(f"a model file can hold a calibration of at most {MOST_ROWS:,} rows.")
    arrays = {f"calibration.{name}": getattr(calibration, name) for name in _ARRAYS}
    names = None if calibration.names is None else list(calibration.names)
    return arrays, {"when": calibration.when, "names": names}


def calibration_from_stored(
    arrays: dict[str, np.ndarray], stored: Any, task: AbstractTask
) -> Calibration | None:
    """Take the arrays of a calibration out, and make it of them; None where there is none."""
    if stored is None:
        return None
    stored = named(stored, {"when", "names"}, "a calibration")
    scores = arrays.pop("calibration.scores", np.zeros(0))
    weights = arrays.pop("calibration.weights", np.zeros(0))
    group = arrays.pop("calibration.group", np.zeros(0, np.int64))
    n, names = len(scores), _names_from(stored["names"])
    _check("scores", scores, np.float64, (n, task.n_columns), ~np.isnan(scores))
    _check("weights", weights, np.float64, (n,), (weights > 0) & (weights <= 1))
    n_groups = 1 if names is None else len(names)
    _check("group", group, np.int64, (n,), (group >= 0) & (group < n_groups))
    if n > MOST_ROWS:
        raise ModelFileError(f"its calibration has {n:,} rows, more than {MOST_ROWS:,}.")
    when = taken(stored, "when", str, lambda v: len(v) < 100, "short")
    try:
        datetime.datetime.fromisoformat(when)
    except ValueError as error:
        raise ModelFileError(f"its calibration was made at no time: {when!r}.") from error
    return Calibration(scores, weights, group, names, when)


def _check(
    name: str, array: np.ndarray, dtype: type, shape: tuple[int, ...], in_range: np.ndarray
) -> None:
    if array.dtype != dtype or array.shape != shape or not np.all(in_range):
        raise ModelFileError(f"calibration.{name} does not hold {shape} numbers in range.")


def _names_from(stored: Any) -> tuple[str, ...] | None:
    if stored is None:
        return None
    if (
        not isinstance(stored, list)
        or not 0 < len(stored) <= _MOST_GROUPS
        or not all(isinstance(name, str) and len(name) <= _LONGEST_NAME for name in stored)
        or len(set(stored)) < len(stored)
    ):
        raise ModelFileError("the groups of its calibration are no list of different names.")
    return tuple(stored)
