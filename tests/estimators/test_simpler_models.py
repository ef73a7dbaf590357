"""How a fit judges itself: rows that it has not seen, settings tried on them, and simpler models in its place."""

import logging

import jax
import numpy as np
import pytest
from scipy import stats

from bochner import DeepGPClassifier, DeepGPRegressor, load
from bochner.estimators.baselines import ClassBaseline, GaussianBaseline
from bochner.estimators.export import export
from bochner.estimators.judging import Judged, OwnRows, WorseThanSimplerModelWarning
from bochner.estimators.rows import Rows
from bochner.gp.layers import LayerSettings
from bochner.gp.model import DeepGP
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.objectives import OBJECTIVES
from bochner.likelihoods import Gaussian
from bochner.prediction.statistics import LogDensity, Moments, Posterior, Probabilities
from bochner.rows.table import Table, Tables

WORSE = "is worse than a linear one"
ignored = pytest.mark.filterwarnings(
    "ignore::bochner.estimators.judging.WorseThanSimplerModelWarning"
)


def lines(n=120, seed=0):
    """A linear function of two of three columns, of unlike units."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 3)) * [1.0, 100.0, 1e-3]
    return X, 5.0 + 2.0 * X[:, 0] - 0.03 * X[:, 1] + 0.1 * generator.normal(size=n)


def scaled_rows(n=80, classes=False):
    generator = np.random.default_rng(1)
    X = generator.normal(size=(n, 3)) + np.array([0.0, 1.0, -2.0])
    f = X @ np.array([[1.0, -0.5], [0.0, 0.3], [-2.0, 0.0]]) + [0.5, -1.0]
    weights = generator.uniform(0.5, 1.5, size=n)
    if classes:
        Y = (f[:, :1] + generator.normal(size=(n, 1)) > 0).astype(np.int32) + (f[:, 1:] > -1)
        return Rows(X, Y.astype(np.int32), weights)
    return Rows(X, f + [0.3, 0.6] * generator.normal(size=(n, 2)), weights)


@pytest.fixture(scope="module")
def hardly_trained():
    """Three steps on a linear table, so that the linear model predicts."""
    with pytest.warns(WorseThanSimplerModelWarning, match=WORSE):
        return DeepGPRegressor(max_steps=3, random_state=0).fit(*lines())


# The baselines themselves.


@pytest.mark.parametrize("linear", [True, False])
def test_a_row_that_is_new_is_predicted_by_bayesian_regression(linear):
    """Against the joint Gaussian of all targets, its offset known as little as a wide prior has it."""
    rows, new = scaled_rows(), scaled_rows(5)
    rows = Rows(rows.X, rows.Y[:, :1], np.ones(len(rows)))
    new = Rows(new.X + 0.5, new.Y[:, :1], np.ones(5))
    fitted = GaussianBaseline.fit(rows, linear=linear)
    X, X_new = (one.X if linear else one.X[:, :0] for one in (rows, new))
    prior = (
        np.linalg.inv(fitted.slope_covariance[0]) - np.cov(X.T, bias=True) * len(X) if linear else 0
    )
    of_slopes = np.linalg.inv(prior) if linear else np.zeros((0, 0))
    U, U_new = (
        np.concatenate([np.ones((len(one), 1)), one - X.mean(axis=0)], axis=1) for one in (X, X_new)
    )
    S = np.zeros((U.shape[1], U.shape[1]))
    S[0, 0], S[1:, 1:] = 1e7, of_slopes
    K = U @ S @ U.T + np.eye(len(U))
    solved = np.linalg.solve(K, U @ S @ U_new.T)
    variance = 1 + np.sum(U_new @ S * U_new, axis=1) - np.sum((U_new @ S @ U.T) * solved.T, axis=1)
    expected = stats.norm.logpdf(
        new.Y[:, 0], solved.T @ rows.Y[:, 0], np.sqrt(fitted.noise[0] * variance)
    )
    np.testing.assert_allclose(fitted.log_density(new), expected, rtol=1e-4)


def test_noise_gets_slopes_of_about_nothing():
    generator = np.random.default_rng(0)
    rows = Rows(generator.normal(size=(100, 50)), generator.normal(size=(100, 1)), np.ones(100))
    assert np.abs(GaussianBaseline.fit(rows, linear=True).slopes).max() < 0.05


@pytest.mark.parametrize("linear", [True, False])
def test_a_baseline_of_numbers_is_a_deep_gaussian_process(linear):
    rows = scaled_rows()
    fitted = GaussianBaseline.fit(rows, linear=linear)
    posterior = Posterior.draw(fitted.model(3), n_draws=2_000, key=jax.random.key(0))
    density = posterior.map_rows(LogDensity(), rows.X, Y=rows.Y)
    np.testing.assert_allclose(density, fitted.log_density(rows), atol=0.02)
    mean = posterior.map_rows(Moments(), rows.X)["mean"]
    expected = fitted.offset + (rows.X[:, : len(fitted.center)] - fitted.center) @ fitted.slopes
    np.testing.assert_allclose(mean, expected, atol=0.02)


@pytest.mark.parametrize("linear", [True, False])
def test_a_baseline_of_classes_is_a_deep_gaussian_process(linear):
    rows = scaled_rows(400, classes=True)
    fitted = ClassBaseline.fit(rows, 4, linear=linear)  # the last class has no row
    posterior = Posterior.draw(fitted.model(3), n_draws=2_000, key=jax.random.key(0))
    density = posterior.map_rows(LogDensity(), rows.X, Y=rows.Y)
    np.testing.assert_allclose(density.mean(), fitted.log_density(rows).mean(), atol=0.02)
    unseen = posterior.map_rows(Probabilities(), rows.X)[:, 3]
    assert np.all(unseen > 0)
    assert unseen.mean() < 0.02


# Rows that members leave out.


@pytest.mark.parametrize("name", OBJECTIVES)
def test_rows_without_weight_are_as_if_they_were_not_there(name, key):
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(30, 2)), generator.normal(size=(30, 1))
    left_out = np.arange(30) % 3 == 0
    settings = [LayerSettings(2, n_rf=5), LayerSettings(1, n_rf=5)]
    model = DeepGP.start(settings, Gaussian.start(1), d_in=2, feed_inputs=True, key=key)
    noise = model.draw_noise((2,), key=jax.random.key(1))
    all_rows, others = Table.of(X, Y, 1.0 * ~left_out), Table.of(X[~left_out], Y[~left_out])
    bounds = [
        OBJECTIVES[name]()(model, table, noise, DrawWeights(), scale=1.0)
        for table in (all_rows, others)
    ]
    np.testing.assert_allclose(*bounds, rtol=1e-5)


def test_each_member_leaves_out_rows_of_its_own():
    own = OwnRows.draw(4, 100, seed=0)
    assert own.left_out.sum(axis=0).max() == 1
    assert set(own.left_out.sum(axis=1)) <= {12, 13}
    table = Table.of(np.zeros((100, 1)), np.zeros((100, 1)))
    tables = own.to_learn_from(table)
    assert isinstance(tables, Tables)
    np.testing.assert_array_equal(np.asarray(tables.weights) == 0, own.left_out)
    assert OwnRows.draw(4, 10, seed=0) is None


@ignored
def test_a_fit_without_held_out_rows_is_rehearsed_and_learns_from_all_of_them():
    X, y = lines(64)
    model = DeepGPRegressor(max_steps=40, random_state=0).fit(X, y)
    assert (model.judged_["rows"], model.judged_["n_rows"]) == ("by members", 8)
    assert (model.n_steps_, model.trained_weight_) == (40, 64)


@ignored
def test_a_rehearsal_runs_the_program_of_the_training(compilations):
    X, y = lines(67)  # of a size that no other test has
    model = DeepGPRegressor(max_steps=80, random_state=0).fit(X, y)
    assert model.judged_["rows"] == "by members"
    assert compilations.count("jit(run_chunk)") == 1


# What a fit makes of it.


def test_a_fit_that_is_worse_than_a_linear_model_gives_way_and_says_so(caplog):
    X, y = lines()
    with caplog.at_level(logging.ERROR, "bochner"), pytest.warns(UserWarning, match=WORSE):
        model = DeepGPRegressor(max_steps=3, random_state=0).fit(X, y)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert model.judged_["predicts"] == "linear"
    assert model.judged_["linear"] > model.judged_["model"]
    assert model.config_["n_layers"] == 1
    assert model.score(X, y) > 0.98
    assert model.evaluate(*lines(seed=1))["mnll"] == pytest.approx(
        -model.judged_["linear"], abs=0.3
    )
    assert np.argmin(model.relevance_) == 2


@ignored
def test_classes_give_way_too():
    X, y = lines(400)
    labels = np.where(y > np.median(y), "high", "low")
    model = DeepGPClassifier(max_steps=3, random_state=0).fit(X, labels)
    assert model.judged_["predicts"] == "linear"
    assert model.score(X, labels) > 0.9


def test_a_good_fit_stays_and_says_nothing(recwarn):
    generator = np.random.default_rng(0)
    X = generator.uniform(-2, 2, size=(300, 1))
    model = DeepGPRegressor(max_steps=1_500, random_state=0)
    model.fit(X, np.sin(3 * X[:, 0]) + 0.1 * generator.normal(size=300))
    assert model.judged_["predicts"] == "model"
    assert model.judged_["model"] > model.judged_["linear"] + 0.5
    assert model.config_["n_layers"] == 2
    assert not [w for w in recwarn if issubclass(w.category, WorseThanSimplerModelWarning)]


def test_what_the_user_has_set_stays():
    settings = {"n_layers": 2, "max_steps": 3, "validation_fraction": 0.25, "random_state": 0}
    with pytest.warns(WorseThanSimplerModelWarning, match="Do not rely on this model"):
        model = DeepGPRegressor(**settings).fit(*lines(400))
    assert (model.config_["n_layers"], model.judged_["predicts"]) == (2, "model")


def test_nothing_is_held_out_where_the_user_wants_none():
    settings = {"max_steps": 3, "validation_fraction": 0.0, "random_state": 0}
    model = DeepGPRegressor(**settings).fit(*lines())
    assert model.trained_weight_ == 120
    assert not hasattr(model, "judged_")


@ignored
def test_validation_rows_judge():
    X, y = lines(90)
    model = DeepGPRegressor(max_steps=3, random_state=0).fit(
        X[:60], y[:60], validation=(X[60:], y[60:])
    )
    assert (model.judged_["n_rows"], model.judged_["rows"]) == (30, "held out")
    assert model.judged_["predicts"] == "linear"


# A baseline in the place of a fit is a model like others.


def test_a_baseline_is_saved_and_loaded(hardly_trained, tmp_path):
    hardly_trained.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    X, y = lines()
    np.testing.assert_array_equal(loaded.predict(X), hardly_trained.predict(X))
    np.testing.assert_array_equal(loaded.log_prob(X, y), hardly_trained.log_prob(X, y))
    assert loaded.judged_ == hardly_trained.judged_
    with pytest.raises(ValueError, match="holds a linear model"):
        loaded.partial_fit(X, y)


def test_a_baseline_has_intervals_functions_and_a_bound(hardly_trained):
    X, y = lines(200, seed=2)
    ends = hardly_trained.predict_interval(X)
    assert 0.8 < np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) < 0.98
    first, second = (f(X) for f in hardly_trained.sample_functions(2))
    assert 0 < np.std(first - second) < 0.1
    assert np.isfinite(hardly_trained.elbo_)


def test_a_baseline_is_exported(hardly_trained, tmp_path):
    assert len(export(hardly_trained, tmp_path / "model.jax")) == 3


@ignored
def test_further_rows_go_on_from_the_fitted_model():
    X, y = lines()
    model = DeepGPRegressor(max_steps=3, random_state=0).fit(X, y)
    assert model.config_["n_layers"] == 1
    model.partial_fit(X, y)
    assert (model.config_["n_layers"], model.n_steps_) == (2, 6)


# Frequencies.


def large(free, n=4_000):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, 5))
    # Few frequencies drawn at random miss the only direction that matters.
    f = np.sin(4 * X @ np.ones(5) / np.sqrt(5)) if free else 0.0
    return X, f + 0.1 * generator.normal(size=n)


@ignored
@pytest.mark.parametrize(("free", "omega"), [(True, "var-fixed"), (False, "prior-fixed")])
def test_frequencies_are_free_where_held_out_rows_prefer_that(free, omega):
    small = {"n_random_features": 8, "width": 2, "n_members": 1, "n_mc_predict": 10}
    model = DeepGPRegressor(max_steps=2_400, random_state=0, **small).fit(*large(free))
    assert model.config_["omega"] == omega
    scores = model.frequency_scores_
    assert (scores["var-fixed"] < scores["prior-fixed"] - 0.1) == free
    assert model.config_["validation_fraction"] == 0.1


@pytest.mark.parametrize(
    "settings", [{"omega": "var-fixed"}, {"preset": "paper"}, {"warm_start": True}]
)
@pytest.mark.filterwarnings("ignore:training ended after")
@ignored
def test_no_frequencies_are_tried_where_they_are_decided(settings):
    small = {"n_random_features": 5, "width": 2, "n_members": 1, "n_mc_predict": 5}
    model = DeepGPRegressor(max_steps=3, random_state=0, **small, **settings).fit(*large(False))
    assert not hasattr(model, "frequency_scores_")
    assert (model.config_["omega"] == "prior-fixed") == ("warm_start" in settings)


def test_a_difference_in_one_row_is_no_noise():
    ours, other = np.zeros(200), np.zeros(200)
    ours[0] = -1_000.0
    weights = np.ones(200)
    assert Judged(other, weights).clearly_better_than(Judged(ours, weights))
    ours[0], ours[1::2], ours[2::2] = 0.0, -0.1, 0.1
    assert not Judged(other, weights).clearly_better_than(Judged(ours, weights))
