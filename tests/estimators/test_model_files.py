"""Save, load: bit-equal predictions, for every kind of model."""

import numpy as np
import pandas as pd
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, load
from bochner.frequencies import FREQUENCIES
from bochner.kernels import KERNELS
from bochner.likelihoods import CLASSIFICATION_LIKELIHOODS, REGRESSION_LIKELIHOODS
from bochner.saving import ModelFileError, read_arrays, write_arrays
from bochner.spectra import SPECTRA
from tests.estimators import problems
from tests.estimators.problems import SMALL

TINY = SMALL | {"max_steps": 2, "n_random_features": 6, "n_mc_predict": 3, "batch_size": 20}
# Together these hold every kernel, likelihood, spectrum, and way to draw frequencies.
CASES = {
    "arccos0": {"n_layers": 1, "ard": False, "omega": "prior-fixed", "likelihood": "gaussian"},
    "arccos1": {"likelihood": "heteroscedastic", "omega": "var-fixed", "feed_inputs": False},
    "arccos2": {"likelihood": "student-t", "omega": "var-resampled", "n_layers": 4},
    "matern12": {"likelihood": "poisson", "omega": "prior-fixed", "frequencies": "orthogonal"},
    "matern32": {"likelihood": "softmax", "omega": "var-fixed", "frequencies": "orthogonal"},
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
    model, _, _ = fitted("rbf")
    model.save(tmp_path / "model")
    arrays, header = read_arrays(tmp_path / "model")
    arrays.pop(next(name for name in arrays if "q_W" in name))
    write_arrays(tmp_path / "less", arrays, header)
    with pytest.raises(ModelFileError, match=r"lacks part of a model.*q_W"):
        load(tmp_path / "less")
