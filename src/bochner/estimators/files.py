"""Estimators to model files and back."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bochner.data.scaling import InputScaling, TargetScaling
from bochner.estimators.base import BaseDeepGP
from bochner.estimators.classifier import DeepGPClassifier
from bochner.estimators.config import Config
from bochner.estimators.regressor import DeepGPRegressor
from bochner.saving import ModelFileError, read_arrays, write_arrays

_ESTIMATORS: dict[str, type[BaseDeepGP]] = {
    "DeepGPRegressor": DeepGPRegressor,
    "DeepGPClassifier": DeepGPClassifier,
}
_PLAIN = ("n_features_in_", "n_steps_", "elbo_", "total_weight_", "trained_weight_", "history_")


def save(estimator: BaseDeepGP, path: str | Path) -> None:
    """Write a fitted estimator to one file."""
    arrays = {f"model{name}": leaf for name, leaf in _named_leaves(estimator.model_)}
    for kind in ("input", "target"):
        scaling = getattr(estimator, f"_{kind}_scaling")
        for field in dataclasses.fields(scaling):
            arrays[f"{kind}.{field.name}"] = getattr(scaling, field.name)
    header: dict[str, Any] = {name: getattr(estimator, name) for name in _PLAIN}
    header["estimator"] = type(estimator).__name__
    header["config"] = estimator.config_
    # Not the device: the file may be opened where that one does not exist.
    header["parameters"] = {
        name: value
        for name, value in estimator.get_params().items()
        if name != "device" and _is_plain(value)
    }
    if hasattr(estimator, "feature_names_in_"):
        header["feature_names"] = [str(name) for name in estimator.feature_names_in_]  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(estimator, DeepGPClassifier):
        header["classes"] = {
            "values": estimator.classes_.tolist(),
            "dtype": "object"
            if estimator.classes_.dtype == object
            else estimator.classes_.dtype.str,
        }
    class_weight = getattr(estimator, "class_weight", None)
    if isinstance(class_weight, dict):
        header["class_weight"] = list(class_weight.items())
    if isinstance(estimator, DeepGPRegressor):
        header["n_targets"] = estimator.n_targets_
        header["one_target"] = bool(estimator._one_target)
    write_arrays(path, arrays, _json_ready(header))


def load(path: str | Path) -> Any:
    """Open a model file; predictions are bit-equal to those of the saved model on the same machine.

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
    try:
        return _rebuild(arrays, header)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ModelFileError(f"{path} lacks part of a model ({error!r}).") from error


def _rebuild(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> BaseDeepGP:
    estimator = _ESTIMATORS[header["estimator"]](**_tuples(header["parameters"]))
    for name in _PLAIN:
        setattr(estimator, name, header[name])
    config = Config(**_tuples(header["config"]))
    estimator.config_ = dataclasses.asdict(config)
    if "feature_names" in header:
        estimator.feature_names_in_ = np.asarray(header["feature_names"], dtype=object)  # pyright: ignore[reportAttributeAccessIssue]
    estimator._input_scaling = InputScaling(**_part(arrays, "input"))
    estimator._target_scaling = TargetScaling(**_part(arrays, "target"))
    n_targets = len(estimator._target_scaling.center)
    if isinstance(estimator, DeepGPClassifier):
        if "class_weight" in header:
            estimator.class_weight = dict(header["class_weight"])
        classes = header["classes"]
        estimator.classes_ = np.asarray(classes["values"], dtype=np.dtype(classes["dtype"]))
    if isinstance(estimator, DeepGPRegressor):
        estimator.n_targets_, estimator._one_target = header["n_targets"], header["one_target"]
    skeleton = jax.eval_shape(
        lambda: estimator._start_model(config, estimator.n_features_in_, np.zeros((1, n_targets)))
    )
    leaves = [_matching(arrays, f"model{name}", leaf) for name, leaf in _named_leaves(skeleton)]
    estimator.model_ = jax.tree.unflatten(jax.tree.structure(skeleton), leaves)
    return estimator


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in paths]


def _matching(arrays: dict[str, np.ndarray], name: str, expected: Any) -> jax.Array:
    array = arrays[name]
    if array.shape != expected.shape:
        raise KeyError(f"{name} has shape {array.shape} where {expected.shape} was expected")
    return jnp.asarray(array, expected.dtype)


def _part(arrays: dict[str, np.ndarray], kind: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(f"{kind}."): array
        for name, array in arrays.items()
        if name.startswith(f"{kind}.")
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str | np.integer | np.floating)


def _json_ready(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_ready(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
