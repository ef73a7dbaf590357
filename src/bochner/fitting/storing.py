"""A fitted deep model as named arrays and JSON, and back; on the way back every value is checked before it is used."""

import dataclasses
import functools
import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from bochner.fitting.config import Config
from bochner.fitting.declared import declared
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.recipes import PRESETS
from bochner.fitting.spec import ModelSpec
from bochner.fitting.task import AbstractTask
from bochner.rows.scaling import InputScaling, TargetScaling
from bochner.system.forks import refuse_after_fork
from bochner.system.saving import ModelFileError
from bochner.system.taking import listed, taken
from bochner.training.checkpoints import named_arrays, named_leaves
from bochner.training.progress import checked_record

FIELDS = {"config", "n_steps", "elbo", "total_weight", "trained_weight", "history"}
"""What the JSON of a deep model has."""

# What decides the names and shapes of the model's arrays.
_STRUCTURE = (
    "n_layers", "width", "n_random_features", "kernel", "ard", "frequencies", "omega", "feed_inputs",
    "likelihood", "residual", "objective", "calibration", "n_members", "theta", "theta_deviation",
)  # fmt: skip
_ADDED_LATER = {
    name: field.metadata["older"]
    for name, field in declared().items()
    if field.metadata["older"] is not None
}
_SCALING_NAMES = {
    f"{kind}.{field.name}"
    for kind, scaling in (("input", InputScaling), ("target", TargetScaling))
    for field in dataclasses.fields(scaling)
    if field.name != "effects"
}
_CLIPPED_WITHOUT_A_CHOICE = 10
"""Layers from which on gradients were clipped before there was a setting."""

_MAY_BE_NONE = {"max_steps", "max_seconds"}
_HARMLESS = 10_000
_LIMITS = {"n_layers": 1_000, "n_members": 1_000, "n_mc_predict": 100_000}
_EFFECTS = "input.effects."
_SCALING = TypeVar("_SCALING", InputScaling, TargetScaling)


def deep_to_stored(fit: DeepFit) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Give a fitted deep model as named arrays and plain values."""
    config = dataclasses.asdict(fit.config)
    check_storable(config)
    arrays = named_arrays("model", fit.model)
    for kind, scaling in (("input", fit.input_scaling), ("target", fit.target_scaling)):
        for name in _fields(type(scaling)):
            arrays[f"{kind}.{name}"] = np.asarray(getattr(scaling, name), np.float64)
    for place, table in fit.input_scaling.effects.items():
        arrays[f"{_EFFECTS}{place}"] = np.ascontiguousarray(table[0])  # folds are for the fit alone
    described = {
        "config": config,
        "n_steps": fit.n_steps,
        "elbo": fit.elbo,
        "total_weight": fit.total_weight,
        "trained_weight": fit.trained_weight,
        "history": list(fit.history),
    }
    return arrays, described


def deep_from_stored(
    arrays: Mapping[str, np.ndarray], stored: Mapping[str, Any], task: AbstractTask
) -> DeepFit:
    """Make the model that `deep_to_stored` took apart, or raise a `ModelFileError` that says what does not fit."""
    refuse_after_fork()
    if stored.keys() != FIELDS:
        raise ModelFileError(f"a deep model lacks or adds {listed(stored.keys() ^ FIELDS)}.")
    config = _config_from(stored, task, sum(array.size for array in arrays.values()))
    try:
        task.check_likelihood(config.likelihood)
    except ValueError as error:
        raise ModelFileError(f"its likelihood does not fit its task: {error}") from error
    input_scaling = _scaling_from(arrays, "input", InputScaling)
    effects = _effects_from(arrays, len(input_scaling.center))
    input_scaling = dataclasses.replace(input_scaling, effects=effects)
    target_scaling = _scaling_from(arrays, "target", TargetScaling)
    if len(target_scaling.center) != task.n_columns:
        raise ModelFileError(
            f"it scales {len(target_scaling.center)} targets where there are {task.n_columns}."
        )
    weights = {
        name: taken(stored, name, float, lambda v: 0 <= v < math.inf, "finite, not below 0")
        for name in ("total_weight", "trained_weight")
    }
    spec = ModelSpec(config, len(input_scaling.center), task.n_outputs)
    return DeepFit(
        config=config,
        task=task,
        input_scaling=input_scaling,
        target_scaling=target_scaling,
        model=_model_from(arrays, spec),
        history=tuple(checked_record(record) for record in taken(stored, "history", list)),
        n_steps=taken(stored, "n_steps", int, _is_count, "a count"),
        elbo=taken(stored, "elbo", float),
        **weights,
    )


def check_storable(parameters: Mapping[str, Any]) -> None:
    """Refuse settings that a model file cannot hold; those not chosen yet pass.

    Example:
        >>> from bochner.fitting.storing import check_storable
        >>> check_storable({"n_mc_predict": 10**6})
        Traceback (most recent call last):
        bochner.system.saving.ModelFileError: a model file can hold n_mc_predict of at most 100,000.
    """
    for name, most in _LIMITS.items():
        value = parameters.get(name)
        if isinstance(value, int | np.integer) and value > most:
            raise ModelFileError(f"a model file can hold {name} of at most {most:,}.")


def _config_from(stored: Mapping[str, Any], task: AbstractTask, n_values: int) -> Config:
    values = _with_settings_added_later(taken(stored, "config", dict))
    fields = {field.name for field in dataclasses.fields(Config)}
    if values.keys() != fields:
        raise ModelFileError(f"its configuration lacks or adds {listed(values.keys() ^ fields)}.")
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        if not all(_is_setting(item) for item in items) or (
            value is None and name not in _MAY_BE_NONE
        ):
            raise ModelFileError(f"its setting {name!r} has the wrong type: {reprlib.repr(value)}.")
    config = Config.checked(values, task.likelihoods)
    if config.preset not in PRESETS or type(config.seed) is not int or not 0 <= config.seed < 2**32:
        raise ModelFileError("its preset or seed is out of range.")
    check_storable(values)
    for name in ("width", "n_random_features"):
        value = getattr(config, name)
        # Feature maps that have no use for a number leave it as it is, whatever they hold.
        most = max(n_values, _HARMLESS)
        if max(value if isinstance(value, tuple) else (value,), default=0) > most:
            raise ModelFileError(f"its setting {name!r} asks for more than the file holds.")
    return config


def _with_settings_added_later(config: Mapping[str, Any]) -> dict[str, Any]:
    """Add settings that files of the same format may lack, with what was done before there was a choice."""
    n_layers = config.get("n_layers")
    many = isinstance(n_layers, int) and n_layers >= _CLIPPED_WITHOUT_A_CHOICE
    gradients = "clipped" if many else "exact"
    return {**_ADDED_LATER, "gradients": gradients, **config}


def _is_setting(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= 100
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _is_count(value: int) -> bool:
    return 0 <= value < 2**63


_IN_RANGE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "center": np.isfinite,
    "scale": lambda scale: np.isfinite(scale) & (scale > 0),
    "knee": lambda knee: knee >= 0,
    "limit": lambda limit: limit > 0,
}
"""What the numbers of a scaling may be; no comparison holds for NaN."""


def _scaling_from(arrays: Mapping[str, np.ndarray], kind: str, scaling: type[_SCALING]) -> _SCALING:
    found: dict[str, np.ndarray] = {}
    for field in _fields(scaling):
        name = f"{kind}.{field}"
        array = _array_of(arrays, name)
        if array.dtype != np.float64 or array.ndim != 1 or len(array) == 0:
            raise ModelFileError(f"{name} must be a vector of float64.")
        if not np.all(_IN_RANGE[field](array)):
            raise ModelFileError(f"{name} holds values out of range.")
        found[field] = array
    if len({len(array) for array in found.values()}) > 1:
        raise ModelFileError(f"the arrays of {kind!r} differ in length.")
    return scaling(*(found[field] for field in _fields(scaling)))  # pyright: ignore[reportArgumentType]


def _fields(scaling: type) -> list[str]:
    return [field.name for field in dataclasses.fields(scaling) if field.name in _IN_RANGE]


def _effects_from(arrays: Mapping[str, np.ndarray], d_in: int) -> dict[int, np.ndarray]:
    found = {}
    for name in sorted(name for name in arrays if name.startswith(_EFFECTS)):
        place = name.removeprefix(_EFFECTS)
        if not place.isdecimal() or not place.isascii() or f"{int(place)}" != place:
            raise ModelFileError(f"{name} belongs to no column.")
        array = _array_of(arrays, name)
        if array.dtype != np.float64 or array.ndim != 1 or not np.all(np.isfinite(array)):
            raise ModelFileError(f"{name} must be a vector of finite float64.")
        if int(place) >= d_in:
            raise ModelFileError(f"{name} belongs to none of {d_in} columns.")
        found[int(place)] = array[None, :]
    return found


def _model_from(arrays: Mapping[str, np.ndarray], spec: ModelSpec) -> Any:
    empty = [name for name, array in arrays.items() if array.size == 0]
    if empty:
        raise ModelFileError(f"it holds empty arrays: {listed(empty)}.")
    # Compared first, since the time to build the structure grows with the number of layers.
    n_layers = _n_layers(arrays)
    if n_layers != spec.config.n_layers:
        raise ModelFileError(
            f"it holds {n_layers} layers where {spec.config.n_layers} are configured."
        )
    dtype = jax.dtypes.canonicalize_dtype(np.float64).name
    settings = tuple(getattr(spec.config, name) for name in _STRUCTURE)
    names, leaves, structure = _structure(settings, spec.d_in, spec.n_outputs, dtype)
    effects = {name for name in arrays if name.startswith(_EFFECTS)}
    other = arrays.keys() - _SCALING_NAMES - effects - set(names)
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
    settings: tuple, d_in: int, n_outputs: int, dtype: str
) -> tuple[list[str], list[Any], Any]:
    """Give names and shapes of a model's arrays, and the tree that they form, without any computation."""
    # The other settings decide values only.
    values: dict[str, Any] = {field.name: 1.0 for field in dataclasses.fields(Config)}
    values |= {"seed": 0, **dict(zip(_STRUCTURE, settings, strict=True))}
    skeleton = ModelSpec(Config(**values), d_in, n_outputs).skeleton()
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
