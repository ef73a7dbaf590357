"""The exported program gives the predictions of the model, from its files alone."""

import dataclasses
import hashlib
import json
import subprocess
import sys

import jax
import numpy as np
import pandas as pd
import pytest
from jax import export as jax_export

from bochner import Deep, DeepGPClassifier, DeepGPRegressor, Linear
from bochner.estimators.export import PLATFORMS, export
from tests.deep_alone import deep_classifier, deep_regressor
from tests.estimators import problems
from tests.estimators.problems import SMALL

TINY = SMALL | {"max_steps": 20, "n_random_features": 6, "n_mc_predict": 15}


def program_of(path):
    return jax_export.deserialize(bytearray(path.read_bytes()))


def assert_near(found, expected):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def regressor():
    """Of named columns; tests must not change it."""
    X, y = problems.numbers(40)
    X[:, 0] += 123456.7  # far from zero, and no float32
    frame = pd.DataFrame(X, columns=["age", "height", "mass"])
    return deep_regressor(preprocessing="robust", **TINY).fit(frame, y), frame


@pytest.fixture(scope="module")
def exported(regressor, tmp_path_factory):
    return export(regressor[0], tmp_path_factory.mktemp("folder") / "new" / "model.jax")


@pytest.mark.parametrize(
    ("omega", "likelihood"),
    [("prior-fixed", "gaussian"), ("var-fixed", "heteroscedastic"), ("var-resampled", "student-t")],
)
def test_mean_and_deviation_are_those_of_predict_at_any_batch_size(omega, likelihood, tmp_path):
    X, y = problems.numbers(80)
    model = deep_regressor(omega=omega, **TINY, likelihood=likelihood).fit(X, y)
    export(model, tmp_path / "model.jax")
    program = program_of(tmp_path / "model.jax")
    for n in (1, 2, 80):
        found = program.call(X[:n].astype(np.float32))
        mean, std = model.predict(X[:n], return_std=True)
        assert found["mean"].shape == found["std"].shape == (n,)
        assert_near(found["mean"], mean)
        assert_near(found["std"], std)


@pytest.mark.parametrize("factor", [1e-15, 1e15])
def test_programs_of_tiny_and_huge_units_keep_to_float32(factor, tmp_path):
    X, y = problems.numbers(80)
    X, y = factor * X, factor * y
    model = deep_regressor(preprocessing="robust", **TINY).fit(X, y)
    export(model, tmp_path / "model.jax")
    found = program_of(tmp_path / "model.jax").call(X.astype(np.float32))
    mean, std = model.predict(X, return_std=True)
    assert_near(np.asarray(found["mean"], float) / factor, mean / factor)
    assert_near(np.asarray(found["std"], float) / factor, std / factor)


@pytest.mark.parametrize(("likelihood", "n_classes"), [("softmax", 3), ("bernoulli", 2)])
def test_probabilities_are_those_of_predict_proba(likelihood, n_classes, tmp_path):
    X, y = problems.classes(60, n_classes)
    model = deep_classifier(**TINY, likelihood=likelihood).fit(X, y)
    export(model, tmp_path / "model.jax")
    program = program_of(tmp_path / "model.jax")
    for n in (1, 7):
        found = program.call(X[:n].astype(np.float32))["probabilities"]
        assert_near(found, model.predict_proba(X[:n]))
    schema = json.loads((tmp_path / "model.json").read_text())
    assert schema["classes"]["values"] == model.classes_.tolist()
    assert schema["outputs"] == [
        {"name": "probabilities", "dtype": "float32", "shape": ["batch", n_classes]}
    ]


@pytest.mark.parametrize("kind", [DeepGPRegressor, DeepGPClassifier])
def test_predictions_of_unlike_members_are_mixed_as_by_the_model(kind, tmp_path):
    X, y = problems.numbers(40) if kind is DeepGPRegressor else problems.classes(40, 3)
    deep = Deep(n_layers=1, n_random_features=6, n_mc_predict=15, max_steps=20, objective="elbo")
    model = kind([("linear", Linear()), ("deep", deep)], random_state=0).fit(X, y)
    predictor = model.fitted_.predictor
    shares = np.linspace(1, 2, len(predictor.parts))
    assert predictor.in_rows
    assert predictor.deep
    mixed = dataclasses.replace(predictor, weights=shares / shares.sum())
    model.fitted_ = dataclasses.replace(model.fitted_, predictor=mixed)
    export(model, tmp_path / "model.jax")
    found = program_of(tmp_path / "model.jax").call(X.astype(np.float32))
    if kind is DeepGPClassifier:
        assert_near(found["probabilities"], model.predict_proba(X))
        return
    mean, std = model.predict(X, return_std=True)
    assert_near(found["mean"], mean)
    assert_near(found["std"], std)


def test_several_targets_keep_their_columns(tmp_path):
    X, y = problems.numbers(40)
    model = deep_regressor(**TINY).fit(X, np.stack([y, -y], axis=1))
    export(model, tmp_path / "model.jax")
    found = program_of(tmp_path / "model.jax").call(X[:3].astype(np.float32))
    assert_near(found["mean"], model.predict(X[:3]))


def test_clipped_and_compressed_inputs_are_treated_alike(regressor, exported):
    model, frame = regressor
    center = frame.median()
    wild = center + (frame[:3] - center) * np.array([[1.0], [30.0], [1e6]])
    wild = wild.astype(np.float32).astype(np.float64)
    with pytest.warns(UserWarning, match="clipped"):
        expected = model.predict(wild)
    assert_near(program_of(exported[0]).call(wild.to_numpy(np.float32))["mean"], expected)


def test_a_column_far_from_zero_loses_only_what_its_cast_loses(regressor, exported):
    model, frame = regressor
    rounded = frame.astype(np.float32)
    found = program_of(exported[0]).call(rounded.to_numpy())
    assert_near(found["mean"], model.predict(rounded.astype(np.float64)))


def test_the_schema_names_columns_and_the_digest_of_the_program(exported):
    assert [file.name for file in exported] == ["model.jax", "model.mlirbc", "model.json"]
    program, _, schema = exported
    schema = json.loads(schema.read_text())
    assert schema["input"]["columns"] == ["age", "height", "mass"]
    assert schema["input"]["shape"] == ["batch", 3]
    assert [output["name"] for output in schema["outputs"]] == ["mean", "std"]
    assert schema["sha256"] == hashlib.sha256(program.read_bytes()).hexdigest()
    assert schema["jax_version"] == jax.__version__
    assert tuple(schema["platforms"]) == program_of(program).platforms == PLATFORMS


def test_the_program_runs_where_bochner_is_not_imported(regressor, exported, tmp_path):
    model, frame = regressor
    rounded = frame[:5].astype(np.float32)
    np.save(tmp_path / "X.npy", rounded.to_numpy())
    script = (
        "import sys, jax, numpy as np\n"
        "from jax import export\n"
        "program = export.deserialize(bytearray(open(sys.argv[1], 'rb').read()))\n"
        "np.save('mean.npy', program.call(np.load('X.npy'))['mean'])\n"
        "assert 'bochner' not in sys.modules\n"
    )
    command = [sys.executable, "-c", script, str(exported[0])]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    assert_near(np.load(tmp_path / "mean.npy"), model.predict(rounded.astype(np.float64)))


def test_the_plain_program_is_stablehlo_with_a_free_batch_size(exported):
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir.dialects import stablehlo

    with make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, exported[1].read_bytes())
        text = module.operation.get_asm(large_elements_limit=4)
    assert "tensor<?x3xf32>" in text
    assert "custom_call @" not in text.replace("custom_call @shape_assertion", "")


def test_names_that_collide_are_refused(regressor, tmp_path):
    with pytest.raises(ValueError, match=r"use another ending, such as '\.jax'"):
        export(regressor[0], tmp_path / "model.json")


def test_files_of_others_are_replaced_only_where_asked(regressor, tmp_path):
    notes = tmp_path / "model.json"
    notes.write_text('{"format": "bochner-export", "program": "another.jax", "sha256": ""}')
    with pytest.raises(
        FileExistsError, match=r"model\.json exists and is not of an earlier export"
    ):
        export(regressor[0], tmp_path / "model.jax")
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    export(regressor[0], tmp_path / "model.jax", overwrite=True)
    export(regressor[0], tmp_path / "model.jax")
    assert json.loads(notes.read_text())["program"] == "model.jax"


def test_columns_that_float32_cannot_hold_are_refused(tmp_path):
    X, y = problems.numbers(40)
    model = deep_regressor(**TINY | {"max_steps": 2}).fit(X * [[1.0, 1e45, 1.0]], y)
    with pytest.raises(ValueError, match="float32 cannot hold"):
        export(model, tmp_path / "model.jax")
