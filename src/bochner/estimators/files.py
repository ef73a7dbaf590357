"""Estimators to model files and back; on the way back every value is checked before it is used.

`docs/model-file.md` describes the fields.
"""

import dataclasses
import functools
import math
import reprlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from bochner.estimators.base import BaseDeepGP
from bochner.estimators.classifier import DeepGPClassifier
from bochner.estimators.config import Config
from bochner.estimators.json_forms import (
    classes_from,
    classes_to_json,
    json_ready,
    judged_from,
    listed,
    parameters_from,
    short,
    stored_parameters,
    taken,
)
from bochner.estimators.recipes import PRESETS
from bochner.estimators.regressor import DeepGPRegressor
from bochner.rows.scaling import InputScaling, TargetScaling
from bochner.rows.table import Table
from bochner.system.saving import ModelFileError, read_arrays, write_arrays
from bochner.tables.encoding import Encoder
from bochner.training import Record
from bochner.training.checkpoints import named_arrays, named_leaves

KIND = "model"
"""What the header of a model file says it is."""

_ESTIMATORS: dict[str, type[BaseDeepGP]] = {
    "DeepGPRegressor": DeepGPRegressor,
    "DeepGPClassifier": DeepGPClassifier,
}
_PLAIN = ("n_features_in_", "n_steps_", "elbo_", "total_weight_", "trained_weight_", "history_")
_REQUIRED = {*_PLAIN, "kind", "estimator", "config", "parameters"}
_REQUIRED_OF_TASK = {
    "DeepGPRegressor": {"n_targets", "one_target"},
    "DeepGPClassifier": {"classes"},
}
_OPTIONAL = {
    "feature_names", "encoder", "target", "judged", "format_version", "bochner_version",
}  # fmt: skip
# What decides the names and shapes of the model's arrays.
_STRUCTURE = (
    "n_layers", "width", "n_random_features", "kernel", "ard", "frequencies", "omega", "feed_inputs",
    "likelihood", "residual", "objective", "calibration", "n_members", "theta", "theta_deviation",
)  # fmt: skip
_SCALING_NAMES = {
    f"{kind}.{field.name}"
    for kind, scaling in (("input", InputScaling), ("target", TargetScaling))
    for field in dataclasses.fields(scaling)
}
_CLIPPED_WITHOUT_A_CHOICE = 10
"""Layers from which on gradients were clipped before there was a setting."""

_MAY_BE_NONE = {"max_steps", "max_seconds"}
_LIMITS = {"n_layers": 1_000, "n_members": 1_000, "n_mc_predict": 100_000}
# Whatever a check has let through ends as an error about the file, and never as a crash.
_BUILDING_ERRORS = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError,
    MemoryError,
)  # fmt: skip
_SCALING = TypeVar("_SCALING", InputScaling, TargetScaling)


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
        >>> model = DeepGPRegressor(max_steps=10, random_state=0).fit(X, X[:, 0])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.bochner")
        >>> model.save(path)
        >>> bool(np.all(load(path).predict(X) == model.predict(X)))
        True
    """
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
        >>> from bochner import DeepGPRegressor
        >>> from bochner.estimators.files import from_parts, to_parts
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(max_steps=10, random_state=0).fit(X, X[:, 0])
        >>> arrays, header = to_parts(model)
        >>> header["kind"], header["estimator"], arrays["input.center"].shape
        ('model', 'DeepGPRegressor', (1,))
        >>> bool(np.all(from_parts(arrays, header).predict(X) == model.predict(X)))
        True
    """
    check_storable(estimator.config_)
    arrays = named_arrays("model", estimator.model_)
    for kind in ("input", "target"):
        scaling = getattr(estimator, f"_{kind}_scaling")
        for field in dataclasses.fields(scaling):
            arrays[f"{kind}.{field.name}"] = np.asarray(getattr(scaling, field.name), np.float64)
    header: dict[str, Any] = {name: getattr(estimator, name) for name in _PLAIN}
    header |= {
        "kind": KIND,
        "estimator": type(estimator).__name__,
        "config": estimator.config_,
        "parameters": stored_parameters(estimator),
    }
    if isinstance(estimator, DeepGPClassifier):
        header["classes"] = classes_to_json(estimator.classes_)
    if isinstance(estimator, DeepGPRegressor):
        header["n_targets"] = estimator.n_targets_
        header["one_target"] = bool(estimator._one_target)
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        header["feature_names"] = [str(name) for name in names]
    if hasattr(estimator, "judged_"):
        header["judged"] = estimator.judged_
    if estimator._encoder is not None:
        header["encoder"] = estimator._encoder.to_json()
    if estimator._target_name is not None:
        header["target"] = str(estimator._target_name)
    return arrays, json_ready(header)


def from_parts(arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> Any:
    """Build the estimator that `to_parts` took apart, or raise a `ModelFileError` that says what does not fit.

    In a checkpoint, what belongs to the training is left aside.
    """
    kind = header.get("kind")
    if kind not in (KIND, "checkpoint"):
        raise ModelFileError(f"it holds {reprlib.repr(kind)} and not a model.")
    if kind == "checkpoint":
        arrays = {name: a for name, a in arrays.items() if not name.startswith("training.")}
    try:
        return _rebuild(arrays, header)
    except ModelFileError:
        raise
    except _BUILDING_ERRORS as error:
        raise ModelFileError(f"it does not describe a model ({short(error)}).") from error


def _rebuild(arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> BaseDeepGP:
    name = taken(header, "estimator", str, lambda v: v in _ESTIMATORS, "a known estimator")
    _check_names(header, name)
    config = _config_from(header, _ESTIMATORS[name], sum(array.size for array in arrays.values()))
    estimator = _ESTIMATORS[name](**parameters_from(header, _ESTIMATORS[name]))
    estimator.config_ = dataclasses.asdict(config)
    _set_counts(estimator, header)
    estimator._input_scaling = _scaling_from(arrays, "input", InputScaling)
    estimator._target_scaling = _scaling_from(arrays, "target", TargetScaling)
    d_in, n_targets = len(estimator._input_scaling.center), len(estimator._target_scaling.center)
    _set_columns(estimator, header, d_in)
    n_classes = 0
    if isinstance(estimator, DeepGPClassifier):
        estimator.classes_ = classes_from(taken(header, "classes", dict))
        n_classes = len(estimator.classes_)
        if n_targets != 1 or (config.likelihood == "bernoulli" and n_classes != 2):
            raise ModelFileError(f"its likelihood does not fit {n_classes} classes.")
    if isinstance(estimator, DeepGPRegressor):
        estimator.n_targets_ = taken(
            header, "n_targets", int, lambda v: v == n_targets, f"{n_targets}"
        )
        estimator._one_target = taken(
            header, "one_target", bool, lambda v: n_targets == 1 or not v, "false for several"
        )
    estimator.model_ = _model_from(arrays, config, name, d_in, n_targets, n_classes)
    return estimator


def _check_names(header: Mapping[str, Any], name: str) -> None:
    required = _REQUIRED | _REQUIRED_OF_TASK[name]
    missing = required - header.keys()
    unknown = header.keys() - required - _OPTIONAL
    if missing:
        raise ModelFileError(f"it lacks {listed(missing)}.")
    if unknown and header["kind"] == KIND:
        raise ModelFileError(f"it holds {listed(unknown)}, which this version does not know.")


def _config_from(header: Mapping[str, Any], kind: type[BaseDeepGP], n_values: int) -> Config:
    values = _with_settings_added_later(taken(header, "config", dict))
    fields = {field.name for field in dataclasses.fields(Config)}
    if values.keys() != fields:
        raise ModelFileError(f"its configuration lacks or adds {listed(values.keys() ^ fields)}.")
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        if not all(_is_setting(item) for item in items) or (
            value is None and name not in _MAY_BE_NONE
        ):
            raise ModelFileError(f"its setting {name!r} has the wrong type: {reprlib.repr(value)}.")
    config = Config.checked(values, kind._likelihoods)
    if config.preset not in PRESETS or type(config.seed) is not int or not 0 <= config.seed < 2**32:
        raise ModelFileError("its preset or seed is out of range.")
    check_storable(values)
    for name in ("width", "n_random_features"):
        value = getattr(config, name)
        if max(value if isinstance(value, tuple) else (value,), default=0) > n_values:
            raise ModelFileError(f"its setting {name!r} asks for more than the file holds.")
    return config


def _with_settings_added_later(config: Mapping[str, Any]) -> dict[str, Any]:
    """Add settings that files of the same format may lack, with what was done before there was a choice."""
    n_layers = config.get("n_layers")
    many = isinstance(n_layers, int) and n_layers >= _CLIPPED_WITHOUT_A_CHOICE
    gradients = "clipped" if many else "exact"
    return {"precision": "float32", "calibration": "none", "gradients": gradients, **config}


def check_storable(parameters: Mapping[str, Any]) -> None:
    """Refuse settings that a model file cannot hold; those not chosen yet pass.

    Example:
        >>> from bochner.estimators.files import check_storable
        >>> check_storable({"n_mc_predict": 10**6})
        Traceback (most recent call last):
        bochner.system.saving.ModelFileError: a model file can hold n_mc_predict of at most 100,000.
    """
    for name, most in _LIMITS.items():
        value = parameters.get(name)
        if isinstance(value, int | np.integer) and value > most:
            raise ModelFileError(f"a model file can hold {name} of at most {most:,}.")


def _is_setting(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= 100
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _is_count(value: int) -> bool:
    return 0 <= value < 2**63


def _set_counts(estimator: BaseDeepGP, header: Mapping[str, Any]) -> None:
    estimator.n_steps_ = taken(header, "n_steps_", int, _is_count, "a count")
    estimator.elbo_ = taken(header, "elbo_", float)
    for name in ("total_weight_", "trained_weight_"):
        weight = taken(header, name, float, lambda v: 0 <= v < math.inf, "finite, not below 0")
        setattr(estimator, name, weight)
    estimator.history_ = [_record_from(record) for record in taken(header, "history_", list)]
    if "judged" in header:
        estimator.judged_ = judged_from(taken(header, "judged", dict))


def _record_from(record: Any) -> dict[str, Any]:
    fields = {field.name: field for field in dataclasses.fields(Record)}
    if not isinstance(record, dict) or not record.keys() <= fields.keys():
        raise ModelFileError(f"its history holds no record: {reprlib.repr(record)}.")
    for name, field in fields.items():
        if name in record or field.default is dataclasses.MISSING:
            taken(record, name, field.type)
    taken(record, "step", int, _is_count, "a count")
    return record


def _set_columns(estimator: BaseDeepGP, header: Mapping[str, Any], d_in: int) -> None:
    estimator.n_features_in_ = taken(
        header, "n_features_in_", int, lambda v: v == d_in, f"{d_in}, as the scaling has it"
    )
    if "feature_names" in header:
        names = taken(header, "feature_names", list)
        if not all(isinstance(name, str) for name in names):
            raise ModelFileError("its feature names are not all text.")
        if len(names) != estimator.n_features_in_:
            raise ModelFileError(
                f"it has {len(names)} names for {estimator.n_features_in_} features."
            )
        estimator.feature_names_in_ = np.array(names, dtype=object)  # pyright: ignore[reportAttributeAccessIssue]
    if "target" in header:
        estimator._target_name = taken(header, "target", str)
    if "encoder" in header:
        encoder = Encoder.from_json(taken(header, "encoder", dict))
        if len(encoder.feature_names) != d_in:
            raise ModelFileError(
                f"its encoding gives {len(encoder.feature_names)} columns where {d_in} are scaled."
            )
        estimator._encoder = encoder


_IN_RANGE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "center": np.isfinite,
    "scale": lambda scale: np.isfinite(scale) & (scale > 0),
    "knee": lambda knee: knee >= 0,
    "limit": lambda limit: limit > 0,
}
"""What the numbers of a scaling may be; no comparison holds for NaN."""


def _scaling_from(arrays: Mapping[str, np.ndarray], kind: str, scaling: type[_SCALING]) -> _SCALING:
    found: dict[str, np.ndarray] = {}
    for field in dataclasses.fields(scaling):
        name = f"{kind}.{field.name}"
        array = _array_of(arrays, name)
        if array.dtype != np.float64 or array.ndim != 1 or len(array) == 0:
            raise ModelFileError(f"{name} must be a vector of float64.")
        if not np.all(_IN_RANGE[field.name](array)):
            raise ModelFileError(f"{name} holds values out of range.")
        found[field.name] = array
    if len({len(array) for array in found.values()}) > 1:
        raise ModelFileError(f"the arrays of {kind!r} differ in length.")
    return scaling(**found)


def _model_from(
    arrays: Mapping[str, np.ndarray],
    config: Config,
    estimator: str,
    d_in: int,
    n_targets: int,
    n_classes: int,
) -> Any:
    empty = [name for name, array in arrays.items() if array.size == 0]
    if empty:
        raise ModelFileError(f"it holds empty arrays: {listed(empty)}.")
    # Compared first, since the time to build the structure grows with the number of layers.
    n_layers = _n_layers(arrays)
    if n_layers != config.n_layers:
        raise ModelFileError(f"it holds {n_layers} layers where {config.n_layers} are configured.")
    dtype = jax.dtypes.canonicalize_dtype(np.float64).name
    settings = tuple(getattr(config, name) for name in _STRUCTURE)
    names, leaves, structure = _structure(estimator, settings, d_in, n_targets, n_classes, dtype)
    other = arrays.keys() - _SCALING_NAMES - set(names)
    if other:
        raise ModelFileError(f"it holds arrays that do not belong to it: {listed(other)}.")
    values = [_leaf_from(arrays, *each) for each in zip(names, leaves, strict=True)]
    return jax.tree.unflatten(structure, values)


def _n_layers(arrays: Mapping[str, np.ndarray]) -> int:
    """Count the layers that the arrays describe; equal ones are stacked along a leading axis."""
    layers = 0
    for name, array in arrays.items():
        if name.endswith((".q_W.mean", ".q_W.q.mean", ".q_W.first.mean")):
            shape = array.shape[1:] if name.startswith("model.stacked") else array.shape
            layers += shape[0] if len(shape) == 3 else 1
    return layers


@functools.lru_cache(maxsize=64)
def _structure(
    estimator: str, settings: tuple, d_in: int, n_targets: int, n_classes: int, dtype: str
) -> tuple[list[str], list[Any], Any]:
    """Give names and shapes of a model's arrays, and the tree that they form, without any computation."""
    blank = _ESTIMATORS[estimator]()
    # The other settings decide values only.
    values: dict[str, Any] = {field.name: 1.0 for field in dataclasses.fields(Config)}
    values |= {"seed": 0, **dict(zip(_STRUCTURE, settings, strict=True))}
    config = Config(**values)
    blank.config_ = dataclasses.asdict(config)
    blank._target_scaling = TargetScaling.none(n_targets)
    if isinstance(blank, DeepGPClassifier):
        blank.classes_ = np.arange(n_classes)

    def build() -> Any:
        Y = np.zeros((1, n_targets))
        started = blank._start_model(config, d_in, Y)
        return blank._ready(config, Table.of(np.zeros((1, d_in)), Y), started)

    skeleton = jax.eval_shape(build)
    named = named_leaves(skeleton)
    return (
        [f"model{name}" for name, _ in named],
        [leaf for _, leaf in named],
        jax.tree.structure(skeleton),
    )


def _leaf_from(arrays: Mapping[str, np.ndarray], name: str, expected: Any) -> jax.Array:
    array = _array_of(arrays, name)
    if array.shape != expected.shape:
        raise ModelFileError(f"{name} has shape {array.shape} where {expected.shape} was expected.")
    if array.dtype not in (np.float32, np.float64):
        raise ModelFileError(f"{name} holds {array.dtype} where floats were expected.")
    with np.errstate(over="ignore"):
        array = array.astype(expected.dtype, copy=False)
    if not np.all(np.isfinite(array)):
        raise ModelFileError(f"{name} holds values that are not finite.")
    return jnp.asarray(array)


def _array_of(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    if name not in arrays:
        raise ModelFileError(f"it lacks part of a model, {name}.")
    return arrays[name]
