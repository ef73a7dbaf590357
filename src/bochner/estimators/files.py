"""Estimators to model files and back; `docs/model-file.md` describes the fields."""

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bochner.estimators.base import BaseDeepGP
from bochner.estimators.classifier import DeepGPClassifier
from bochner.estimators.first_format import is_of_first_format, of_second_format
from bochner.estimators.regressor import DeepGPRegressor
from bochner.estimators.stored_parameters import parameters_from, stored_parameters
from bochner.fitting.json_forms import json_ready, short
from bochner.members.storing import fitted_from_stored, fitted_to_stored
from bochner.system.compiled_programs import keep_compiled_programs
from bochner.system.saving import ModelFileError, read_arrays, write_arrays
from bochner.system.taking import listed, taken

KIND = "model"
"""What the header of a model file says it is."""

ESTIMATORS: dict[str, type[BaseDeepGP]] = {
    "DeepGPRegressor": DeepGPRegressor,
    "DeepGPClassifier": DeepGPClassifier,
}
_REQUIRED = {"kind", "estimator", "parameters", "fitted"}
_OPTIONAL = {"format_version", "bochner_version"}
# Whatever a check has let through ends as an error about the file, and never as a crash.
_BUILDING_ERRORS = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError,
    MemoryError, AssertionError,
)  # fmt: skip


def save(estimator: BaseDeepGP, path: str | Path) -> None:
    """Write a fitted estimator to one file."""
    write_arrays(path, *to_parts(estimator))


def load(path: str | Path) -> Any:
    """Open a model file; predictions are bit-equal to those of the saved model on the same machine.

    A file that is foreign, damaged, truncated or of a newer format gives a `ModelFileError`, and none is executed.

    Args:
        path: a file written by `save`.

    Example:
        >>> import numpy as np, os, tempfile
        >>> from bochner import DeepGPRegressor, load
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(random_state=0).fit(X, X[:, 0])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.bochner")
        >>> model.save(path)
        >>> bool(np.all(load(path).predict(X) == model.predict(X)))
        True
    """
    keep_compiled_programs()
    arrays, header = read_arrays(path)
    if header.get("kind") == "checkpoint":
        raise ModelFileError(
            f"{path} is a checkpoint of a training, not a model: go on with the training by `resume`, and save its "
            "model."
        )
    try:
        return from_parts(arrays, header)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be opened: {error}") from error


def to_parts(estimator: BaseDeepGP) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Give all of a fitted estimator as named arrays and a header of plain JSON.

    Example:
        >>> import numpy as np
        >>> from bochner import Deep, DeepGPRegressor
        >>> from bochner.estimators.files import from_parts, to_parts
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(Deep(max_steps=10), random_state=0).fit(X, X[:, 0])
        >>> arrays, header = to_parts(model)
        >>> header["kind"], header["estimator"], arrays["input.center"].shape
        ('model', 'DeepGPRegressor', (1,))
        >>> bool(np.all(from_parts(arrays, header).predict(X) == model.predict(X)))
        True
    """
    arrays, fitted = fitted_to_stored(estimator.fitted_)
    header = {
        "kind": KIND,
        "estimator": type(estimator).__name__,
        "parameters": stored_parameters(estimator),
        "fitted": fitted,
    }
    return arrays, json_ready(header)


def from_parts(arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> Any:
    """Build the estimator that `to_parts` took apart, or raise a `ModelFileError` that says what does not fit."""
    kind = header.get("kind")
    if kind != KIND:
        raise ModelFileError(f"it holds {reprlib.repr(kind)} and not a model.")
    try:
        if is_of_first_format(header):
            header = of_second_format(header)
        return _rebuild(arrays, header)
    except ModelFileError:
        raise
    except _BUILDING_ERRORS as error:
        raise ModelFileError(f"it does not describe a model ({short(error)}).") from error


def _rebuild(arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> BaseDeepGP:
    missing, unknown = _REQUIRED - header.keys(), header.keys() - _REQUIRED - _OPTIONAL
    if missing:
        raise ModelFileError(f"it lacks {listed(missing)}.")
    if unknown:
        raise ModelFileError(f"it holds {listed(unknown)}, which this version does not know.")
    name = taken(header, "estimator", str, lambda v: v in ESTIMATORS, "a known estimator")
    estimator = ESTIMATORS[name](**parameters_from(header, ESTIMATORS[name]))
    fitted = fitted_from_stored(arrays, taken(header, "fitted", dict))
    if fitted.task.classification != isinstance(estimator, DeepGPClassifier):
        raise ModelFileError("its estimator does not fit its task.")
    estimator.fitted_ = fitted
    estimator.n_features_in_ = fitted.n_columns
    if fitted.names is not None:
        estimator.feature_names_in_ = np.array(fitted.names, dtype=object)  # pyright: ignore[reportAttributeAccessIssue]
    return estimator
