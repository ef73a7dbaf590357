"""Save, load: bit-equal predictions, for every kind of model."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, load
from bochner.estimators.files import from_parts, to_parts
from bochner.estimators.json_forms import classes_from, classes_to_json
from bochner.features.frequencies import FREQUENCIES
from bochner.features.spectra import SPECTRA
from bochner.kernels import KERNELS
from bochner.likelihoods import CLASSIFICATION_LIKELIHOODS, REGRESSION_LIKELIHOODS
from bochner.system.saving import (
    ModelFileError,
    format_arrays,
    parse_arrays,
    read_arrays,
    write_arrays,
)
from tests.estimators import problems
from tests.estimators.problems import SMALL
from tests.make_model_files import FOLDER, PREDICTIONS, table

TINY = SMALL | {"max_steps": 2, "n_random_features": 6, "n_mc_predict": 3, "batch_size": 20}
# Together these hold every kernel, likelihood, spectrum, and way to draw frequencies.
CASES = {
    "arccos0": {"n_layers": 1, "ard": False, "omega": "prior-fixed", "likelihood": "gaussian"},
    "arccos1": {"likelihood": "heteroscedastic", "omega": "var-fixed", "feed_inputs": False},
    "arccos2": {"likelihood": "student-t", "omega": "var-resampled", "n_layers": 4},
    "matern12": {"likelihood": "poisson", "omega": "prior-fixed", "frequencies": "orthogonal"},
    "matern32": {"likelihood": "softmax", "omega": "var-fixed", "frequencies": "sparse"},
    "matern52": {"likelihood": "bernoulli", "omega": "var-resampled"},
    "rbf": {"omega": "var-fixed", "frequencies": "independent", "width": [2, 3], "n_layers": 3},
}


def fitted(kernel):
    options = TINY | CASES[kernel] | {"kernel": kernel}
    if options.get("likelihood") in CLASSIFICATION_LIKELIHOODS:
        n_classes = 2 if options["likelihood"] == "bernoulli" else 3
        X, y = problems.classes(20, n_classes)
        return DeepGPClassifier(**options).fit(X, y), X, y
    X, y = problems.counts(20) if options.get("likelihood") == "poisson" else problems.numbers(20)
    return DeepGPRegressor(**options).fit(X, y), X, y


def test_the_cases_hold_every_part():
    used = [value for case in CASES.values() for value in case.values() if isinstance(value, str)]
    assert set(CASES) == set(KERNELS)
    assert {*REGRESSION_LIKELIHOODS, *CLASSIFICATION_LIKELIHOODS, *SPECTRA, *FREQUENCIES} <= {*used}


@pytest.mark.parametrize("kernel", CASES)
def test_a_loaded_model_predicts_the_same_bits(kernel, tmp_path):
    model, X, y = fitted(kernel)
    path = tmp_path / "model.bochner"
    model.save(path)
    loaded = load(path)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.sample_y(X, 2), model.sample_y(X, 2))
    np.testing.assert_array_equal(loaded.sample_functions(1)[0](X), model.sample_functions(1)[0](X))
    np.testing.assert_array_equal(loaded.relevance_, model.relevance_)
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
    model = DeepGPClassifier(**TINY).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))


def test_names_of_columns_are_kept(tmp_path):
    X, y = problems.numbers(20)
    frame = pd.DataFrame(X, columns=["age", "height", "mass"])
    model = DeepGPRegressor(**TINY).fit(frame, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["age", "height", "mass"]
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="same order as they were in fit"):
        loaded.predict(frame[["mass", "height", "age"]])


def test_several_targets_and_parameters_are_kept(tmp_path):
    X, y = problems.numbers(20)
    model = DeepGPRegressor(**TINY).fit(X, np.stack([y, -y], axis=1))
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.predict(X).shape == (20, 2)
    assert loaded.get_params() == model.get_params()


def test_a_loaded_model_can_be_trained_further(tmp_path):
    X, y = problems.numbers(20)
    model = DeepGPRegressor(**TINY).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for each in (model, loaded):
        each.partial_fit(X, y)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.total_weight_ == 40.0


def test_a_model_file_with_a_part_missing_is_refused(tmp_path):
    arrays, header = read_arrays(FOLDER / "regressor-1.bochner")
    arrays.pop(next(name for name in arrays if "q_W.log_var" in name))
    write_arrays(tmp_path / "less", arrays, header)
    with pytest.raises(ModelFileError, match=r"less cannot be opened.*lacks part of a model.*q_W"):
        load(tmp_path / "less")


def test_a_checkpoint_is_no_model_yet_holds_one(tmp_path):
    arrays, header = read_arrays(FOLDER / "regressor-1.bochner")
    arrays["training.step"] = np.array(3)
    header |= {"kind": "checkpoint", "training": {"step": 3}}
    write_arrays(tmp_path / "checkpoint", arrays, header)
    with pytest.raises(ModelFileError, match=r"is a checkpoint of a training.*`resume`"):
        load(tmp_path / "checkpoint")
    assert from_parts(*read_arrays(tmp_path / "checkpoint")).n_steps_ == header["n_steps_"]
    write_arrays(tmp_path / "model", arrays, header | {"kind": "model"})
    with pytest.raises(ModelFileError, match="'training', which this version does not know"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    "parameters",
    [
        {"width": [2], "kernel": ["rbf", "arccos1"], "n_random_features": (6, 5)},
        {"n_mc_train": (1, 2), "learning_rate": np.float64(0.01), "n_layers": np.int64(2)},
        {"class_weight": {"blue": 2.0, "green": 1, "red": 1.5}},
        {"class_weight": "balanced", "theta_from": "never", "max_seconds": 1.5},
    ],
)
def test_parameters_come_back_with_their_types(parameters):
    model = copy.copy(load(FOLDER / "classifier-1.bochner")).set_params(**parameters)
    found = from_parts(*parse_arrays(format_arrays(*to_parts(model)), "x")).get_params()
    assert found == model.get_params()
    sequences = {name: v for name, v in parameters.items() if isinstance(v, list | tuple | dict)}
    assert all(type(found[name]) is type(value) for name, value in sequences.items())


def test_what_belongs_to_one_machine_or_call_is_not_stored():
    model = load(FOLDER / "regressor-1.bochner").set_params(
        device="gpu:7", checkpoint="folder", resume=True, callbacks=[print],
        random_state=np.random.RandomState(0),
    )  # fmt: skip
    stored = to_parts(model)[1]["parameters"]
    assert not stored.keys() & {"device", "checkpoint", "resume", "callbacks", "random_state"}


def test_arrays_as_parameters_come_back_as_lists():
    model = load(FOLDER / "classifier-1.bochner").set_params(width=np.array([2]))
    assert from_parts(*to_parts(model)).width == [2]


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


def test_a_file_of_an_earlier_version_predicts_what_it_did():
    expected = json.loads(PREDICTIONS.read_text())
    X = pd.DataFrame(expected["X"])
    mean, std = load(FOLDER / "regressor-1.bochner").predict(X, return_std=True)
    np.testing.assert_allclose(mean, expected["regressor"]["mean"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(std, expected["regressor"]["std"], rtol=1e-5, atol=1e-5)
    found = load(FOLDER / "classifier-1.bochner").predict_proba(X)
    np.testing.assert_allclose(found, expected["classifier"]["probabilities"], rtol=1e-5, atol=1e-5)


def test_a_file_of_an_earlier_version_encodes_its_table():
    expected = json.loads(PREDICTIONS.read_text())["table"]["mean"]
    model = load(FOLDER / "table-1.bochner")
    assert model._target_name == "y"
    np.testing.assert_allclose(model.predict(table(8)), expected, rtol=1e-5, atol=1e-5)


def test_an_encoding_of_another_width_is_refused():
    arrays, header = read_arrays(FOLDER / "table-1.bochner")
    header["encoder"]["columns"].pop()
    with pytest.raises(ModelFileError, match=r"its encoding gives .* columns where"):
        from_parts(arrays, header)
