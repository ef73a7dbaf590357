"""The predictive function as a program of its own: StableHLO with a free batch size, and its schema as JSON."""

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export
from sklearn.utils.validation import check_is_fitted

from bochner.estimators import DeepGPClassifier, DeepGPRegressor
from bochner.estimators.json_forms import classes_to_json, json_ready
from bochner.prediction.statistics import Moments, Probabilities
from bochner.rows.scaling import InputScaling
from bochner.system.saving import replace_file
from bochner.version import __version__

FORMAT_VERSION = 1
PLATFORMS = ("cpu", "cuda", "tpu")
"""Where an exported program runs."""

_FORMAT = "bochner-export"
_BYTECODE, _SCHEMA = ".mlirbc", ".json"
_BYTECODE_START = b"ML\xefR"  # of any MLIR bytecode
_PRECISION = (
    "Inputs and outputs are float32. A column whose values lie far from zero compared with their spread loses digits "
    "when it is cast: subtract a constant before the fit where that matters. Targets likewise."
)
_RUN = "jax.export.deserialize(bytearray(open(FILE, 'rb').read())).call(X)"


def export(
    model: DeepGPRegressor | DeepGPClassifier, path: str | Path, *, overwrite: bool = False
) -> list[Path]:
    """Write the predictive function of a fitted model as a program that needs JAX alone.

    It maps the encoded matrix, before scaling, to the mean and standard deviation of y or to the probability of each
    class, over the same posterior draws as `predict`.

    Args:
        model: a fitted estimator.
        path: the program in JAX's serialization. Beside it, with the endings `.mlirbc` and `.json`, come the same
            program as StableHLO bytecode for CPUs, and the schema. An earlier export of this name is replaced.
        overwrite: replace files of these names also where they are no earlier export.

    Returns:
        The paths of the three files.

    Example:
        >>> import jax, numpy as np, os, tempfile
        >>> from bochner import DeepGPRegressor
        >>> from bochner.estimators.export import export
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(max_steps=10, random_state=0).fit(x, x[:, 0])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.jax")
        >>> [file.suffix for file in export(model, path)]
        ['.jax', '.mlirbc', '.json']
        >>> program = jax.export.deserialize(bytearray(open(path, "rb").read()))
        >>> mean = program.call(np.float32([[0.5], [0.7]]))["mean"]
        >>> bool(np.allclose(mean, model.predict([[0.5], [0.7]]), rtol=1e-4))
        True
    """
    check_is_fitted(model)
    files = export_files(path)
    if not overwrite:
        check_replaceable(path)
    predict = jax.jit(_predictive(model))
    (batch,) = jax_export.symbolic_shape("batch")
    rows = jax.ShapeDtypeStruct((batch, model.n_features_in_), jnp.float32)
    try:
        program = bytes(jax_export.export(predict, platforms=PLATFORMS)(rows).serialize())
    except ImportError as error:
        raise ImportError(
            "exporting a program needs the package flatbuffers. Install it with `pip install flatbuffers`."
        ) from error
    plain = jax_export.export(predict, platforms=["cpu"])(rows)
    schema = _schema(model, plain, files[0].name)
    schema["sha256"] = hashlib.sha256(program).hexdigest()
    described = (json.dumps(schema, indent=2) + "\n").encode()
    # The schema comes last: with its digest it tells a whole export from one that failed halfway.
    for file, content in zip(
        files, (program, bytes(plain.mlir_module_serialized), described), strict=True
    ):
        replace_file(file, content)
    return files


def export_files(path: str | Path) -> list[Path]:
    """Name the files of an export: the program, its bytecode and its schema.

    Example:
        >>> from bochner.estimators.export import export_files
        >>> [file.name for file in export_files("model.jax")]
        ['model.jax', 'model.mlirbc', 'model.json']
    """
    path = Path(path)
    if path.suffix in (_SCHEMA, _BYTECODE):
        raise ValueError(
            f"{path.name} would be overwritten by what is written beside it: use another ending, such as '.jax'."
        )
    return [path, path.with_suffix(_BYTECODE), path.with_suffix(_SCHEMA)]


def check_replaceable(path: str | Path) -> None:
    """Refuse a path where an export would replace files that are not an earlier export.

    Example:
        >>> import pathlib, tempfile
        >>> from bochner.estimators.export import check_replaceable
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> check_replaceable(folder / "model.jax")
        >>> (folder / "model.json").write_text("{}")
        2
        >>> check_replaceable(folder / "model.jax")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        FileExistsError: ...model.json exists and is not of an earlier export...
    """
    files = program, bytecode, schema = export_files(path)
    digest = _digest_in(schema, program.name)
    known = [] if digest is None else [schema]
    with contextlib.suppress(OSError):
        if hashlib.sha256(program.read_bytes()).hexdigest() == digest:
            known.append(program)
    with contextlib.suppress(OSError):
        if bytecode.read_bytes().startswith(_BYTECODE_START) and digest is not None:
            known.append(bytecode)
    for file in files:
        if os.path.lexists(file) and file not in known:
            raise FileExistsError(
                f"{file} exists and is not of an earlier export to {program.name}, so nothing is replaced. Choose "
                "another name, or ask for it with `overwrite` (`--overwrite` on the command line)."
            )


def _digest_in(schema: Path, program: str) -> str | None:
    """The digest that a schema gives for its program; None where it is no schema of an export of this name."""
    try:
        found = json.loads(schema.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        return None
    return str(found.get("sha256")) if found.get("program") == program else None


def _predictive(
    model: DeepGPRegressor | DeepGPClassifier,
) -> Callable[[jax.Array], dict[str, jax.Array]]:
    posterior, scale_inputs = model._posterior(), _float32_scaling(model._input_scaling)

    def regression(X: jax.Array) -> dict[str, jax.Array]:
        moments = posterior.at(Moments(), scale_inputs(X), {})
        scaling = model._target_scaling
        center, scale = (jnp.float32(v)[None, :] for v in (scaling.center, scaling.scale))
        std = jnp.sqrt(moments["epistemic"] + moments["aleatoric"]) * scale
        found = {"mean": moments["mean"] * scale + center, "std": std}
        one_target = isinstance(model, DeepGPRegressor) and model._one_target
        return {name: v[:, 0] for name, v in found.items()} if one_target else found

    def classification(X: jax.Array) -> dict[str, jax.Array]:
        found = posterior.at(Probabilities(), scale_inputs(X), {})
        return {"probabilities": found / jnp.sum(found, axis=1, keepdims=True)}

    return classification if isinstance(model, DeepGPClassifier) else regression


def _float32_scaling(scaling: InputScaling) -> Callable[[jax.Array], jax.Array]:
    """Give the scaling for float32, with the center as a sum of two numbers, so that its digits are not lost."""
    with np.errstate(over="ignore", under="ignore"):
        high = scaling.center.astype(np.float32)
        scale = scaling.scale.astype(np.float32)
    if not np.all(np.isfinite(high) & np.isfinite(scale) & (scale > np.finfo(np.float32).tiny)):
        raise ValueError(
            "the inputs have columns that float32 cannot hold. Change their units, fit again, and export then."
        )
    rest = dataclasses.replace(
        scaling,
        center=(scaling.center - high.astype(np.float64)).astype(np.float32),
        scale=scale,
        knee=scaling.knee.astype(np.float32),
        limit=scaling.limit.astype(np.float32),
    )
    return lambda X: rest(X - high[None, :])


def _schema(
    model: DeepGPRegressor | DeepGPClassifier, program: jax_export.Exported, name: str
) -> dict[str, Any]:
    structure = jax.tree.unflatten(program.out_tree, program.out_avals)
    schema: dict[str, Any] = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "bochner_version": __version__,
        "jax_version": jax.__version__,
        "calling_convention_version": program.calling_convention_version,
        "program": name,
        "platforms": list(PLATFORMS),
        "task": "classification" if isinstance(model, DeepGPClassifier) else "regression",
        "n_draws": model.config_["n_mc_predict"],
        "input": {
            "dtype": "float32",
            "shape": ["batch", model.n_features_in_],
            "columns": model._column_names(),
        },
        "outputs": [
            {"name": key, "dtype": str(value.dtype), "shape": [_size(n) for n in value.shape]}
            for key, value in structure.items()
        ],
        "precision": _PRECISION,
        "run": _RUN,
    }
    if isinstance(model, DeepGPClassifier):
        schema["classes"] = classes_to_json(model.classes_)
    if model._encoder is not None:
        schema["encoder"] = model._encoder.to_json()
    if model._target_name is not None:
        schema["target"] = model._target_name
    return json_ready(schema)


def _size(n: Any) -> int | str:
    return n if isinstance(n, int) else str(n)
