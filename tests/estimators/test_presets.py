import math

import numpy as np
import pytest

from bochner import Deep, DeepGPClassifier, DeepGPRegressor
from bochner.fitting.config import Config
from bochner.fitting.recipes import Situation, fill
from tests.deep_alone import deep_regressor, settled
from tests.estimators import problems
from tests.estimators.problems import SMALL

X, Y = problems.numbers(60)
# Section 4.1 of the paper; the last group is the authors' code, where the paper is silent.
PAPER = {
    "n_layers": 2,
    "width": 3,
    "n_random_features": 100,
    "kernel": "rbf",
    "ard": True,
    "omega": "var-fixed",
    "feed_inputs": False,
    "likelihood": "gaussian",
    "local_reparameterization": False,
    "gradients": "exact",
    "precision": "float32",
    "batch_size": 200,
    "learning_rate": 0.01,
    "schedule": "constant",
    "n_mc_train": (1, 100),
    "n_mc_predict": 100,
    "theta_from": 12_000,
    "preprocessing": "standard",
    "validation_fraction": 0.0,
    "frequencies": "independent",
    "lengthscale_factor": 1.0,
    "noise_variance": math.exp(-2),
    "initial_log_var": 0.0,
    "omega_from": 0,
    # What the paper does not have is off.
    "residual": False,
    "objective": "elbo",
    "calibration": "none",
    "n_members": 1,
    "theta": "free",
    "theta_deviation": 1.0,
    "kl_weight": 1.0,
    "kl_warmup": 0.0,
    "averaging": 0.0,
}
PAPER_MNIST = PAPER | {
    "width": 50,
    "n_random_features": 500,
    "batch_size": 1000,
    "learning_rate": 0.001,
    "preprocessing": "unit",
}


def resolved(estimator, n_rows=1000, d_in=4):
    """The configuration of a fit, without the fit."""
    return settled(estimator, n_rows, np.random.default_rng(0).normal(size=(10, d_in)))


@pytest.mark.parametrize(("preset", "expected"), [("paper", PAPER), ("paper-mnist", PAPER_MNIST)])
def test_the_paper_is_followed_exactly(preset, expected):
    config = resolved(DeepGPRegressor(preset=preset, random_state=0))
    assert {name: getattr(config, name) for name in expected} == expected
    rest = set(Config.__dataclass_fields__) - set(expected)
    assert rest == {"preset", "max_steps", "max_seconds", "seed"}


def test_images_are_scaled_as_a_whole_and_tables_by_columns():
    images = np.random.default_rng(0).integers(0, 256, size=(200, 64)).astype(float)
    for X, scaling in (
        (images, "unit"),
        (images - 1, "compressed"),
        (images[:, :63], "compressed"),
    ):
        assert settled(DeepGPClassifier(), 1000, X).preprocessing == scaling
    asked = DeepGPClassifier(Deep(preprocessing="standard"))
    assert settled(asked, 1000, images).preprocessing == "standard"


def test_many_inputs_take_smaller_steps():
    rates = {d_in: resolved(DeepGPClassifier(), d_in=d_in).learning_rate for d_in in (4, 784)}
    assert rates == {4: 0.03, 784: 0.01}


@pytest.mark.parametrize(
    ("situation", "n_members"),
    [
        (Situation(4_140, 57, True), 8),
        (Situation(10_000, 57, True), 4),
        (Situation(4_140, 31, True), 4),
        (Situation(4_140, 64, True, pixels=True), 4),
        (Situation(4_140, 57, False), 2),
        (Situation(1_000, 57, False), 4),
    ],
)
def test_classes_from_many_inputs_and_few_rows_get_many_members(situation, n_members):
    assert fill({}, "auto", situation)["n_members"] == n_members


@pytest.mark.parametrize(
    ("situation", "frequencies"),
    [
        (Situation(3_000, 57, True), "sparse"),
        (Situation(3_000, 57, False), "orthogonal"),
        (Situation(3_000, 31, True), "orthogonal"),
        (Situation(3_000, 64, True, pixels=True), "orthogonal"),
        (Situation(10_000, 57, True), "orthogonal"),
    ],
)
def test_classes_of_many_columns_get_sparse_frequencies_and_images_do_not(situation, frequencies):
    assert fill({}, "auto", situation)["frequencies"] == frequencies


@pytest.mark.parametrize(
    ("n_rows", "asked", "share", "max_steps"),
    [
        (2_000, {}, 0.0, 1_000),
        (1_999, {}, 0.1, 1_500),
        (3_000, {"max_steps": 9_000}, 0.1, 9_000),
        (3_000, {"max_seconds": 9}, 0.1, None),
    ],
)
def test_classes_of_many_inputs_hold_rows_out_where_there_are_few_or_training_may_be_long(
    n_rows, asked, share, max_steps
):
    filled = fill(asked, "auto", Situation(n_rows, 57, True))
    assert (filled["validation_fraction"], filled["max_steps"]) == (share, max_steps)


def test_frequencies_that_are_drawn_anew_are_independent():
    filled = fill({"omega": "var-resampled"}, "auto", Situation(3_000, 57, True))
    assert filled["frequencies"] == "independent"


def test_the_paper_uses_softmax_for_two_classes():
    config = resolved(DeepGPClassifier(preset="paper"))
    assert config.likelihood == "softmax"


@pytest.mark.filterwarnings("ignore:training ended after")
def test_the_paper_starts_at_the_prior_with_theta_held():
    model = DeepGPRegressor(Deep(max_steps=1, n_mc_predict=2), preset="paper", random_state=0).fit(
        X, Y
    )
    first, last = model.model_.layers
    for layer, d_in in ((first, 3), (last, 3)):
        np.testing.assert_allclose(
            np.exp(layer.features.kernel.log_lengthscale), math.sqrt(d_in), rtol=1e-6
        )
        np.testing.assert_allclose(np.exp(layer.features.kernel.log_variance), 1.0)
    assert float(model.model_.likelihood.log_noise_variance[0]) == -2.0
    assert model.history_[0]["stage"] == "q(W) + q(Omega), 1 sample"
    fit = model.fitted_.deep
    untrained = fit.spec.start(Y[:, None], key=fit.key("start"))
    assert float(untrained.kl()) == 0.0


def test_a_preset_fills_only_what_is_left_open():
    config = resolved(
        DeepGPRegressor(Deep(n_layers=4, width=[9, 8, 7], kernel="arccos1"), preset="paper")
    )
    assert (config.n_layers, config.width, config.kernel) == (4, (9, 8, 7), "arccos1")
    assert config.n_random_features == 100


@pytest.mark.parametrize("preset", ["auto", "paper", "paper-mnist"])
def test_every_preset_gives_a_whole_configuration_for_any_size(preset):
    for n_rows in (2, 300, 10_000, 1_000_000):
        for d_in in (1, 10, 800):
            assert resolved(DeepGPRegressor(preset=preset), n_rows, d_in).preset == preset
            config = resolved(DeepGPClassifier(preset=preset), n_rows, d_in)
            assert config.likelihood in ("softmax", "bernoulli")


def test_seconds_take_the_place_of_the_presets_steps():
    config = resolved(DeepGPRegressor(max_seconds=7.0))
    assert (config.max_steps, config.max_seconds) == (None, 7.0)
    both = resolved(DeepGPRegressor(Deep(max_steps=50), max_seconds=7.0))
    assert (both.max_steps, both.max_seconds) == (50, 7.0)


def test_the_configuration_shows_what_was_used(regressor):
    for name, value in SMALL.items():
        if name not in ("random_state", "max_steps"):
            assert regressor.config_[name] == value
    assert all(regressor.config_[name] is not None for name in PAPER)
    assert isinstance(regressor.config_["seed"], int)
    Config(**regressor.config_)


def test_each_layer_may_have_its_own_width_features_and_kernel():
    settings = SMALL | {
        "n_layers": 3,
        "width": [2, 4],
        "n_random_features": [7, 8, 9],
        "kernel": ["rbf", "arccos1", "matern32"],
        "likelihood": "gaussian",
        "max_steps": 3,
        "feed_inputs": False,
    }
    model = deep_regressor(**settings).fit(X, Y)
    layers = model.model_.layers
    assert [layer.width for layer in layers] == [2, 4, 1]
    assert [type(layer.features.kernel).__name__ for layer in layers] == [
        "RBF",
        "ArcCosine",
        "Matern",
    ]
    assert [layer.q_W.mean.shape[0] for layer in layers] == [14, 8, 18]
    assert np.all(np.isfinite(model.predict(X)))


def test_one_layer_is_a_gaussian_process():
    model = deep_regressor(**SMALL | {"n_layers": 1, "max_steps": 600}).fit(X, Y)
    assert len(model.model_.layers) == 1
    assert model.score(X, Y) > 0.5


@pytest.mark.parametrize(
    ("asked", "n_members"),
    [
        ({}, 4),
        ({"max_seconds": 20}, 1),
        ({"max_seconds": np.float32(60.0)}, 2),
        ({"max_seconds": 119}, 3),
        ({"max_seconds": 1e9}, 4),
        ({"max_seconds": float("nan")}, 4),  # an error to come
        ({"max_seconds": "soon"}, 4),
        ({"max_seconds": 20, "n_members": 3}, 3),
    ],
)
def test_a_large_table_gets_the_members_that_there_is_time_for(asked, n_members):
    situation = Situation(n_rows=20_000, d_in=5, classification=True)
    assert fill(asked, "auto", situation)["n_members"] == n_members


def test_numbers_get_two_members_or_one():
    situation = Situation(n_rows=20_000, d_in=5, classification=False)
    members = [fill({"max_seconds": s}, "auto", situation)["n_members"] for s in (20, 59, 60, 500)]
    assert members == [1, 1, 2, 2]


def test_members_of_small_tables_of_many_columns_are_quick():
    situation = Situation(n_rows=3_000, d_in=57, classification=True)
    assert fill({"max_seconds": 5}, "auto", situation)["n_members"] == 8
