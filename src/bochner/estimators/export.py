"""The predictive function as a program of its own: StableHLO or ONNX with a free batch size, and its schema as JSON."""

import contextlib
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
from bochner.fitting.config import check_choice
from bochner.fitting.json_forms import classes_to_json, json_ready
from bochner.fitting.task import Classification, Regression
from bochner.members.fitted import Fitted
from bochner.members.parts import RowsPart
from bochner.members.predictors import (
    AbstractPredictor,
    SideBySide,
    StackClassifier,
    StackRegressor,
)
from bochner.members.programs import LawProgram, program_of_deep, program_of_rows
from bochner.system.saving import replace_file
from bochner.version import __version__

Program = Callable[[jax.Array], dict[str, jax.Array]]

FORMAT_VERSION = 1
FORMATS = ("stablehlo", "onnx")
"""What an exported program can be written in."""
PLATFORMS = ("cpu", "cuda", "tpu")
"""Where an exported program runs."""

_FORMAT = "bochner-export"
_BYTECODE, _SCHEMA = ".mlirbc", ".json"
_BYTECODE_START = b"ML\xefR"  # of any MLIR bytecode
_PRECISION = (
    "Inputs and outputs are float32. A column whose values lie far from zero compared with their spread loses digits "
    "when it is cast: subtract a constant before the fit where that matters. Targets likewise."
)
_RUN_ONNX = "onnxruntime.InferenceSession(FILE).run(None, {'X': X})"
_RUN = "jax.export.deserialize(bytearray(open(FILE, 'rb').read())).call(X)"


def export(
    model: DeepGPRegressor | DeepGPClassifier,
    path: str | Path,
    *,
    format: str = "stablehlo",  # noqa: A002
    overwrite: bool = False,
) -> list[Path]:
    """Write the predictive function of a fitted model as a program that needs JAX alone, or an ONNX runtime alone.

    It maps the encoded matrix, before scaling, to the mean and standard deviation of y or to the probability of each
    class, over the same posterior draws as `predict`.

    Args:
        model: a fitted estimator.
        path: the program. With `"stablehlo"` it is in JAX's serialization, and beside it, with the endings `.mlirbc`
            and `.json`, come the same program as StableHLO bytecode for CPUs, and the schema. With `"onnx"` it is one
            file, with the schema in its metadata. An earlier export of this name is replaced.
        format: `"stablehlo"`, or `"onnx"` (extra `onnx`).
        overwrite: replace files of these names also where they are no earlier export.

    Returns:
        The paths of the files.

    Example:
        >>> import jax, numpy as np, os, tempfile
        >>> from bochner import DeepGPRegressor
        >>> from bochner.estimators.export import export
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(random_state=0).fit(x, x[:, 0])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.jax")
        >>> [file.suffix for file in export(model, path)]
        ['.jax', '.mlirbc', '.json']
        >>> program = jax.export.deserialize(bytearray(open(path, "rb").read()))
        >>> mean = program.call(np.float32([[0.5], [0.7]]))["mean"]
        >>> bool(np.allclose(mean, model.predict([[0.5], [0.7]]), rtol=1e-4))
        True
    """
    check_is_fitted(model)
    files = export_files(path, format)
    if not overwrite:
        check_replaceable(path, format)
    fitted = model.fitted_
    one_target = isinstance(fitted.task, Regression) and fitted.task.one_target
    predict = _predictive(fitted.predictor, one_target=one_target)
    # Models in the space of rows compute in double precision.
    in_double = jax.enable_x64(True) if fitted.predictor.in_rows else contextlib.nullcontext()
    with in_double:
        written = _onnx if format == "onnx" else _stablehlo
        contents = written(predict, fitted, files[0].name)
    # The schema comes last: with its digest it tells a whole export from one that failed halfway.
    for file, content in zip(files, contents, strict=True):
        replace_file(file, content)
    return files


def _rows(fitted: Fitted) -> jax.ShapeDtypeStruct:
    (batch,) = jax_export.symbolic_shape("batch")
    return jax.ShapeDtypeStruct((batch, fitted.d_in), jnp.float32)


def _stablehlo(predict: Program, fitted: Fitted, name: str) -> tuple[bytes, ...]:
    rows, compiled = _rows(fitted), jax.jit(predict)
    try:
        program = bytes(jax_export.export(compiled, platforms=PLATFORMS)(rows).serialize())
    except ImportError as error:
        raise ImportError(
            "exporting a program needs the package flatbuffers. Install it with `pip install flatbuffers`."
        ) from error
    plain = jax_export.export(compiled, platforms=["cpu"])(rows)
    schema = _schema(fitted, jax.tree.unflatten(plain.out_tree, plain.out_avals)) | {
        "jax_version": jax.__version__,
        "calling_convention_version": plain.calling_convention_version,
        "program": name,
        "platforms": list(PLATFORMS),
        "run": _RUN,
        "sha256": hashlib.sha256(program).hexdigest(),
    }
    described = (json.dumps(schema, indent=2) + "\n").encode()
    return program, bytes(plain.mlir_module_serialized), described


def _onnx(predict: Program, fitted: Fitted, name: str) -> tuple[bytes, ...]:
    try:
        from bochner.estimators.onnx_graph import NotInOnnxError, onnx_model
    except ImportError as error:
        raise ImportError(
            "an export to ONNX needs the package onnx. Install it with `pip install 'bochner[onnx]'`."
        ) from error
    schema = _schema(fitted, jax.eval_shape(predict, _rows(fitted))) | {"run": _RUN_ONNX}
    try:
        return (onnx_model(predict, fitted.d_in, json.dumps(schema)),)
    except NotInOnnxError as error:
        raise ValueError(
            f"this model cannot be written as ONNX: it computes with {error}, for which there is no rule. Export it "
            'with `format="stablehlo"` (`--format stablehlo`), or leave out the member or kernel that needs it.'
        ) from error


def export_files(path: str | Path, format: str = "stablehlo") -> list[Path]:  # noqa: A002
    """Name the files of an export: the program, and of StableHLO its bytecode and its schema.

    Example:
        >>> from bochner.estimators.export import export_files
        >>> [file.name for file in export_files("model.jax")]
        ['model.jax', 'model.mlirbc', 'model.json']
    """
    check_choice("format", format, FORMATS)
    path = Path(path)
    if format == "onnx":
        return [path]
    if path.suffix in (_SCHEMA, _BYTECODE):
        raise ValueError(
            f"{path.name} would be overwritten by what is written beside it: use another ending, such as '.jax'."
        )
    return [path, path.with_suffix(_BYTECODE), path.with_suffix(_SCHEMA)]


def check_replaceable(path: str | Path, format: str = "stablehlo") -> None:  # noqa: A002
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
    files = export_files(path, format)
    known = _earlier(files)
    for file in files:
        if os.path.lexists(file) and file not in known:
            raise FileExistsError(
                f"{file} exists and is not of an earlier export to {files[0].name}, so nothing is replaced. Choose "
                "another name, or ask for it with `overwrite` (`--overwrite` on the command line)."
            )


def _earlier(files: list[Path]) -> list[Path]:
    """Which of the files are of an earlier export."""
    if len(files) == 1:
        with contextlib.suppress(OSError):
            if json.dumps(_FORMAT).encode() in files[0].read_bytes():
                return files
        return []
    program, bytecode, schema = files
    digest = _digest_in(schema, program.name)
    known = [] if digest is None else [schema]
    with contextlib.suppress(OSError):
        if hashlib.sha256(program.read_bytes()).hexdigest() == digest:
            known.append(program)
    with contextlib.suppress(OSError):
        if bytecode.read_bytes().startswith(_BYTECODE_START) and digest is not None:
            known.append(bytecode)
    return known


def _digest_in(schema: Path, program: str) -> str | None:
    """The digest that a schema gives for its program; None where it is no schema of an export of this name."""
    try:
        found = json.loads(schema.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        return None
    return str(found.get("sha256")) if found.get("program") == program else None


def _predictive(predictor: AbstractPredictor, *, one_target: bool) -> Program:
    """Give the predictive function of encoded rows."""
    if isinstance(predictor, SideBySide):
        targets = [_predictive(target, one_target=True) for target in predictor.targets]

        def several(X: jax.Array) -> dict[str, jax.Array]:
            found = [target(X) for target in targets]
            return {name: jnp.stack([one[name] for one in found], axis=1) for name in found[0]}

        return several
    if isinstance(predictor, StackClassifier):
        mixed = _mixed(predictor)
        return lambda X: {"probabilities": mixed(X)[0].astype(jnp.float32)}
    if isinstance(predictor, StackRegressor):
        moments = _mixed(predictor)

        def mixture(X: jax.Array) -> dict[str, jax.Array]:
            mean, variance = moments(X)
            return {"mean": mean.astype(jnp.float32), "std": jnp.sqrt(variance).astype(jnp.float32)}

        return mixture
    (fit,) = predictor.deep
    moments_of_deep = program_of_deep(fit)
    if fit.task.classification:
        return lambda X: {"probabilities": moments_of_deep(X)[0]}

    def alone(X: jax.Array) -> dict[str, jax.Array]:
        mean, variance = moments_of_deep(X)
        found = {"mean": mean, "std": jnp.sqrt(variance)}
        return {name: v[:, 0] for name, v in found.items()} if one_target else found

    return alone


def _mixed(stack: StackRegressor | StackClassifier) -> LawProgram:
    """Mix the programs of members: by the law of total variance, where they give moments."""
    shares, programs = [], []
    pairs = list(zip(stack.weights, stack.members, strict=True))
    rows = [(weight, part) for weight, part in pairs if isinstance(part, RowsPart)]
    if rows:  # which share what becomes of the columns
        weights = np.array([weight for weight, _ in rows])
        models, first = [part.part for _, part in rows], rows[0][1]
        shared = program_of_rows(models, weights / weights.sum(), first.columns, first.extent)
        programs.append(shared)
        shares.append(float(weights.sum()))
    for weight, part in pairs:
        if not isinstance(part, RowsPart):
            programs.append(part.program())
            shares.append(float(weight))

    def mixture(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = [program(X) for program in programs]
        mean = sum(w * jnp.asarray(m) for w, (m, _) in zip(shares, found, strict=True))
        spread = sum(w * (v + (m - mean) ** 2) for w, (m, v) in zip(shares, found, strict=True))
        return jnp.asarray(mean), jnp.asarray(spread)

    return mixture


def _schema(fitted: Fitted, outputs: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "bochner_version": __version__,
        "task": "classification" if fitted.task.classification else "regression",
        "n_draws": None if fitted.deep is None else fitted.deep.config.n_mc_predict,
        "input": {
            "dtype": "float32",
            "shape": ["batch", fitted.d_in],
            "columns": fitted.column_names,
        },
        "outputs": [
            {"name": key, "dtype": str(value.dtype), "shape": [_size(n) for n in value.shape]}
            for key, value in outputs.items()
        ],
        "precision": _PRECISION,
    }
    if isinstance(fitted.task, Classification):
        schema["classes"] = classes_to_json(fitted.task.classes)
    if fitted.encoder is not None:
        schema["encoder"] = fitted.encoder.to_json()
    if fitted.target is not None:
        schema["target"] = fitted.target
    return json_ready(schema)


def _size(n: Any) -> int | str:
    return n if isinstance(n, int) else str(n)
