"""Members of each kind on their way to a file and back: bit-equal predictions, and changed files are refused."""

import copy
import dataclasses

import numpy as np
import pandas as pd
import pytest

from bochner import Constant, Deep, DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear
from bochner.estimators.files import from_parts, to_parts
from bochner.fitting.fingerprints import share_seen
from bochner.system.saving import ModelFileError, format_arrays, parse_arrays
from tests.members.tables import SIMPLE, TINY, curve, sides

KINDS = {
    "constant": Constant(),
    "linear": Linear(),
    "exact": Exact(),
    "plain": Exact(varying_noise=False),
    "landmarks": Landmarks(n_landmarks=10, n_learned_from=30),
    "deep": Deep(**TINY),
    "deep in a mixture": [*SIMPLE, ("deep", Deep(**TINY))],
    "several": [("few", Landmarks(n_landmarks=5)), ("all", Exact()), ("deep", Deep(**TINY))],
}


def again(model):
    return from_parts(*parse_arrays(format_arrays(*to_parts(model)), "x"))


def assert_same(loaded, model, X, y):
    for ask in (
        lambda one: one.log_prob(X, y),
        lambda one: one.sample_y(X, 3),
        lambda one: one.sample_functions(1)[0](X),
        lambda one: one.predict(X),
    ):
        np.testing.assert_array_equal(ask(loaded), ask(model))
    assert loaded.members_ == model.members_ or np.isnan(model.members_[0]["log_likelihood"])
    assert loaded.summary_ == model.summary_
    assert loaded.total_weight_ == model.total_weight_
    assert loaded.fitted_.seed == model.fitted_.seed
    np.testing.assert_array_equal(loaded.fitted_.background, model.fitted_.background)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_predicted_bit_by_bit(kind):
    X, y = curve(40)
    model = DeepGPRegressor(KINDS[kind], random_state=0).fit(X, np.exp(y / 10))
    loaded = again(model)
    assert_same(loaded, model, X, np.exp(y / 10))
    levels = [0.05, 0.5, 0.95]
    for name, values in model.predict_summary(X, levels).items():
        np.testing.assert_array_equal(loaded.predict_summary(X, levels)[name], values)
    assert loaded.evaluate(X, np.exp(y / 10)) == model.evaluate(X, np.exp(y / 10))


def test_how_rows_were_left_out_and_which_were_seen_is_kept_and_older_files_do_not_know():
    X, y = curve(40)
    model = DeepGPRegressor(Linear(), random_state=0).fit(X, y, time=np.arange(40))
    arrays, header = to_parts(model)
    loaded = again(model).fitted_
    assert loaded.judging == "later rows left out"
    assert share_seen(loaded.fingerprints, X[:10], y[:10, None]) == 1.0
    assert share_seen(loaded.fingerprints, X[:10], y[:10, None] + 1) == 0.0
    assert arrays["fingerprints"].nbytes <= 8000
    del arrays["fingerprints"], header["fitted"]["judging"]
    older = from_parts(arrays, header)
    assert older.fitted_.judging == ""
    assert share_seen(older.fitted_.fingerprints, X, y[:, None]) is None
    arrays["fingerprints"] = np.zeros(2000, np.uint64)
    with pytest.raises(ModelFileError, match="fingerprints"):
        from_parts(arrays, header)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_predicted_bit_by_bit(kind):
    X, y = sides(40)
    model = DeepGPClassifier(KINDS[kind], random_state=0).fit(X, y)
    loaded = again(model)
    assert_same(loaded, model, X, y)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.classes_.tolist() == ["high", "low", "middle"]


def test_several_targets_are_predicted_bit_by_bit(two_targets):
    X, y = curve(20, seed=1)
    assert_same(again(two_targets), two_targets, X, y[:, None] * [1.0, -100.0])


def test_a_table_is_encoded_as_before():
    X, y = curve(40)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(
        color=np.resize(["red", "blue", None], 40), y=y
    )
    table.loc[::7, "a"] = np.nan
    model = DeepGPRegressor([*SIMPLE, ("exact", Exact())], random_state=0).fit(table, "y")
    loaded = again(model)
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    assert loaded.fitted_.column_names == model.fitted_.column_names
    assert loaded.fitted_.sources == model.fitted_.sources


def test_what_was_loaded_is_saved_as_it_was(mixture, class_mixture, two_targets):
    for model in (mixture, class_mixture, two_targets):
        (arrays, header), (others, other_header) = (to_parts(one) for one in (model, again(model)))
        assert header == other_header
        assert arrays.keys() == others.keys()
        assert all(np.array_equal(arrays[name], others[name]) for name in arrays)


def test_all_that_is_fitted_is_stored(mixture):
    header = to_parts(mixture)[1]["fitted"]
    names = {field.name for field in dataclasses.fields(mixture.fitted_)}
    assert names - {"background", "fingerprints"} == header.keys()


def changed(model, change):
    """The parts of a model's file, its header changed."""
    arrays, header = to_parts(model)
    header = copy.deepcopy(header)
    change(header["fitted"], header["fitted"]["predictor"])
    return arrays, header


def put(*path, value):
    def change(fitted, predictor):
        inside = predictor if path[0] in ("weights", "parts", "rows", "kind") else fitted
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value

    return change


def without_last(fitted, predictor):
    predictor["parts"].pop()
    predictor["weights"] = [1 / len(predictor["parts"])] * len(predictor["parts"])


def one_more(fitted, predictor):
    predictor["parts"].append({"kind": "rows"})
    predictor["weights"] = [1 / len(predictor["parts"])] * len(predictor["parts"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("weights", 0, value=0.9), "weights do not add up to one"),
        (put("weights", 0, value=0.0), "weights are not all shares"),
        (put("weights", 0, value=True), "weights are not all shares"),
        (put("weights", value=[1.0]), "one a member"),
        (put("parts", value=[]), "not empty"),
        (put("parts", 0, value={"kind": "other"}), "one of its members is of no known kind"),
        (put("parts", 0, value="rows"), "one of its members is of no known kind"),
        (put("rows", value=None), "lacks one of its members"),
        (put("rows", "extent", value=[0.0]), "two numbers"),
        (put("rows", "extent", value=[0.0, float("nan")]), "extent of its targets"),
        (put("kind", value="tower"), "no known kind of predictor"),
        (one_more, "lacks one of its members"),
        (put("d_in", value=3), "background is not some rows of 3 numbers"),
        (put("d_in", value=0), "a count"),
        (put("seed", value=-1), "a seed"),
        (put("seed", value=2**32), "a seed"),
        (put("names", value=["a"]), "names of columns are not 2 texts"),
        (put("names", value=["a", 3]), "names of columns are not texts"),
        (put("total_weight", value=float("inf")), "finite, not below 0"),
        (put("summary", value={"other": 1.0}), "its summary holds 'other'"),
        (put("standings", value=[{"name": "x"}]), "a member"),
        (put("task", value={"n_targets": 2, "one_target": False}), "a stack is for one target"),
        (put("task", value={"n_targets": 2, "one_target": True}), "false for several"),
        (put("task", value={"classes": {"dtype": "int64", "values": [0, 1]}}), "."),
        (put("extra", value=1), "'extra'"),
    ],
)  # fmt: skip
def test_changed_files_of_mixtures_are_refused(mixture, change, message):
    with pytest.raises(ModelFileError, match=message):
        from_parts(*changed(mixture, change))


def test_a_member_without_its_place_is_refused(mixture):
    with pytest.raises(ModelFileError, match=r"member without weight|do not belong to it"):
        from_parts(*changed(mixture, without_last))


def test_arrays_that_belong_to_nobody_are_refused(mixture):
    arrays, header = to_parts(mixture)
    with pytest.raises(ModelFileError, match="arrays that do not belong to it: 'more'"):
        from_parts(arrays | {"more": np.zeros(2)}, header)


@pytest.mark.parametrize(
    "value",
    [np.zeros((3, 5)), np.full((3, 2), np.nan), np.zeros((3, 2), "f4"), np.zeros((2_000, 2))],
)
def test_another_background_is_refused(mixture, value):
    arrays, header = to_parts(mixture)
    with pytest.raises(ModelFileError, match="its background is not some rows of 2 numbers"):
        from_parts(arrays | {"background": value}, header)


def test_targets_that_are_not_there_are_refused(two_targets):
    def change(fitted, predictor):
        predictor["targets"].pop()

    with pytest.raises(ModelFileError, match="one a target"):
        from_parts(*changed(two_targets, change))


def test_an_estimator_of_another_task_is_refused(mixture, class_mixture):
    for model, other in ((mixture, "DeepGPClassifier"), (class_mixture, "DeepGPRegressor")):
        arrays, header = to_parts(model)
        header["parameters"].pop("class_weight", None)
        with pytest.raises(ModelFileError, match="estimator does not fit its task"):
            from_parts(arrays, header | {"estimator": other})


@pytest.mark.parametrize(
    "stored",
    [
        {"member": ["Deep", {"dict": [["n_layer", 3]]}]},
        {"member": ["os.system", {"dict": []}]},
        {"member": ["Deep"]},
        {"member": ["Deep", [1]]},
        {"member": 3},
    ],
)
def test_members_as_parameters_that_do_not_exist_are_refused(mixture, stored):
    arrays, header = to_parts(mixture)
    header = header | {"parameters": header["parameters"] | {"members": stored}}
    with pytest.raises(ModelFileError):
        from_parts(arrays, header)
