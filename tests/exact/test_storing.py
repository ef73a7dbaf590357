import copy
import dataclasses
import json
import warnings

import numpy as np
import pytest

from bochner.exact.classes import ClassPart, class_parts
from bochner.exact.densities import DensityPart
from bochner.exact.landmark_classes import landmark_class_parts
from bochner.exact.landmark_regression import landmark_parts
from bochner.exact.matrix import MatrixColumns
from bochner.exact.parts import Part
from bochner.exact.process import Process
from bochner.exact.regression import regression_parts
from bochner.exact.sizes import Sizes
from bochner.exact.storing import parts_from_stored, parts_to_stored
from bochner.exact.varying_noise import NoiseModel
from bochner.system.saving import ModelFileError, format_arrays, parse_arrays
from tests.exact.models import (
    PARTS,
    SOURCES,
    class_part,
    constant_part,
    density_part,
    encoding,
    frequencies,
    matrix,
    predictions,
    regression_part,
)


def through_a_file(parts):
    arrays, stored = parts_to_stored(parts)
    arrays, header = parse_arrays(format_arrays(arrays, {"models": stored}), "a file")
    return parts_from_stored(arrays, header["models"])


def assert_equal_predictions(parts, again, rows):
    for one, other in zip(parts, again, strict=True):
        for expected, found in zip(predictions(one, rows), predictions(other, rows), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("make", PARTS.values(), ids=PARTS)
def test_predictions_of_what_was_stored_are_bit_equal(make):
    part = make()
    rows = encoding()(matrix(70, seed=1))
    assert_equal_predictions([part], through_a_file([part]), rows)


@pytest.mark.parametrize("fit", ["regression", "classes", "landmarks", "landmarks of classes"])
def test_fitted_models_survive(fit):
    X = matrix(200)
    encoded = MatrixColumns.learn(X, SOURCES)
    rows, y = encoded(X), np.exp(np.sin(X[:, 0]) + X[:, 3])
    labels = (X[:, 0] > 0).astype(int)
    judged, sizes = np.arange(0, 200, 2), Sizes(60, 40, 40)
    parts = {
        "regression": lambda: regression_parts(rows, y),
        "classes": lambda: class_parts(rows, labels, 2),
        "landmarks": lambda: landmark_parts(rows, y, judged, sizes=sizes),
        "landmarks of classes": lambda: landmark_class_parts(rows, labels, 2, judged, sizes=sizes),
    }[fit]()
    new = encoded(matrix(50, seed=3))
    again = through_a_file(parts)
    assert [(part.name, part.kind) for part in again] == [(part.name, part.kind) for part in parts]
    assert_equal_predictions(parts, again, new)


def test_what_is_shared_is_there_once():
    parts = [regression_part(transform=transform) for transform in ("standardized", "log")]
    arrays, stored = parts_to_stored(parts)
    assert len(stored["rows"]) == len(stored["covariances"]) == 1
    one, other = parts_from_stored(arrays, stored)
    assert isinstance(one, Part)
    assert isinstance(other, Part)
    assert isinstance(one.process, Process)
    assert isinstance(other.process, Process)
    assert one.process.rows is other.process.rows
    arrays, stored = parts_to_stored([class_part("landmarks", 3)] * 2)
    assert len(stored["landmarks"]) == 1
    assert not any(name.startswith("row.1") for name in arrays)


def test_a_default_model_of_a_thousand_rows_is_small():
    parts = [
        regression_part(transform=transform, kernel=kernel, varying=varying, n=1000)
        for transform in ("standardized", "log", "yeo-johnson")
        for kernel, varying in (("linear", False), ("table", False), ("table", True))
    ]
    for models in (parts, [class_part("exact", 5, n=1000)] * 4):
        arrays, stored = parts_to_stored(models)
        assert len(format_arrays(arrays, {"models": stored})) < 500_000


def test_all_that_a_model_is_made_of_is_stored():
    """A new field of a model must be stored too, or be left out here by intent."""
    names = {
        Part: {
            "name",
            "kind",
            "transform",
            "process",
            "noise",
            "noise_model",
            "tails",
            "left_out",
            "unseen",
        },
        DensityPart: {"name", "landmarks", "cells", "shapes", "weights", "left_out", "unseen"},
        ClassPart: {
            "name",
            "kind",
            "functions",
            "frequencies",
            "temperature",
            "strength",
            "left_out",
        },
        NoiseModel: {"process", "process_parameters", "deviation", "level"},
    }
    for kind, expected in names.items():
        assert {field.name for field in dataclasses.fields(kind)} == expected


def test_layout_and_classes_must_be_those_that_are_expected():
    layout = encoding()(matrix(3)).layout
    arrays, stored = parts_to_stored([class_part()])
    parts_from_stored(arrays, stored, layout=layout, n_classes=2)
    with pytest.raises(ModelFileError, match="classes"):
        parts_from_stored(arrays, stored, layout=layout, n_classes=3)
    with pytest.raises(ModelFileError, match="classes"):
        parts_from_stored(arrays, stored, n_classes=0)
    other = dataclasses.replace(layout, columns=(*layout.columns[:-1], 9))
    with pytest.raises(ModelFileError, match="columns that its encoding gives"):
        parts_from_stored(arrays, stored, layout=other)


def test_sizes_that_are_forged_take_no_memory():
    arrays, stored = parts_to_stored([regression_part(kernel="linear")])
    n = 10**9
    for name, array in arrays.items():
        if array.ndim == 2 and len(array) == 40:
            arrays[name] = np.broadcast_to(array[:1], (n, array.shape[1]))
    with pytest.raises(ModelFileError):
        parts_from_stored(arrays, stored)


def test_factors_that_no_rows_give_are_refused():
    arrays, stored = parts_to_stored([regression_part("landmarks")])
    lower = np.eye(20) - 3 * np.tri(20, k=-1)
    arrays["function.0.factor.0"] = lower[np.tri(20, dtype=bool)].astype(np.float32)
    with pytest.raises(ModelFileError, match="no factor"):
        parts_from_stored(arrays, stored)


VALUES = [
    None, True, -1, 0, 1, 7, 10**30, -0.5, 1e308, float("nan"), float("inf"), "", "sum", "exact", "log",
    [], {}, [[]], [1], [0] * 9, {"kind": "sum", "parts": []}, {"kind": "log"},
]  # fmt: skip


def places(value, path=()):
    """The path of everything inside a value."""
    if not isinstance(value, dict | list):
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        yield from places(item, (*path, key))


def change_json(stored, rng):
    found = list(places(stored))
    path = found[rng.integers(len(found))]
    holder = stored
    for key in path[:-1]:
        holder = holder[key]
    if rng.random() < 0.2:
        del holder[path[-1]]
    elif rng.random() < 0.2:
        other = found[rng.integers(len(found))]
        value = stored
        for key in other:
            value = value[key]
        holder[path[-1]] = copy.deepcopy(value)
    else:
        holder[path[-1]] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def change_arrays(arrays, rng):
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    bad = [np.nan, np.inf, -1e300, 0.0, 3.0, -40.0, 1e25, 1e-300]
    match rng.integers(8):
        case 0:
            del arrays[name]
            return
        case 1:
            array = array[:-1]
        case 2:
            array = array[None]
        case 3:
            array = array.astype(rng.choice(["f4", "f8", "i8", "u1", "?"]))
        case 4:
            array = np.zeros((0, *array.shape[1:]), array.dtype)
        case 5:
            array = np.concatenate([array, array])
        case _:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = np.asarray(bad[rng.integers(len(bad))]).astype(array.dtype)
                if array.size:
                    array.flat[rng.integers(array.size, size=rng.integers(1, 4))] = value
    arrays[name] = array


MODELS = {
    "regression": lambda: [
        regression_part("exact", "product", "log", True, n=12),
        regression_part("landmarks", "table", "yeo-johnson", n=12),
        regression_part("exact", "chosen", n=12),
        density_part(n=12),
        constant_part(),
    ],
    "classes": lambda: [class_part("exact", n=12), class_part("landmarks", n=12), frequencies()],
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_changed_files_are_refused_or_predict_finite_numbers(make):
    arrays, stored = parts_to_stored(make())
    stored = json.loads(json.dumps(stored))
    rng = np.random.default_rng(100)
    rows = encoding(12)(matrix(6, seed=2))
    refused = 0
    for _ in range(1500):
        some, changed = dict(arrays), copy.deepcopy(stored)
        for _ in range(rng.integers(1, 3)):
            if rng.random() < 0.5:
                change_arrays(some, rng)
            else:
                change_json(changed, rng)
        try:
            parts = parts_from_stored(some, changed, layout=rows.layout)
        except ModelFileError:
            refused += 1
            continue
        for part in parts:
            if isinstance(part, ClassPart):
                found = part.probabilities(rows)
            elif isinstance(part, DensityPart):
                found = np.stack(part.law(rows).moments())
            else:
                found = np.stack(part.moments(rows))
            assert np.isfinite(found).all()
    assert refused > 1000


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_what_is_no_model_at_all_is_refused(value):
    with pytest.raises(ModelFileError):
        parts_from_stored({}, value)
    with pytest.raises(ModelFileError):
        parts_from_stored({}, dict.fromkeys(("rows", "covariances", "parts"), value))
