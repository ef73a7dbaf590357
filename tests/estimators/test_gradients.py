"""The setting `gradients`: what the presets choose, where it is kept, and what files from before it mean."""

import numpy as np
import pytest

from bochner import Deep, DeepGPClassifier, DeepGPRegressor
from bochner.estimators.files import from_parts, to_parts
from bochner.fitting.config import Config
from bochner.gp.reparameterization import ClippedGradients, DrawWeights
from bochner.system.saving import read_arrays, write_arrays
from bochner.training import CheckpointError
from tests.deep_alone import deep_regressor, settled
from tests.estimators import problems
from tests.estimators.first_format import in_first_format
from tests.estimators.problems import SMALL

X, Y = problems.numbers(30)
DEEP = SMALL | {
    "n_layers": 10,
    "feed_inputs": True,
    "local_reparameterization": False,
    "n_random_features": 6,
    "n_mc_predict": 3,
    "max_steps": 4,
    "batch_size": 20,
    "initial_log_var": 0.0,
    "lengthscale_factor": 0.3,
}


@pytest.mark.parametrize("kind", [DeepGPRegressor, DeepGPClassifier])
@pytest.mark.parametrize(
    ("preset", "n_layers", "expected"),
    [
        ("paper", 30, "exact"),
        ("paper-mnist", 30, "exact"),
        ("auto", None, "exact"),
        ("auto", 9, "exact"),
        ("auto", 10, "clipped"),
        ("auto", np.int64(30), "clipped"),
    ],
)
def test_gradients_are_exact_in_the_paper_and_clipped_by_default_from_ten_layers_on(
    kind, preset, n_layers, expected
):
    for n_rows in (100, 3_000, 100_000):
        config = settled(kind(Deep(n_layers=n_layers), preset=preset), n_rows, X)
        assert config.gradients == expected
        clipped = isinstance(config.reparameterization, ClippedGradients)
        assert clipped == (expected == "clipped")


@pytest.mark.parametrize(("asked", "n_layers"), [("clipped", 2), ("exact", 30)])
def test_gradients_can_be_set_for_any_depth(asked, n_layers):
    for preset in ("auto", "paper"):
        model = DeepGPRegressor(Deep(n_layers=n_layers, gradients=asked), preset=preset)
        assert settled(model, 100, X).gradients == asked


def test_unknown_gradients_are_refused():
    with pytest.raises(ValueError, match=r"`gradients` must be one of 'exact', 'clipped'.*clipped"):
        DeepGPRegressor(Deep(gradients="clip")).fit(X, Y)


@pytest.fixture(scope="module")
def deep():
    """The same deep model with each kind of gradients, and with what the preset chooses."""
    return {
        gradients: deep_regressor(gradients=gradients, **DEEP).fit(X, Y)
        for gradients in ("exact", "clipped", None)
    }


def first_layer(model):
    return np.asarray(model.model_.layers[0].q_W.mean)


def test_a_fit_follows_the_gradients_that_its_configuration_names(deep):
    assert {name: model.config_["gradients"] for name, model in deep.items()} == {
        "exact": "exact",
        "clipped": "clipped",
        None: "clipped",
    }
    np.testing.assert_array_equal(first_layer(deep[None]), first_layer(deep["clipped"]))
    assert np.any(first_layer(deep["exact"]) != first_layer(deep["clipped"]))


def test_gradients_are_part_of_a_model_file(deep):
    for name in ("exact", "clipped"):
        loaded = from_parts(*to_parts(deep[name]))
        assert loaded.config_ == deep[name].config_
        assert loaded.members.gradients == name


def from_before_the_setting(model):
    """The model as it would come from a file written before there was the setting."""
    arrays, header = in_first_format(model)
    del header["config"]["gradients"], header["parameters"]["gradients"]
    return from_parts(arrays, header)


@pytest.mark.parametrize(("n_layers", "expected"), [(9, "exact"), (10, "clipped")])
@pytest.mark.parametrize("preset", ["auto", "paper"])
@pytest.mark.filterwarnings("ignore:training ended after")
def test_files_from_before_the_setting_say_what_was_done_then(preset, n_layers, expected):
    settings = DEEP | {"preset": preset, "n_layers": n_layers}
    model = deep_regressor(gradients=expected, **settings).fit(X, Y)
    old = from_before_the_setting(model)
    np.testing.assert_array_equal(old.predict(X), model.predict(X))
    assert old.config_ == model.config_
    # Both ways to go on keep it.
    further = from_before_the_setting(model).partial_fit(X, Y)
    again = from_before_the_setting(model).set_params(warm_start=True).fit(X, Y)
    for each in (further, again):
        assert each.config_["gradients"] == expected
        assert each.n_steps_ == 8
    np.testing.assert_array_equal(first_layer(further), first_layer(model.partial_fit(X, Y)))


def test_a_warm_start_may_change_the_gradients(deep):
    model = from_parts(*to_parts(deep["clipped"]))
    model.set_params(warm_start=True, members__gradients="exact")
    assert model.fit(X, Y).config_["gradients"] == "exact"


def test_a_checkpoint_from_before_the_setting_is_refused(tmp_path):
    settings = DEEP | {"n_layers": 2, "checkpoint": tmp_path, "checkpoint_seconds": 0.0}
    deep_regressor(**settings).fit(X, Y)
    for path in tmp_path.glob("*.checkpoint"):
        arrays, header = read_arrays(path)
        del header["fingerprint"]["gradients"]
        write_arrays(path, arrays, header)
    with pytest.raises(CheckpointError, match=r"another version of bochner.*'gradients'.*folder"):
        deep_regressor(**settings, resume=True).fit(X, Y)


def test_workers_are_told_of_clipped_gradients():
    from bochner.distributed.blueprint import described, reparameterization_of

    model = deep_regressor(**SMALL | {"max_steps": 1}).fit(X, Y)
    for gradients, expected in (("exact", DrawWeights), ("clipped", ClippedGradients)):
        values = model.config_ | {"gradients": gradients, "local_reparameterization": False}
        config = Config(**values)
        blueprint = described(model.model_, config.reparameterization, n_targets=1)
        assert isinstance(reparameterization_of(blueprint), expected)
