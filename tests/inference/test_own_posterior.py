"""An objective that the library does not have, with a posterior of its own: a class and its line in the registry."""

import equinox as eqx
import numpy as np
import pytest

from bochner import Deep, DeepGPRegressor, load
from bochner.fitting.resolving import Asked, able_to_go_on
from bochner.inference.bound import expected_log_likelihood
from bochner.inference.objectives import OBJECTIVES, AbstractObjective
from bochner.posteriors.gaussians import FactorizedGaussian

NARROWER = 2.0


def last_log_var(model):
    return model.blocks[-1].q_W.log_var


class Narrowed(AbstractObjective):
    """The bound, of which models predict by a q(W) of the last layer with smaller variances."""

    has_own_posterior = True

    def check(self, config):
        if config.residual:
            raise ValueError("`narrowed` has no residual layers.")

    def fit(self, model, batch, noise, reparameterization, *, one_at_a_time):
        return expected_log_likelihood(
            model, batch.X, batch.Y, batch.weights, noise, reparameterization, one_at_a_time=one_at_a_time
        )  # fmt: skip

    def posterior(self, model, data, *, n_draws, key):
        return eqx.tree_at(last_log_var, model, last_log_var(model) - NARROWER)

    def as_trained(self, model, *, n_draws):
        return [
            eqx.tree_at(last_log_var, one, last_log_var(one) + NARROWER) for one in model.each()
        ]


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(40, 2))
    return X, np.sin(X[:, 0])


@pytest.fixture(scope="module")
def fitted(rows):
    """Models trained on the bound and on what equals it, but for its posterior."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OBJECTIVES, "narrowed", Narrowed)
        yield {name: deep(name).fit(*rows) for name in ("elbo", "narrowed")}


def deep(objective, **settings):
    small = {"n_layers": 1, "n_random_features": 10, "max_steps": 30, "n_mc_predict": 10}
    one = Deep(objective=objective, calibration="none", **{**small, **settings})
    return DeepGPRegressor(one, random_state=0)


def test_the_model_predicts_by_the_posterior_of_its_objective(fitted):
    bound, narrowed = (fitted[name].model_.blocks[-1].q_W for name in ("elbo", "narrowed"))
    assert isinstance(bound, FactorizedGaussian)
    np.testing.assert_array_equal(narrowed.mean, bound.mean)
    np.testing.assert_allclose(narrowed.log_var, bound.log_var - NARROWER, rtol=1e-6)


def test_its_file_predicts_the_same(fitted, rows, tmp_path):
    model = fitted["narrowed"]
    model.save(tmp_path / "model.bochner")
    opened = load(tmp_path / "model.bochner")
    np.testing.assert_array_equal(opened.predict(rows[0]), model.predict(rows[0]))


def test_a_fit_goes_on_by_the_bound_from_what_was_trained(fitted):
    asked = Asked(Deep(), likelihood=None, seed=0)
    found = able_to_go_on(fitted["narrowed"].fitted_.deep, asked)
    assert found.config.objective == "elbo"
    expected = last_log_var(fitted["elbo"].model_)
    np.testing.assert_allclose(last_log_var(found.model), expected, rtol=1e-5, atol=1e-5)


def test_what_it_cannot_do_is_refused(monkeypatch, rows):
    monkeypatch.setitem(OBJECTIVES, "narrowed", Narrowed)
    with pytest.raises(ValueError, match="no residual layers"):
        deep("narrowed", residual=True).fit(*rows)
    settings = {"members__calibration": "left-out"}
    with pytest.raises(ValueError, match="only `objective=\"evidence\"` has; got 'narrowed'"):
        deep("narrowed").set_params(**settings).fit(*rows)
