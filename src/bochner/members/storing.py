"""A fitted estimator as named arrays and JSON, and back; on the way back every value is checked before it is used."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bochner.exact.lattice import Lattice
from bochner.exact.matrix import MatrixColumns
from bochner.exact.stored_arrays import numbers_from
from bochner.exact.storing import parts_from_stored, parts_to_stored
from bochner.fitting.fingerprints import MOST
from bochner.fitting.json_forms import classes_from, classes_to_json
from bochner.fitting.storing import deep_to_stored
from bochner.fitting.task import AbstractTask, Classification, Regression
from bochner.members.calibration_storing import calibration_from_stored, calibration_to_stored
from bochner.members.cross import LeftOutScores
from bochner.members.fitted import Fitted
from bochner.members.kinds import KINDS
from bochner.members.parts import AbstractPart, AbstractStoredPart, DeepPart, RowsPart
from bochner.members.predictors import (
    AbstractPredictor,
    DeepClassifier,
    DeepRegressor,
    SideBySide,
    StackClassifier,
    StackRegressor,
)
from bochner.members.stack import Standing
from bochner.system.saving import ModelFileError
from bochner.system.taking import listed, named, taken
from bochner.tables.encoding import Encoder

_FIELDS = {
    "task", "d_in", "seed", "names", "encoder", "target", "standings", "summary", "total_weight", "predictor",
    "judging", "calibration", "left_out", "fits",
}  # fmt: skip
_ADDED_LATER: dict[str, Any] = {"judging": "", "calibration": None, "left_out": None, "fits": []}
"""Fields with what their absence says."""
_MOST_TARGETS, _MOST_MEMBERS, _MOST_BACKGROUND = 10_000, 1_000, 1_000
_LARGEST_TARGET = 1e150
_SUMMARY = {"log_likelihood", "n_rows", "constant", "linear"}
_IN_ROWS = "rows"

Arrays = dict[str, np.ndarray]


def fitted_to_stored(fitted: Fitted) -> tuple[Arrays, dict[str, Any]]:
    """Give all of a fitted estimator as named arrays and plain values."""
    arrays, predictor = _predictor_to_stored(fitted.predictor)
    arrays |= {"background": np.asarray(fitted.background, np.float64)}
    arrays |= {"fingerprints": fitted.fingerprints}
    of_calibration, calibration = calibration_to_stored(fitted.calibration)
    arrays |= of_calibration
    fits = []
    for number, fit in enumerate(fitted.fits):
        own, described_fit = fitted_to_stored(fit)
        arrays |= _prefixed(f"fit.{number}.", own)
        fits.append(described_fit)
    if fitted.left_out is not None:
        arrays |= {"left_out.scores": fitted.left_out.scores, "left_out.fold": fitted.left_out.fold}
    described = {
        "task": _task_to_json(fitted.task),
        "d_in": fitted.d_in,
        "seed": fitted.seed,
        "names": None if fitted.names is None else list(fitted.names),
        "encoder": None if fitted.encoder is None else fitted.encoder.to_json(),
        "target": None if fitted.target is None else str(fitted.target),
        "standings": [dataclasses.asdict(standing) for standing in fitted.standings],
        "summary": dict(fitted.summary),
        "total_weight": fitted.total_weight,
        "judging": fitted.judging,
        "predictor": predictor,
        "calibration": calibration,
        "left_out": None if fitted.left_out is None else {},
        "fits": fits,
    }
    return arrays, described


def fitted_from_stored(arrays: Mapping[str, np.ndarray], stored: Any) -> Fitted:
    """Make what `fitted_to_stored` took apart, or raise a `ModelFileError` that says what does not fit."""
    if isinstance(stored, dict):
        stored = {**_ADDED_LATER, **stored}
    stored = named(stored, _FIELDS, "a fitted estimator")
    task = _task_from(taken(stored, "task", dict))
    d_in = taken(stored, "d_in", int, lambda v: 0 < v < 2**31, "a count")
    names, encoder = stored["names"], None
    if names is not None and (
        not isinstance(names, list) or not all(isinstance(name, str) for name in names)
    ):
        raise ModelFileError("its names of columns are not texts.")
    if stored["encoder"] is None:
        columns = d_in
    else:
        encoder = Encoder.from_json(taken(stored, "encoder", dict))
        columns = len(encoder.columns) + len(encoder.dropped)
        if names is not None and {*names} != {*encoder.input_names, *encoder.dropped}:
            raise ModelFileError("its names of columns are not those of its encoding.")
    if names is not None and len(names) != columns:
        raise ModelFileError(f"its names of columns are not {columns} texts.")
    if encoder is not None and len(encoder.feature_names) != d_in:
        raise ModelFileError(
            f"its encoding gives {len(encoder.feature_names)} columns where there are {d_in}."
        )
    target = None if stored["target"] is None else taken(stored, "target", str)
    rest = dict(arrays)
    background = rest.pop("background", np.zeros((0, d_in)))
    if (
        background.dtype != np.float64
        or background.shape[1:] != (d_in,)
        or not (len(background) <= _MOST_BACKGROUND and np.all(np.isfinite(background)))
    ):
        raise ModelFileError(f"its background is not some rows of {d_in} numbers.")
    seen = rest.pop("fingerprints", np.zeros(0, np.uint64))
    if seen.dtype != np.uint64 or seen.ndim != 1 or len(seen) > MOST:
        raise ModelFileError("its fingerprints are not some hashes of rows.")
    left_out, fits = _left_out_from(rest, stored, task)
    calibration = calibration_from_stored(rest, stored["calibration"], task)
    predictor = _predictor_from(rest, taken(stored, "predictor", dict), task, d_in)
    coded = set() if encoder is None else {*encoder.coded}
    if any({*fit.input_scaling.effects} != coded for fit in predictor.deep):
        raise ModelFileError(
            f"a deep model must have means of values for the columns {sorted(coded)}, which number them, and no others."
        )
    return Fitted(
        task=task,
        predictor=predictor,
        d_in=d_in,
        seed=taken(stored, "seed", int, lambda v: 0 <= v < 2**32, "a seed"),
        names=None if names is None else tuple(names),
        encoder=encoder,
        target=target,
        standings=tuple(_standing_from(one) for one in taken(stored, "standings", list)),
        summary=_summary_from(taken(stored, "summary", dict)),
        total_weight=taken(
            stored, "total_weight", float, lambda v: 0 <= v < math.inf, "finite, not below 0"
        ),
        background=background,
        judging=taken(stored, "judging", str),
        fingerprints=np.sort(seen),
        calibration=calibration,
        left_out=left_out,
        fits=fits,
    )


def _left_out_from(
    arrays: Arrays, stored: dict[str, Any], task: AbstractTask
) -> tuple[LeftOutScores | None, tuple[Fitted, ...]]:
    """Take scores of left-out rows, and the fits without folds that gave them; these have none of their own."""
    described = taken(stored, "fits", list, lambda v: len(v) <= _MOST_MEMBERS, "of few")
    if stored["left_out"] is None and not described:
        return None, ()
    named(stored["left_out"], set(), "scores of rows left out")
    if task.classification or not all(
        isinstance(one, dict) and one.get("left_out") is None and not one.get("fits")
        for one in described
    ):
        raise ModelFileError("its fits without folds are no such fits.")
    fits = tuple(
        fitted_from_stored(_own(arrays, f"fit.{number}."), one)
        for number, one in enumerate(described)
    )
    scores = arrays.pop("left_out.scores", np.zeros(0))
    fold = arrays.pop("left_out.fold", np.zeros(0))
    if scores.dtype != np.float64 or scores.shape != (len(fold), task.n_columns):
        raise ModelFileError("left_out.scores does not hold a number for each row and target.")
    if not np.all(scores >= 0) or fold.dtype != np.int64 or fold.ndim != 1:
        raise ModelFileError("its scores of rows left out are out of range.")
    if not np.all((fold >= 0) & (fold < len(fits))):
        raise ModelFileError("a row was left out by a fit that is not there.")
    if any(one.task.n_columns != task.n_columns or one.task.classification for one in fits):
        raise ModelFileError("its fits without folds have other targets.")
    return LeftOutScores(scores, fold), fits


def _task_to_json(task: AbstractTask) -> dict[str, Any]:
    if isinstance(task, Classification):
        return {"classes": classes_to_json(task.classes)}
    assert isinstance(task, Regression)
    return dataclasses.asdict(task)


def _task_from(stored: dict[str, Any]) -> AbstractTask:
    if "classes" in stored:
        return Classification(
            classes_from(taken(named(stored, {"classes"}, "a task"), "classes", dict))
        )
    named(stored, {"n_targets", "one_target"}, "a task")
    n_targets = taken(stored, "n_targets", int, lambda v: 0 < v <= _MOST_TARGETS, "a count")
    one = taken(stored, "one_target", bool, lambda v: n_targets == 1 or not v, "false for several")
    return Regression(n_targets, one)


def _standing_from(stored: Any) -> Standing:
    stored = named(stored, {field.name for field in dataclasses.fields(Standing)}, "a member")
    weight = taken(stored, "weight", float, lambda v: 0 <= v <= 1, "a share")
    return Standing(
        taken(stored, "name", str),
        taken(stored, "log_likelihood", float),
        weight,
        taken(stored, "seconds", float),
    )


def _summary_from(stored: dict[str, Any]) -> dict[str, float]:
    unknown = stored.keys() - _SUMMARY
    if unknown:
        raise ModelFileError(f"its summary holds {listed(unknown)}.")
    return {name: taken(stored, name, float) for name in stored}


def _predictor_to_stored(predictor: AbstractPredictor) -> tuple[Arrays, dict[str, Any]]:
    if isinstance(predictor, DeepRegressor | DeepClassifier):
        arrays, described = deep_to_stored(predictor.fit)
        return arrays, {"kind": "deep", "deep": described}
    if isinstance(predictor, SideBySide):
        arrays, targets = {}, []
        for number, target in enumerate(predictor.targets):
            own, described = _predictor_to_stored(target)
            arrays |= _prefixed(f"target.{number}.", own)
            targets.append(described)
        return arrays, {"kind": "side by side", "targets": targets}
    assert isinstance(predictor, StackRegressor | StackClassifier)
    return _stack_to_stored(predictor)


def _stack_to_stored(stack: StackRegressor | StackClassifier) -> tuple[Arrays, dict[str, Any]]:
    """Models in the space of rows are stored together, as they share rows."""
    arrays, parts, in_rows = {}, [], [one for one in stack.parts if isinstance(one, RowsPart)]
    for number, part in enumerate(stack.parts):
        if isinstance(part, RowsPart):
            parts.append({"kind": _IN_ROWS})
        else:
            assert isinstance(part, AbstractStoredPart)
            own, described = part.to_stored()
            arrays |= _prefixed(f"part.{number}.", own)
            name = next(name for name, kind in KINDS.items() if type(part) is kind.part)
            parts.append({"kind": name, name: described})
    described = None
    if in_rows:
        own, models = parts_to_stored([one.part for one in in_rows])
        arrays |= _prefixed("rows.", own)
        columns = in_rows[0].columns.to_json()
        described = {"models": models, "columns": columns, "extent": list(in_rows[0].extent)}
    weights = [float(weight) for weight in stack.weights]
    stored = {"kind": "stack", "weights": weights, "parts": parts, "rows": described}
    if isinstance(stack, StackRegressor) and stack.lattice is not None:
        stored["lattice"] = [stack.lattice.start, stack.lattice.step]
    return arrays, stored


def _predictor_from(
    arrays: Arrays, stored: dict[str, Any], task: AbstractTask, d_in: int
) -> AbstractPredictor:
    kind = stored.get("kind")
    if kind == "deep":
        named(stored, {"kind", "deep"}, "a deep model")
        fit = DeepPart.from_stored(arrays, taken(stored, "deep", dict), task, d_in).fit
        return DeepClassifier(fit) if task.classification else DeepRegressor(fit)
    if kind == "side by side":
        named(stored, {"kind", "targets"}, "several targets")
        targets = taken(stored, "targets", list, lambda v: len(v) == task.n_columns, "one a target")
        found = [
            _predictor_from(_own(arrays, f"target.{number}."), one, Regression(), d_in)
            for number, one in enumerate(targets)
        ]
        _check_none_left(arrays)
        return SideBySide(tuple(found))  # pyright: ignore[reportArgumentType]
    if kind == "stack":
        return _stack_from(arrays, stored, task, d_in)
    raise ModelFileError("it names no known kind of predictor.")


def _stack_from(
    arrays: Arrays, stored: dict[str, Any], task: AbstractTask, d_in: int
) -> AbstractPredictor:
    fields = {"kind", "weights", "parts", "rows"}
    named(stored, fields | ({"lattice"} & stored.keys()), "a stack")
    if task.n_columns != 1:
        raise ModelFileError("a stack is for one target.")
    described = taken(stored, "parts", list, lambda v: 0 < len(v) <= _MOST_MEMBERS, "not empty")
    weights = taken(stored, "weights", list, lambda v: len(v) == len(described), "one a member")
    if not all(type(weight) is float and 0 < weight <= 1 for weight in weights):
        raise ModelFileError("its weights are not all shares.")
    if not math.isclose(sum(weights), 1.0, rel_tol=1e-6):
        raise ModelFileError("its weights do not add up to one.")
    in_rows = []
    if stored["rows"] is not None:
        in_rows = _rows_parts_from(_own(arrays, "rows."), stored["rows"], task, d_in)
    waiting, parts = iter(in_rows), []
    for number, one in enumerate(described):
        kind = one.get("kind") if isinstance(one, dict) else None
        if not isinstance(kind, str) or kind not in (_IN_ROWS, *KINDS):
            raise ModelFileError("one of its members is of no known kind.")
        if kind == _IN_ROWS:
            part: AbstractPart | None = next(waiting, None)
            if part is None:
                raise ModelFileError("it lacks one of its members.")
        else:
            own, described = _own(arrays, f"part.{number}."), taken(one, kind, dict)
            part = KINDS[kind].part.from_stored(own, described, task, d_in)
        parts.append(part)
    if next(waiting, None) is not None:
        raise ModelFileError("it has a member without weight.")
    _check_none_left(arrays)
    if task.classification:
        if "lattice" in stored:
            raise ModelFileError("a stack for classes has a lattice.")
        return StackClassifier(tuple(parts), np.array(weights))
    return StackRegressor(tuple(parts), np.array(weights), _lattice_from(stored.get("lattice")))


def _lattice_from(stored: Any) -> Lattice | None:
    if stored is None:
        return None
    start, step = numbers_from(
        stored, 2, -_LARGEST_TARGET, _LARGEST_TARGET, "start and step of a lattice"
    )
    if not step > 0:
        raise ModelFileError("the step of its lattice is not above zero.")
    return Lattice(float(start), float(step))


def _rows_parts_from(arrays: Arrays, stored: Any, task: AbstractTask, d_in: int) -> list[RowsPart]:
    stored = named(stored, {"models", "columns", "extent"}, "models of rows")
    columns = MatrixColumns.from_json(stored["columns"], d_in)
    n_classes = task.n_outputs if task.classification else 0
    models = parts_from_stored(arrays, stored["models"], layout=columns.layout, n_classes=n_classes)
    extent = taken(stored, "extent", list, lambda v: len(v) == 2, "two numbers")
    if not all(type(one) is float and math.isfinite(one) for one in extent):
        raise ModelFileError("the extent of its targets is not two numbers.")
    return [RowsPart(columns, model, (extent[0], extent[1])) for model in models]


def _prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def _own(arrays: Arrays, prefix: str) -> Arrays:
    """Take out the arrays of a part."""
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays.pop(name) for name in names}


def _check_none_left(arrays: Arrays) -> None:
    if arrays:
        raise ModelFileError(f"it holds arrays that do not belong to it: {listed(arrays)}.")
