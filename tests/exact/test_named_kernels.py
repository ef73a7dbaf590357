"""Kernels that users choose, in estimators: columns by name or place, files, programs, drawn functions."""

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from bochner import Constant, DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear, load
from bochner.estimators.export import export
from bochner.exact import kernels
from bochner.exact.densities import DensityPart
from bochner.exact.kernels import Inputs

KERNELS = {
    "rbf": "rbf(size, 'dep time')",
    "laplace": "laplace(size, route)",
    "linear": "linear + constant",
    "category": "category(route) + constant",
    "category of numbers": "category(floor, route) + rbf(size)",
    "periodic": "periodic('dep time', period=6) + constant",
    "learned period": "periodic('dep time', near=5.7) + category(route)",
    "product": "category(route) * laplace('dep time') + (rbf(size) + constant) * linear(size)",
}


def table(n=90, seed=0):
    rng = np.random.default_rng(seed)
    route = rng.choice(["north", "south", "east"], n)
    frame = pd.DataFrame(
        {
            "route": route,
            "dep time": rng.uniform(0, 24, n),
            "size": rng.normal(size=n),
            "floor": rng.integers(0, 4, n),
        }
    )
    frame["delay"] = frame["size"] + np.sin(frame["dep time"]) + 2.0 * (route == "north")
    frame["delay"] += 0.1 * rng.normal(size=n)
    return frame


def regressor(kernel, kind=Exact, **settings):
    # One kernel, one transform and one law of noise, so that there is one model to look at.
    return DeepGPRegressor(kind(kernel=kernel, **settings), likelihood="gaussian", random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return {name: regressor(kernel).fit(table(), "delay") for name, kernel in KERNELS.items()}


def processes(model):
    return [part.part.process for part in model.fitted_.predictor.in_rows]


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_the_sum_asked_for_and_no_other(fitted, name):
    asked = kernels.parse(KERNELS[name])
    for process in processes(fitted[name]):
        assert type(process.kernel) is type(asked)
        assert len(getattr(process.kernel, "parts", ())) == len(getattr(asked, "parts", ()))
    assert all(one["name"].startswith("sum") for one in fitted[name].members_)


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_saved_predicts_the_same_to_the_bit(fitted, name, tmp_path):
    model, new = fitted[name], table(30, seed=1)
    model.save(tmp_path / "model.bochner")
    again = load(tmp_path / "model.bochner")
    assert kernels.parse(again.members.kernel) == kernels.parse(KERNELS[name])
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    for one, other in zip(again.predict_variance(new), model.predict_variance(new), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["category of numbers", "learned period", "product"])
def test_the_exported_program_predicts_the_same(fitted, name, tmp_path):
    model, new = fitted[name], table(30, seed=1)
    export(model, tmp_path / "model.jax")
    program = jax.export.deserialize(bytearray((tmp_path / "model.jax").read_bytes()))
    found = program.call(model.fitted_.encoder(pa.Table.from_pandas(new)).astype(np.float32))
    np.testing.assert_allclose(found["mean"], model.predict(new), rtol=1e-4, atol=1e-4)
    variance = np.sum(model.predict_variance(new), axis=0)
    np.testing.assert_allclose(found["std"], np.sqrt(variance), rtol=1e-3)


@pytest.mark.parametrize("name", ["laplace", "category of numbers", "learned period", "product"])
def test_drawn_functions_have_the_mean_and_variance_predicted(fitted, name):
    model, new = fitted[name], table(8, seed=1)
    values = np.stack([f(new) for f in model.sample_functions(100, random_state=0)])
    epistemic, _ = model.predict_variance(new)
    deviation = np.sqrt(epistemic)
    error = values.mean(axis=0) - model.predict(new)
    assert np.max(np.abs(error) / deviation) < 0.5  # five deviations of a mean of 100
    np.testing.assert_allclose(values.std(axis=0), deviation, rtol=0.35)


def test_the_same_columns_are_found_in_tables_frames_and_arrays():
    frame = table(60).drop(columns=["route"])
    X, y = frame.drop(columns=["delay"]), frame["delay"]
    named = "laplace('dep time') + rbf(floor, size) + constant"
    placed = "laplace(0) + rbf(2, 1) + constant"
    in_other_order = frame[["size", "delay", "floor", "dep time"]]
    array = X.to_numpy()
    expected = regressor(placed).fit(array, y.to_numpy()).predict(array)
    # To what the climb to the best parameters loses by rounding.
    close = {"atol": 2e-3}
    for kernel in (named, placed):
        found = regressor(kernel).fit(X, y).predict(X)
        np.testing.assert_allclose(found, expected, **close)
        found = regressor(kernel).fit(frame, "delay").predict(frame)
        np.testing.assert_allclose(found, expected, **close)
    found = regressor(kernels.parse(named)).fit(in_other_order, "delay").predict(frame)
    np.testing.assert_allclose(found, expected, **close)
    other = regressor("laplace(1) + rbf(0, 2) + constant").fit(array, y.to_numpy())
    assert np.max(np.abs(other.predict(array) - expected)) > 0.02


def test_columns_that_are_not_named_change_nothing(fitted):
    new = table(20, seed=1)
    other = new.assign(route="south", floor=3)
    model = fitted["rbf"]
    np.testing.assert_array_equal(model.predict(new), model.predict(other))
    assert np.ptp(fitted["laplace"].predict(new) - fitted["laplace"].predict(other)) > 0.1


def test_a_value_never_seen_has_the_variance_of_the_prior(fitted):
    model = fitted["category"]
    new = table(2).assign(route=["north", "west"])
    X = model.fitted_.encoder(pa.Table.from_pandas(new))
    for part in model.fitted_.predictor.in_rows:
        process = part.part.process
        of_category, of_constant = np.exp(process.v)
        known, unknown = process.predict(part.columns(X))[1]
        assert of_category < unknown < of_category + of_constant
        assert known < 0.1 * of_category
    epistemic, _ = model.predict_variance(new)
    assert epistemic[0] < 0.1 * epistemic[1]


WRONG = {
    "rbf(siz)": "there is no column 'siz' for the kernel. Did you mean 'size'? The columns are "
    "'route', 'dep time', 'size', 'floor'.",
    "rbf(delay)": "there is no column 'delay' for the kernel",
    "rbf(4)": "there is no column 4 for the kernel",
    "rbf(size": "expected `)`",
    "periodic(route, period=2)": "needs a column of numbers that are not all the same",
    7: "`kernel` must be one of `bochner.exact.kernels`, or a text",
}


@pytest.mark.parametrize("kernel", WRONG, ids=str)
def test_what_cannot_be_is_said_before_any_work(kernel):
    with pytest.raises(ValueError, match=r"kernel|column") as caught:
        regressor(kernel).fit(table(30), "delay")
    assert WRONG[kernel] in str(caught.value)


def test_names_are_not_for_arrays_without_them():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="have no names, but places from 0 to 1"):
        regressor("rbf(size)").fit(X, X[:, 0])


def test_a_name_that_is_a_number_is_meant_in_quotes():
    inputs = Inputs(((0,), (1,)), ("2020", "2021"))
    assert inputs.numbers("2021") == (1,)
    with pytest.raises(ValueError, match="Did you mean '2021'"):
        inputs.numbers(2021)


def test_a_date_has_parts_with_names():
    when = pd.date_range("2024-01-01", periods=60, freq="37h")
    frame = pd.DataFrame({"when": when, "y": np.cos(2 * np.pi * np.arange(60) * 37 / 24 / 30)})
    model = regressor("rbf('when: day of week') + laplace(when) + constant").fit(frame, "y")
    first, second, _ = processes(model)[0].kernel.parts
    assert first.columns == (2,)
    assert second.columns == (0, 1, 2, 3)


def test_a_resolved_kernel_tells_what_it_was(fitted):
    for name, text in KERNELS.items():
        columns = fitted[name].fitted_.predictor.in_rows[0].columns.columns
        found = processes(fitted[name])[0].kernel
        assert found.called(["route", "dep time", "size", "floor"], columns) == kernels.parse(text)


def test_kernels_are_parameters_like_others():
    kernel = kernels.RBF("size") + kernels.Constant()
    model = regressor(kernel)
    assert clone(model).members.kernel == kernel
    model.set_params(members__kernel="laplace")
    assert model.get_params()["members__kernel"] == "laplace"
    assert "RBF('size') + Constant()" in repr(Exact(kernel=kernel))


def test_several_kernels_are_weighed_against_each_other():
    members = [
        ("constant", Constant()),
        ("plane", Linear()),
        ("smooth", Exact(kernel="rbf(size) + constant")),
        ("rough", Exact(kernel=kernels.Laplace() + kernels.Constant())),
    ]
    model = DeepGPRegressor(members, likelihood="gaussian", random_state=0)
    model.fit(table(60), "delay")
    names = {one["name"].split(",")[0] for one in model.members_}
    assert names == {"constant", "linear", "smooth: sum", "rough: sum"}


@pytest.mark.parametrize("kind", ["landmarks", "classes", "landmarks of classes", "two targets"])
def test_every_kind_of_fit_has_the_kernel(kind):
    frame, kernel = table(150), "category(route) + rbf(size) * linear('dep time') + constant"
    member = Exact(kernel=kernel)
    if kind.startswith("landmarks"):
        member = Landmarks(kernel=kernel, n_landmarks=40, n_learned_from=60)
    if kind.endswith("classes"):
        frame["delay"] = np.where(frame["delay"] > 1, "late", "early")
        model = DeepGPClassifier(member, random_state=0).fit(frame, "delay")
    elif kind == "two targets":
        X, Y = frame[["size", "dep time"]], frame[["delay", "size"]].to_numpy()
        member = Exact(kernel="rbf(size) + constant", varying_noise=False)
        model = DeepGPRegressor(member, random_state=0).fit(X, Y)
        assert len(model.members_) >= 2
    else:
        model = DeepGPRegressor(member, random_state=0).fit(frame, "delay")
    parts = [one.part for one in model.fitted_.predictor.in_rows]
    assert parts
    for part in parts:
        if isinstance(part, DensityPart):  # its functions are those of the best process
            assert "rbf" in str(part.landmarks.kernel)
            continue
        process = getattr(part, "process", None) or part.functions.processes[0]
        found = getattr(process, "landmarks", process).kernel
        assert "rbf" in str(found)
        assert "laplace" not in str(found)
