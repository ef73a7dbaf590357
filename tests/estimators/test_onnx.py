"""An ONNX runtime computes what the model predicts."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear
from bochner.estimators.export import export
from tests.deep_alone import deep_regressor
from tests.estimators import problems
from tests.estimators.test_export import TINY

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from bochner.estimators.onnx_graph import NotInOnnxError, onnx_model  # noqa: E402
from bochner.estimators.onnx_operators import RULES  # noqa: E402

N = 40


def run(model, X):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": np.float32(X)}), strict=True))


def exported(model, folder):
    (path,) = export(model, folder / "model.onnx", format="onnx")
    return path


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.float32(rng.normal(size=(N, 3))).astype(float)
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=N)


@pytest.mark.parametrize(
    ("member", "bend"),
    [
        (Linear(), None),
        (Exact(), None),
        (Exact(), lambda y: np.exp(3 * y)),  # a logarithm is learned
        (Exact(kernel="rbf(0) * periodic(1, period=3) + laplace(2) + linear"), None),
        (Landmarks(n_landmarks=20), None),
    ],
)
def test_mean_and_deviation_are_those_of_predict_at_any_batch_size(member, bend, table, tmp_path):
    X, y = table
    model = DeepGPRegressor(member, random_state=0).fit(X, y if bend is None else bend(y))
    path = exported(model, tmp_path)
    for n in (N, 1):
        found, (mean, std) = run(path, X[:n]), model.predict(X[:n], return_std=True)
        assert found["mean"].shape == (n,)
        np.testing.assert_allclose(found["mean"], mean, rtol=1e-5)
        np.testing.assert_allclose(found["std"], std, rtol=1e-5)


def test_deep_models_agree_up_to_single_precision(tmp_path):
    X, y = problems.numbers(80)
    X = np.float32(X).astype(float)
    model = deep_regressor(omega="var-fixed", **TINY, likelihood="heteroscedastic").fit(X, y)
    found, (mean, std) = run(exported(model, tmp_path), X), model.predict(X, return_std=True)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["std"], std, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_predict_proba(n_classes, table, tmp_path):
    X, y = table
    labels = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = DeepGPClassifier(Exact(), random_state=0).fit(X, labels)
    found = run(exported(model, tmp_path), X)["probabilities"]
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-5, atol=1e-6)


def test_the_file_says_how_columns_are_encoded(table, tmp_path):
    X, y = table
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "u", "v"), "c": X[:, 2]})
    frame.loc[::7, "c"] = np.nan
    model = DeepGPRegressor(Exact(), random_state=0).fit(frame, y)
    path = exported(model, tmp_path)
    entries = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    schema = json.loads(entries["schema"])
    assert schema["input"]["columns"] == model.fitted_.column_names
    assert [one["shape"] for one in schema["outputs"]] == [["batch"], ["batch"]]
    assert "encoder" in schema
    encoded = model._checked_inputs(frame)
    found = run(path, encoded)
    np.testing.assert_allclose(found["mean"], model.predict(frame), rtol=1e-5)


def test_several_targets_keep_their_columns(table, tmp_path):
    X, y = table
    model = DeepGPRegressor(Linear(), random_state=0).fit(X, np.stack([y, -3 * y], axis=1))
    found = run(exported(model, tmp_path), X)
    np.testing.assert_allclose(found["mean"], model.predict(X), rtol=1e-5)


def test_an_earlier_export_is_replaced_and_nothing_else(table, tmp_path):
    model = DeepGPRegressor(Linear(), random_state=0).fit(*table)
    path = exported(model, tmp_path)
    before = path.read_bytes()
    exported(model, tmp_path)
    assert path.read_bytes() == before
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"model\.onnx exists"):
        exported(model, tmp_path)
    assert path.read_text() == "mine"
    export(model, path, format="onnx", overwrite=True)
    assert path.read_bytes() == before


def test_what_has_no_rule_is_named_before_anything_is_written(table, tmp_path, monkeypatch):
    model = DeepGPRegressor(Linear(), random_state=0).fit(*table)
    monkeypatch.delitem(RULES, "dot_general")
    with pytest.raises(ValueError, match="computes with the operation 'dot_general'"):
        exported(model, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_format_that_is_none_is_refused(table, tmp_path):
    model = DeepGPRegressor(Linear(), random_state=0).fit(*table)
    with pytest.raises(ValueError, match="`format` must be one of 'stablehlo', 'onnx'"):
        export(model, tmp_path / "model", format="onxx")


X32 = np.float32([[-30, -0.5, 3.0], [-1e-4, 2e-5, 0.01], [1e-7, 0.0, 20.0], [0.5, 1.5, 2.5]])
GRID = np.float32([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]])


def places(X):
    return jnp.clip(X, 0, 1).astype(jnp.int32)


@pytest.mark.parametrize(
    "program",
    [
        jnp.expm1,
        lambda X: jnp.log1p(jnp.abs(X)),
        jnp.round,
        lambda X: jax.lax.integer_pow(X + 40, -2),
        lambda X: jnp.where(jnp.isfinite(X / X), X, -1.0),
        lambda X: X.any(axis=1).astype(jnp.float32)[:, None] * X,
        lambda X: jnp.asarray(GRID)[places(X), places(-X)],
        lambda X: jnp.take_along_axis(X, places(X), axis=1),
        lambda X: jax.vmap(lambda row: row[places(row)])(X),
        lambda X: jnp.searchsorted(GRID[0], X[:, 0]).astype(jnp.float32),
        lambda X: jax.lax.scan(lambda s, c: (s * c + X, s.sum()), X, GRID[0])[0],
        lambda X: jnp.einsum("ni,nj->nij", X, X).reshape(X.shape[0], 9),
    ],
)
def test_operations_are_those_of_jax(program):
    with jax.numpy_rank_promotion("allow"):
        expected = program(jnp.asarray(X32))
        model = onnx_model(lambda X: {"found": program(X)}, 3, "{}")
    np.testing.assert_allclose(run(model, X32)["found"], expected, rtol=3e-6, atol=1e-30)


def test_operations_without_a_rule_are_named():
    with pytest.raises(NotInOnnxError, match="'erf_inv'"):
        onnx_model(lambda X: {"found": jax.scipy.special.erfinv(X)}, 3, "{}")


def test_operations_of_a_program_within_a_program_are_refused_by_its_name():
    with pytest.raises(NotInOnnxError, match="the operation 'remat"):
        onnx_model(lambda X: {"found": jax.checkpoint(jnp.sin)(X)}, 3, "{}")


@pytest.mark.parametrize(
    "options", [{"mode": "clip"}, {"mode": "fill"}, {"mode": "fill", "fill_value": 7}]
)
@pytest.mark.parametrize("table", [GRID[0], GRID.T, np.int32(GRID[1])])
def test_entries_out_of_range_are_what_jax_takes_for_them(table, options):
    def program(X):
        # From -30 to 20 where there are three.
        return jnp.take(jnp.asarray(table), jnp.round(X).astype(jnp.int32), axis=0, **options)

    model = onnx_model(lambda X: {"found": program(X)}, 3, "{}")
    np.testing.assert_array_equal(run(model, X32)["found"], program(jnp.asarray(X32)))
