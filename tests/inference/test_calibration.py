"""Rows left out in closed form beside fits without them, and widths that come out right."""

import copy

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.stats import norm

from bochner import Deep, DeepGPRegressor, load
from bochner.gp.layers import LayerSettings
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.inference.calibration import LeftOut, calibrate, uncalibrated
from bochner.inference.conditioning import condition_last_layer, unconditioned
from bochner.likelihoods import Gaussian, HeteroscedasticGaussian
from bochner.likelihoods.noise_laws import Normal
from bochner.prediction.statistics import LogDensity, Posterior
from bochner.rows.table import Table

KEY = jax.random.key(0)


def started(kind=Gaussian, n_layers=2, n_targets=1, noise_variance=0.04):
    d_out = kind.n_functions(n_targets)
    layers = [LayerSettings(2, n_rf=20)] * (n_layers - 1) + [LayerSettings(d_out, n_rf=20)]
    likelihood = kind.start(n_targets, noise_variance=noise_variance)
    return DeepGP.start(layers, likelihood, d_in=1, feed_inputs=True, key=KEY)


def rows(n=40, noise=0.2, n_targets=1, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2, 2, size=(n, 1))
    y = np.concatenate([np.sin(2 * x), np.cos(x)], axis=1)[:, :n_targets]
    return x, y + noise * generator.normal(size=y.shape)


def factor_of(model, table, n_draws=2):
    members = condition_last_layer(model, table, n_draws=n_draws, key=KEY)
    return float(calibrate(members, table).stacked.likelihood.law.factor[0])


@pytest.mark.parametrize("kind", [Gaussian, HeteroscedasticGaussian])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_a_row_left_out_is_predicted_as_by_a_fit_without_it(kind, n_targets, x64):
    x, y = rows(12, n_targets=n_targets)
    weights = np.array([2.0, 0.5] + [1.0] * 10)
    model = started(kind, n_targets=n_targets)
    (full,) = condition_last_layer(model, Table.of(x, y, weights), n_draws=1, key=KEY).each()
    found = LeftOut.of(full, Table.of(x, y, weights))
    for i in (0, 1, 7):
        others = np.arange(12) != i
        table = Table.of(x[others], y[others], weights[others])
        (without,) = condition_last_layer(model, table, n_draws=1, key=KEY).each()
        unseen = Table.of(x[[i]], y[[i]], np.zeros(1))  # of weight 0: not left out again
        alone = LeftOut.of(without, unseen)
        np.testing.assert_allclose(found.residuals[i], alone.residuals[0], rtol=1e-8)
        np.testing.assert_allclose(found.spread[i], alone.spread[0], rtol=1e-8)
        np.testing.assert_allclose(found.noise[i], alone.noise[0], rtol=1e-12)


def test_the_density_of_rows_left_out_is_that_of_predictions(x64):
    # Of draws, so many that their mean is the integral.
    x, y = rows(30)
    table, apart = Table.of(x, y), rows(5, seed=1)
    members = condition_last_layer(started(), table, n_draws=1, key=KEY)
    calibrated = calibrate(members, table)
    factor = calibrated.stacked.likelihood.law.factor[0]
    unseen = Table.of(*apart, np.zeros(5))
    expected = LeftOut.of(members.each()[0], unseen).log_density(factor)
    posterior = Posterior.draw(calibrated, n_draws=20_000, key=KEY)
    found = posterior.map_rows(LogDensity(), apart[0], Y=apart[1])
    np.testing.assert_allclose(found, expected, atol=0.03)


@pytest.mark.parametrize(("assumed", "low", "high"), [(0.2, 0.9, 1.1), (0.6, 0.25, 0.45)])
def test_the_factor_is_what_the_noise_was_wrong_by(assumed, low, high, x64):
    table = Table.of(*rows(800, noise=0.2))
    model = started(n_layers=1, noise_variance=assumed**2)
    assert low < factor_of(model, table, n_draws=1) < high


def test_rows_without_weight_say_nothing(x64):
    (x, y), (x_other, y_other) = rows(40, noise=0.05), rows(30, noise=3.0, seed=1)
    weights = np.concatenate([np.ones(40), np.zeros(30)])
    joined = Table.of(np.concatenate([x, x_other]), np.concatenate([y, y_other]), weights)
    assert factor_of(started(), joined) == pytest.approx(factor_of(started(), Table.of(x, y)))


def test_light_rows_change_little(x64):
    x, y = rows(40, noise=0.05)
    model = started(n_layers=1, noise_variance=0.25)
    whole, light = (factor_of(model, Table.of(x, y, w * np.ones(40)), 1) for w in (1.0, 0.01))
    assert whole < 0.8
    assert 0.95 < light <= 1.05


def test_the_mixture_of_all_draws_and_targets_decides(x64):
    table = Table.of(*rows(25, noise=0.05, n_targets=2))
    model = started(n_targets=2, noise_variance=0.1)
    members = condition_last_layer(model, table, n_draws=3, key=KEY)
    left_out = [LeftOut.of(one, table) for one in members.each()]
    candidates = np.geomspace(0.2, 1.6, 43)
    scores = []
    for factor in candidates:
        densities = []
        for one in left_out:
            spread, noise = factor**2 * np.asarray(one.spread), np.asarray(one.noise)
            law = 0.75 * norm.pdf(one.residuals, scale=np.sqrt(spread + factor**2 * noise))
            law += 0.25 * norm.pdf(one.residuals, scale=np.sqrt(spread + noise))
            densities.append(law.prod(axis=1))
        scores.append(np.log(np.mean(densities, axis=0)).sum())
    best = candidates[np.argmax(scores)] ** (25 / 50)
    assert factor_of(model, table, n_draws=3) == pytest.approx(best, rel=1e-5)


def test_little_noise_leaves_float32_right():
    # Leverages of all but 1e-4: in float32 what is left beside them would be lost.
    x, y = rows(30, noise=0.0)
    model = started(n_layers=1, noise_variance=1e-6)
    found = {}
    for doubles in (False, True):
        with jax.enable_x64(doubles):
            members = condition_last_layer(model, Table.of(x, y), n_draws=1, key=KEY)
            found[doubles] = LeftOut.of(members.each()[0], Table.of(x, y))
    np.testing.assert_allclose(found[False].spread, found[True].spread, rtol=0.1)


def test_what_is_not_finite_changes_nothing(x64):
    x, y = rows(30)
    members = condition_last_layer(started(), Table.of(x, y), n_draws=1, key=KEY)
    y[3] = np.nan
    assert float(calibrate(members, Table.of(x, y)).stacked.likelihood.law.factor[0]) == 1.0


def test_few_rows_change_little(x64):
    table = Table.of(*rows(5, noise=0.0))
    factor = factor_of(started(noise_variance=0.25), table, n_draws=1)
    assert 0.2 ** (5 / 30) <= factor <= 1.6 ** (5 / 30)


def test_hidden_layers_that_know_the_rows_change_nothing(x64):
    table = Table.of(*rows(60, noise=0.05))
    factors = []
    for log_var in (0.0, -12.0):  # the prior, and a posterior of far more nats than there are rows
        model = started(noise_variance=0.25)
        log_vars = model.blocks[0].q_W.log_var + log_var
        model = eqx.tree_at(lambda model: model.blocks[0].q_W.log_var, model, log_vars)
        factors.append(factor_of(model, table))
    assert factors[0] < 0.9
    assert factors[1] == 1.0


def test_what_was_trained_comes_back(x64):
    table = Table.of(*rows())
    calibrated = calibrate(condition_last_layer(started(), table, n_draws=2, key=KEY), table)
    assert isinstance(calibrated, Members)
    assert isinstance(unconditioned(calibrated.each()[0]).likelihood.law, Normal)


def test_the_posteriors_widths_come_back(x64):
    table = Table.of(*rows())
    members = condition_last_layer(started(), table, n_draws=2, key=KEY)
    again = uncalibrated(calibrate(members, table))
    assert jax.tree.structure(again) == jax.tree.structure(members)
    for found, expected in zip(jax.tree.leaves(again), jax.tree.leaves(members), strict=True):
        if jax.dtypes.issubdtype(expected.dtype, jax.dtypes.prng_key):
            continue
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def fitted(calibration):
    x, y = rows(150, noise=0.05)
    few = {"n_members": 2, "n_random_features": 20, "max_steps": 200, "initial_log_var": -1.0}
    deep = Deep(objective="evidence", calibration=calibration, **few)
    return DeepGPRegressor(deep, random_state=0).fit(x, y[:, 0])


@pytest.fixture(scope="module")
def narrow():
    return fitted(None)


def test_an_estimator_narrows_what_is_too_wide_and_keeps_the_means(narrow):
    wide = fitted("none")
    assert narrow.config_["calibration"] == "left-out"
    x, y = rows(500, noise=0.05, seed=1)
    np.testing.assert_allclose(wide.predict(x), narrow.predict(x), atol=0.02)
    assert narrow.predict(x, return_std=True)[1].mean() < wide.predict(x, return_std=True)[1].mean()
    assert narrow.evaluate(x, y[:, 0])["mnll"] < wide.evaluate(x, y[:, 0])["mnll"]


def test_widths_come_back_from_a_file(narrow, tmp_path):
    narrow.save(tmp_path / "m.bochner")
    x = rows()[0]
    again = load(tmp_path / "m.bochner")
    np.testing.assert_array_equal(again.predict_interval(x), narrow.predict_interval(x))


def test_a_calibrated_model_goes_on_by_the_bound(narrow):
    x, y = rows(60)
    model = copy.deepcopy(narrow).set_params(members__objective=None, members__max_steps=20)
    model.partial_fit(x, y[:, 0])
    assert (model.config_["objective"], model.config_["calibration"]) == ("elbo", "none")
    assert np.all(np.isfinite(model.predict(x)))


def test_calibration_without_an_exact_layer_is_refused():
    with pytest.raises(ValueError, match="only `objective=\"evidence\"` has; got 'elbo'"):
        DeepGPRegressor(Deep(objective="elbo", calibration="left-out")).fit(*rows())
    with pytest.raises(ValueError, match="Did you mean 'left-out'"):
        DeepGPRegressor(Deep(calibration="leftout")).fit(*rows())
