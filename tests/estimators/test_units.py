"""Everything reported is in the units of y."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

from bochner import DeepGPRegressor, load
from tests.deep_alone import deep_regressor
from tests.estimators import problems
from tests.estimators.problems import SMALL

X, Y = problems.numbers(200)
FACTOR, SHIFT = 1000.0, 5.0
LIKELIHOODS = ["gaussian", "heteroscedastic", "student-t"]


@pytest.fixture(scope="module", params=LIKELIHOODS)
def pair(request):
    """The same model of y and of 1000 y + 5."""
    settings = SMALL | {"likelihood": request.param, "validation_fraction": 0.2}
    return [deep_regressor(**settings).fit(X, y) for y in (Y, FACTOR * Y + SHIFT)]


def test_predictions_shift_and_scale_with_the_target(pair):
    plain, large = pair
    mean, std = plain.predict(X, return_std=True)
    large_mean, large_std = large.predict(X, return_std=True)
    close = {"rtol": 1e-3, "atol": 1e-3 * FACTOR * Y.std()}
    np.testing.assert_allclose(large_mean, FACTOR * mean + SHIFT, **close)
    np.testing.assert_allclose(large_std, FACTOR * std, **close)
    interval = plain.predict_interval(X)
    np.testing.assert_allclose(large.predict_interval(X), FACTOR * interval + SHIFT, **close)
    samples = plain.sample_y(X, 3)
    np.testing.assert_allclose(
        large.sample_y(X, 3), FACTOR * samples + SHIFT, rtol=1e-2, atol=10 * close["atol"]
    )
    f, g = (model.sample_functions(1)[0] for model in pair)
    np.testing.assert_allclose(g(X), FACTOR * f(X) + SHIFT, **close)


def test_densities_fall_by_the_log_of_the_factor(pair):
    plain, large = pair
    difference = plain.log_prob(X, Y) - large.log_prob(X, FACTOR * Y + SHIFT)
    np.testing.assert_allclose(difference, np.log(FACTOR), atol=0.02)


def test_metrics_are_in_the_units_of_the_target(pair):
    plain, large = (m.evaluate(X, y) for m, y in zip(pair, (Y, FACTOR * Y + SHIFT), strict=True))
    assert large["mnll"] - plain["mnll"] == pytest.approx(np.log(FACTOR), abs=0.01)
    assert large["rmse"] == pytest.approx(FACTOR * plain["rmse"], rel=1e-2)
    assert large["crps"] == pytest.approx(FACTOR * plain["crps"], rel=1e-2)
    assert large["coverage_90"] == pytest.approx(plain["coverage_90"], abs=0.011)


def test_the_bound_and_its_history_fall_by_the_log_of_the_factor_a_row(pair):
    plain, large = pair
    assert (plain.elbo_ - large.elbo_) / len(X) == pytest.approx(np.log(FACTOR), abs=0.02)
    for before, after in zip(plain.history_, large.history_, strict=True):
        for name in ("elbo", "ell"):
            fall = (before[name] - after[name]) / plain.trained_weight_
            assert fall == pytest.approx(np.log(FACTOR), abs=0.05)
        assert after["kl"] == pytest.approx(before["kl"], rel=0.02)
        if before["held_out_mnll"] is not None:
            rise = after["held_out_mnll"] - before["held_out_mnll"]
            assert rise == pytest.approx(np.log(FACTOR), abs=0.02)


@pytest.fixture(scope="module", params=[*LIKELIHOODS, "the defaults"])
def tables(request):
    """The same model of the same table in other units: tiny, as it is, and huge."""
    model = deep_regressor(**SMALL | {"likelihood": request.param})
    if request.param == "the defaults":
        model = DeepGPRegressor(random_state=0)
    return {f: clone(model).fit(f * X, f * Y) for f in (1e-15, 1.0, 1e15)}


@pytest.mark.parametrize("factor", [1e-15, 1e15])
def test_tables_in_tiny_or_huge_units_are_predicted_alike(tables, factor, tmp_path):
    plain, other = tables[1.0], tables[factor]
    close = {"rtol": 1e-3, "atol": 1e-3 * Y.std()}
    other.save(tmp_path / "model")
    for model in (other, load(tmp_path / "model")):
        for ours, theirs in zip(
            model.predict(factor * X, return_std=True),
            plain.predict(X, return_std=True),
            strict=True,
        ):
            np.testing.assert_allclose(ours / factor, theirs, **close)
        interval = model.predict_interval(factor * X)
        np.testing.assert_allclose(interval / factor, plain.predict_interval(X), **close)
        log_prob = model.log_prob(factor * X, factor * Y) + np.log(factor)
        np.testing.assert_allclose(log_prob, plain.log_prob(X, Y), atol=0.02)
    for ours, theirs in zip(
        other.predict_variance(factor * X), plain.predict_variance(X), strict=True
    ):
        np.testing.assert_allclose(ours / factor**2, theirs, rtol=1e-2, atol=1e-4 * Y.var())
    f, g = (model.sample_functions(1)[0] for model in (other, plain))
    np.testing.assert_allclose(f(factor * X) / factor, g(X), **close)
    traced = np.asarray(f(jnp.asarray(factor * X, jnp.float32)), float)
    np.testing.assert_allclose(traced / factor, g(X), rtol=1e-2, atol=1e-2 * Y.std())
    ours, theirs = other.evaluate(factor * X, factor * Y), plain.evaluate(X, Y)
    assert ours["rmse"] == pytest.approx(factor * theirs["rmse"], rel=1e-2)
    assert ours["crps"] == pytest.approx(factor * theirs["crps"], rel=1e-2)
    assert ours["mnll"] - theirs["mnll"] == pytest.approx(np.log(factor), abs=0.02)
    assert ours["coverage_90"] == pytest.approx(theirs["coverage_90"], abs=0.011)
    if hasattr(plain, "elbo_"):
        per_row = (plain.elbo_ - other.elbo_) / len(X)
        assert per_row == pytest.approx(np.log(factor), abs=0.05)
    else:
        per_row = plain.summary_["log_likelihood"] - other.summary_["log_likelihood"]
        assert per_row == pytest.approx(np.log(factor), abs=0.02)


def test_counts_are_not_scaled():
    model = deep_regressor(**SMALL, likelihood="poisson").fit(*problems.counts())
    assert model.fitted_.deep.target_scaling.scale.tolist() == [1.0]
    assert model.fitted_.deep.target_scaling.center.tolist() == [0.0]
