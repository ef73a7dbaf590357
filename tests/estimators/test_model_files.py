"""Save, load: bit-equal predictions, for every kind of model."""

import json

import numpy as np
import pandas as pd
import pytest

from bochner import Constant, Deep, Exact, Landmarks, Linear, load
from bochner.estimators.files import from_parts, to_parts
from bochner.features.frequencies import FREQUENCIES
from bochner.features.spectra import SPECTRA
from bochner.fitting.json_forms import classes_from, classes_to_json
from bochner.kernels import KERNELS
from bochner.likelihoods import CLASSIFICATION_LIKELIHOODS, LIKELIHOODS
from bochner.system.saving import (
    ModelFileError,
    format_arrays,
    parse_arrays,
    read_arrays,
    write_arrays,
)
from tests.deep_alone import deep_classifier, deep_regressor, parameters_of
from tests.estimators import problems
from tests.estimators.first_format import in_first_format
from tests.estimators.problems import SMALL
from tests.make_model_files import FOLDER, VERSION, rows, table

TINY = SMALL | {"max_steps": 2, "n_random_features": 6, "n_mc_predict": 3, "batch_size": 20}
# Together these hold every kernel, likelihood, spectrum, and way to draw frequencies.
CASES = {
    "arccos0": {"n_layers": 1, "ard": False, "omega": "prior-fixed", "likelihood": "gaussian"},
    "arccos1": {"likelihood": "heteroscedastic", "omega": "var-fixed", "feed_inputs": False},
    "arccos2": {"likelihood": "student-t", "omega": "var-resampled", "n_layers": 4},
    "matern12": {"likelihood": "poisson", "omega": "prior-fixed", "frequencies": "orthogonal"},
    "matern32": {"likelihood": "softmax", "omega": "var-fixed", "frequencies": "sparse"},
    "matern52": {"likelihood": "bernoulli", "omega": "var-resampled"},
    "rbf": {
        "likelihood": "gamma", "omega": "var-fixed", "frequencies": "independent", "width": [2, 3],
        "n_layers": 3,
    },
}  # fmt: skip
CASES = {name: {"kernel": name, **case} for name, case in CASES.items()}
for setting, choices in {
    "kernel": KERNELS, "likelihood": LIKELIHOODS, "omega": SPECTRA, "frequencies": FREQUENCIES,
}.items():  # fmt: skip
    held = {case.get(setting) for case in CASES.values()}
    CASES |= {name: {setting: name, "n_layers": 1} for name in choices if name not in held}


def fitted(name):
    options = TINY | CASES[name]
    law = CLASSIFICATION_LIKELIHOODS.get(options.get("likelihood"))
    if law is not None:
        X, y = problems.classes(20, law.n_classes or 3)
        return deep_classifier(**options).fit(X, y), X, y
    counts = "likelihood" in options and LIKELIHOODS[options["likelihood"]].discrete
    X, y = problems.counts(20) if counts else problems.numbers(20)
    return deep_regressor(**options).fit(X, y), X, y


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_predicts_the_same_bits(name, tmp_path):
    model, X, y = fitted(name)
    path = tmp_path / "model.bochner"
    model.save(path)
    loaded = load(path)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.sample_y(X, 2), model.sample_y(X, 2))
    np.testing.assert_array_equal(loaded.sample_functions(1)[0](X), model.sample_functions(1)[0](X))
    assert loaded.explain().columns == model.explain().columns
    assert loaded.config_ == model.config_
    assert loaded.history_ == model.history_
    assert (loaded.elbo_, loaded.n_steps_) == (model.elbo_, model.n_steps_)
    loaded.save(tmp_path / "again")
    (arrays, header), (others, other_header) = (read_arrays(p) for p in (path, tmp_path / "again"))
    assert header == other_header
    assert arrays.keys() == others.keys()
    assert all(np.array_equal(arrays[name], others[name]) for name in arrays)


@pytest.mark.parametrize("dtype", [str, object, int, bool])
def test_classes_keep_their_names_and_types(dtype, tmp_path):
    X, y = problems.classes(20, n_classes=2)
    y = (y == "blue").astype(dtype) if dtype in (int, bool) else y.astype(dtype)
    model = deep_classifier(**TINY).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))


def test_names_of_columns_are_kept(tmp_path):
    X, y = problems.numbers(20)
    frame = pd.DataFrame(X, columns=["age", "height", "mass"])
    model = deep_regressor(**TINY).fit(frame, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["age", "height", "mass"]
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="same order as they were in fit"):
        loaded.predict(frame[["mass", "height", "age"]])


def test_several_targets_and_parameters_are_kept(tmp_path):
    X, y = problems.numbers(20)
    model = deep_regressor(**TINY).fit(X, np.stack([y, -y], axis=1))
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.predict(X).shape == (20, 2)
    assert parameters_of(loaded) == parameters_of(model)


def test_a_loaded_model_can_be_trained_further(tmp_path):
    X, y = problems.numbers(20)
    model = deep_regressor(**TINY).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for each in (model, loaded):
        each.partial_fit(X, y)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.total_weight_ == 40.0


def test_a_model_file_with_a_part_missing_is_refused(tmp_path):
    arrays, header = read_arrays(FOLDER / "regressor-2.bochner")
    arrays.pop(next(name for name in arrays if "q_W.log_var" in name))
    write_arrays(tmp_path / "less", arrays, header)
    with pytest.raises(ModelFileError, match=r"less cannot be opened.*lacks part of a model.*q_W"):
        load(tmp_path / "less")


def test_a_checkpoint_is_no_model(tmp_path):
    X, y = problems.numbers(20)
    settings = TINY | {"checkpoint": tmp_path, "checkpoint_seconds": 0.0}
    deep_regressor(**settings).fit(X, y)
    checkpoint = next(tmp_path.glob("*.checkpoint"))
    with pytest.raises(ModelFileError, match=r"is a checkpoint of a training.*`resume`"):
        load(checkpoint)
    with pytest.raises(ModelFileError, match="holds 'checkpoint' and not a model"):
        from_parts(*read_arrays(checkpoint))


@pytest.mark.parametrize("name", ["regressor-1", "mixture-2"])
def test_what_is_not_known_is_refused(name, tmp_path):
    arrays, header = read_arrays(FOLDER / f"{name}.bochner")
    write_arrays(tmp_path / "model", arrays, header | {"training": {"step": 3}})
    with pytest.raises(ModelFileError, match="'training', which this version does not know"):
        from_parts(arrays, header | {"training": {"step": 3}})
    with pytest.raises(ModelFileError, match="arrays that do not belong to it"):
        from_parts(arrays | {"training.step": np.array(3)}, header)


def again(model):
    """A model as it comes back from a file."""
    return from_parts(*parse_arrays(format_arrays(*to_parts(model)), "x"))


@pytest.mark.parametrize(
    "settings",
    [
        {"width": [2], "kernel": ["rbf", "arccos1"], "n_random_features": (6, 5)},
        {"n_mc_train": (1, 2), "learning_rate": np.float64(0.01), "n_layers": np.int64(2)},
        {"theta_from": "never"},
    ],
)
def test_settings_of_members_come_back_with_their_types(settings):
    model = load(FOLDER / "classifier-1.bochner")
    model.set_params(**{f"members__{name}": value for name, value in settings.items()})
    found = again(model).members.get_params()
    assert found == model.members.get_params()
    sequences = {name: v for name, v in settings.items() if isinstance(v, list | tuple)}
    assert all(type(found[name]) is type(value) for name, value in sequences.items())


@pytest.mark.parametrize(
    "parameters",
    [
        {"class_weight": {"blue": 2.0, "green": 1, "red": 1.5}},
        {"class_weight": "balanced", "max_seconds": 1.5, "preset": "paper"},
        {"members": "auto", "random_state": 3},
        {"members": [("deep", Deep(n_layers=4)), ("exact", Exact(varying_noise=False))]},
        {"members": (("landmarks", Landmarks(n_landmarks=7)), ("linear", Linear()))},
        {"members": Constant()},
    ],
)
def test_parameters_come_back_with_their_types(parameters):
    model = load(FOLDER / "classifier-1.bochner").set_params(**parameters)
    loaded = again(model)
    assert parameters_of(loaded) == parameters_of(model)
    for name in parameters:
        assert type(getattr(loaded, name)) is type(getattr(model, name))


def test_what_belongs_to_one_machine_or_call_is_not_stored():
    model = load(FOLDER / "regressor-1.bochner").set_params(
        device="gpu:7", checkpoint="folder", resume=True, callbacks=[print],
        random_state=np.random.RandomState(0),
    )  # fmt: skip
    stored = to_parts(model)[1]["parameters"]
    assert not stored.keys() & {"device", "checkpoint", "resume", "callbacks", "random_state"}


def test_arrays_as_parameters_come_back_as_lists():
    model = load(FOLDER / "classifier-1.bochner").set_params(members__width=np.array([2]))
    assert again(model).members.width == [2]


@pytest.mark.parametrize(
    "classes",
    [np.array([3, 5], np.int8), np.array([0.5, 1.5]), np.array(["a", "b"], "<U7"), np.array([False, True])],
)  # fmt: skip
def test_types_of_classes_come_back(classes):
    found = classes_from(json.loads(json.dumps(classes_to_json(classes))))
    assert found.dtype.kind == classes.dtype.kind
    assert found.tolist() == classes.tolist()
    assert classes.dtype.kind == "U" or found.dtype == classes.dtype


def test_classes_that_cannot_come_back_are_not_written():
    with pytest.raises(ModelFileError, match="classes"):
        classes_to_json(np.array([b"a", b"b"], dtype=object))


# Files of earlier versions.


def predicts(name, expected):
    """Whether a file predicts what it did, up to a millionth of a deviation."""
    model = load(FOLDER / name)
    X = rows(8) if model.fitted_.encoder is None else table(8)
    if "probabilities" in expected:
        found = model.predict_proba(X)
        np.testing.assert_allclose(found, expected["probabilities"], rtol=0, atol=1e-6)
        return
    mean, std = model.predict(X, return_std=True)
    deviation = np.asarray(expected.get("std", std))
    assert np.abs((mean - expected["mean"]) / deviation).max() < 1e-6
    np.testing.assert_allclose(std, deviation, rtol=1e-6)


@pytest.mark.parametrize("version", [1, VERSION])
def test_files_of_each_version_predict_what_they_did(version):
    expected = json.loads((FOLDER / f"predictions-{version}.json").read_text())
    names = expected.keys() - {"X"}
    files = {path.name for path in FOLDER.glob(f"*-{version}.bochner")}
    assert files == {f"{name}-{version}.bochner" for name in names}
    for name in names:
        predicts(f"{name}-{version}.bochner", expected[name])


def test_a_file_of_the_first_version_is_a_deep_model_alone():
    model = load(FOLDER / "regressor-1.bochner")
    assert (model.members.n_layers, model.members.kernel) == (3, "matern32")
    assert (model.config_["n_layers"], model.n_steps_, model.total_weight_) == (3, 10, 60.0)
    assert model.get_params()["random_state"] == 0
    assert [one["weight"] for one in model.members_] == []
    table_model = load(FOLDER / "table-1.bochner")
    assert (table_model.fitted_.target, table_model.likelihood) == ("y", "student-t")


def test_a_file_of_the_first_version_can_be_trained_further_and_saved():
    X = rows(60)
    model = load(FOLDER / "regressor-1.bochner").partial_fit(X, 5.0 + np.sin(X["age"]))
    assert (model.n_steps_, model.total_weight_) == (20, 120.0)
    np.testing.assert_array_equal(again(model).predict(X), model.predict(X))


@pytest.mark.parametrize("omega", ["prior-fixed", "var-resampled"])
def test_a_header_of_the_first_version_gives_the_same_model(omega):
    X, y = problems.numbers(20)
    frame = pd.DataFrame(X, columns=["age", "height", "mass"])
    model = deep_regressor(**TINY | {"omega": omega}).fit(frame, y)
    old = from_parts(*in_first_format(model))
    np.testing.assert_array_equal(old.predict(frame), model.predict(frame))
    assert parameters_of(old) == parameters_of(model)
    assert old.config_ == model.config_
    assert old.history_ == model.history_
    arrays, header = in_first_format(model)
    del header["history_"]
    with pytest.raises(ModelFileError, match="lacks 'history_'"):
        from_parts(arrays, header)


@pytest.mark.parametrize(
    ("name", "place"), [("table-1", []), ("table-2", ["fitted"]), ("landmarks-2", ["fitted"])]
)
def test_an_encoding_of_another_width_is_refused(name, place):
    arrays, header = read_arrays(FOLDER / f"{name}.bochner")
    inside = header
    for key in place:
        inside = inside[key]
    inside["encoder"]["columns"].pop()
    with pytest.raises(ModelFileError, match=r"its encoding gives .* columns where"):
        from_parts(arrays, header)
