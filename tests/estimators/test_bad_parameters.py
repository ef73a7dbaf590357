"""Parameters out of range are refused before any work, by name and with what was expected."""

import numpy as np
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor
from bochner.fitting.config import Config
from bochner.fitting.recipes import PRESETS, Situation
from tests.deep_alone import deep_regressor
from tests.estimators import problems

X, Y = problems.numbers(20)


def refuses(message, **parameters):
    with pytest.raises(ValueError, match=message):
        deep_regressor(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    "name",
    [
        "n_layers",
        "width",
        "n_random_features",
        "batch_size",
        "max_steps",
        "n_mc_train",
        "n_mc_predict",
    ],
)
@pytest.mark.parametrize("value", [0, -3, 2.5, "many", True])
def test_sizes_must_be_positive_whole_numbers(name, value):
    refuses(f"`{name}` must be a whole number of at least 1; got {value!r}", **{name: value})


def test_whole_numbers_of_numpy_are_accepted():
    recipe = PRESETS["auto"](Situation(100, 3, classification=False))
    values = {**recipe, "preset": "auto", "max_seconds": None, "seed": 0, "width": np.int64(4)}
    assert Config.checked(values, ["heteroscedastic"]).width == 4


@pytest.mark.parametrize(
    "name", ["learning_rate", "max_seconds", "lengthscale_factor", "noise_variance"]
)
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), "fast"])
def test_rates_and_times_must_be_positive(name, value):
    refuses(f"`{name}` must be a finite number above 0; got", **{name: value})


@pytest.mark.parametrize(
    ("name", "wrong", "nearest"),
    [
        ("preset", "papr", "paper"),
        ("kernel", "rfb", "rbf"),
        ("kernel", "Matern-32", "matern32"),
        ("omega", "varfixed", "var-fixed"),
        ("frequencies", "ortogonal", "orthogonal"),
        ("likelihood", "gausian", "gaussian"),
        ("schedule", "cosin", "cosine"),
        ("preprocessing", "robus", "robust"),
    ],
)
def test_unknown_options_suggest_the_nearest(name, wrong, nearest):
    refuses(f"`{name}` must be one of .*got '{wrong}'. Did you mean '{nearest}'", **{name: wrong})


def test_a_regression_likelihood_is_unknown_to_the_classifier():
    with pytest.raises(ValueError, match="`likelihood` must be one of 'softmax', 'bernoulli'"):
        DeepGPClassifier(likelihood="gaussian").fit(X, Y > 30)


@pytest.mark.parametrize("name", ["ard", "feed_inputs", "local_reparameterization"])
def test_flags_must_be_true_or_false(name):
    refuses(f"`{name}` must be True, False, or None.*got 'no'", **{name: "no"})


@pytest.mark.parametrize("value", [-0.1, 1.0, "some"])
def test_the_held_out_share_must_be_below_one(value):
    refuses("`validation_fraction` must be at least 0 and below 1", validation_fraction=value)


@pytest.mark.parametrize("name", ["theta_from", "omega_from"])
@pytest.mark.parametrize("value", [-1, 1.5, "later"])
def test_stages_begin_at_a_step_a_fraction_or_never(name, value):
    refuses(f"`{name}` must be a number of steps, a fraction.*'never'", **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("width", [3, 3], "one for each of the 2 layers|one for each of the 1 hidden layer;"),
        ("n_random_features", [10], "one for each of the 2 layers; got 1"),
        ("kernel", ["rbf"] * 3, "one for each of the 2 layers; got 3"),
        ("n_mc_train", (1, 2, 3), "one number, or two.*got 3"),
    ],
)
def test_lists_must_fit_the_number_of_layers(name, value, message):
    refuses(f"`{name}` must be .*({message})", n_layers=2, **{name: value})


def test_an_unknown_device_lists_those_that_exist():
    refuses("`device` must name a device.*got 'abacus'. Available here: cpu", device="abacus")


def test_degree_zero_arc_cosine_is_refused_where_it_cannot_be_learned():
    refuses("degree 0 has zero gradients", kernel="arccos0", n_layers=2)


def test_an_unknown_parameter_is_refused_by_python():
    with pytest.raises(TypeError, match="n_layer"):
        DeepGPRegressor(n_layer=3)


@pytest.mark.parametrize("objective", ["elbo", "predictive", "evidence"])
@pytest.mark.parametrize("n_rows", [100, 100_000])
def test_an_objective_alone_needs_no_other_setting(objective, n_rows):
    situation = Situation(n_rows, 3, classification=False, asked={"objective": objective})
    values = {**PRESETS["auto"](situation), "preset": "auto", "max_seconds": None, "seed": 0}
    found = Config.checked(values | {"objective": objective}, ["heteroscedastic"])
    assert found.objective == objective
