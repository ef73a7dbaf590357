"""What the defaults choose from, each used on its own: objectives, members, theta, residual layers, depth."""

import numpy as np
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, load
from bochner.fitting.recipes import Situation, auto
from bochner.gp.members import Members
from tests.deep_alone import deep_classifier, deep_regressor
from tests.estimators import problems
from tests.estimators.problems import SMALL

X, Y = problems.numbers(150)
EXACT = {
    "objective": "evidence",
    "n_random_features": 15, "width": 2, "max_steps": 60, "n_mc_predict": 60, "random_state": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def exact():
    return deep_regressor(**EXACT).fit(X, Y)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, "evidence"),
        ({"likelihood": "gaussian", "batch_size": 500}, "evidence"),
        ({"likelihood": "student-t"}, "elbo"),
        ({"omega": "var-resampled"}, "elbo"),
        ({"batch_size": 100}, "elbo"),
        ({"batch_size": "many"}, "evidence"),  # an error to come
        ({"n_random_features": [100, 2000]}, "elbo"),
        ({"local_reparameterization": True}, "elbo"),
    ],
)
def test_a_small_table_gets_the_evidence_where_that_fits(asked, expected):
    situation = Situation(300, 5, classification=False, asked=asked)
    assert auto(situation)["objective"] == expected


@pytest.mark.parametrize(("n_rows", "n_members"), [(500, 4), (1_200, 4), (1_500, 3), (3_000, 1)])
def test_a_small_table_gets_the_members_that_there_is_time_for(n_rows, n_members):
    asked = {"max_seconds": 20}
    situation = Situation(n_rows, 5, classification=False, asked=asked)
    assert auto(situation)["n_members"] == n_members


@pytest.mark.parametrize(
    ("n_rows", "asked", "n_features"),
    [
        (249, {}, 100),
        (250, {}, 200),
        (3_999, {}, 200),
        (1_000, {"max_seconds": 20}, 100),
        (1_000, {"max_seconds": 34}, 100),
        (1_000, {"max_seconds": 35}, 200),
    ],
)
def test_a_small_table_gets_more_features_where_there_is_time(n_rows, asked, n_features):
    situation = Situation(n_rows, 5, classification=False, asked=asked)
    assert auto(situation)["n_random_features"] == n_features


def test_all_rows_in_each_step_allow_large_steps():
    rates = {
        n_rows: auto(Situation(n_rows, 5, classification=False))["learning_rate"]
        for n_rows in (3_999, 4_000)
    }
    assert rates == {3_999: 0.1, 4_000: 0.03}


def test_large_tables_classes_and_rows_to_come_get_the_bound():
    for situation in (
        Situation(10_000, 5, classification=False),
        Situation(300, 5, classification=True),
        Situation(300, 5, classification=False, all_at_once=False),
    ):
        assert auto(situation)["objective"] == "elbo"


def test_the_exact_model_holds_draws_of_the_hidden_layers_of_its_members(exact):
    config = exact.config_
    assert (config["objective"], config["likelihood"]) == ("evidence", "heteroscedastic")
    assert isinstance(exact.model_, Members)
    assert exact.model_.n_members == 16  # draws of the hidden layers of four members


def test_the_bound_after_training_is_that_of_the_last_steps(exact):
    # Both estimate the evidence: one through draws of the exact posterior, one in closed form.
    assert exact.elbo_ == pytest.approx(exact.history_[-1]["elbo"], abs=0.1 * len(Y))


def test_it_learns_the_function_and_the_noise(exact):
    X_new, Y_new = problems.numbers(400, seed=1)
    measured = exact.evaluate(X_new, Y_new)
    assert measured["rmse"] < 3.0  # the noise has deviation 1, the target 7
    assert measured["coverage_90"] > 0.8


def test_drawn_functions_spread_as_the_predictions_do(exact):
    values = np.stack([f(X[:20]) for f in exact.sample_functions(400, random_state=1)])
    epistemic, _ = exact.predict_variance(X[:20])
    np.testing.assert_allclose(values.mean(axis=0), exact.predict(X[:20]), atol=0.3)
    np.testing.assert_allclose(values.var(axis=0), epistemic, rtol=0.6, atol=0.05)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"likelihood": "gaussian", "n_layers": 1},
        {"theta": "variational", "n_layers": 3, "residual": True, "n_members": 2},
        {"objective": "elbo", "theta": "prior", "n_members": 3},
        {"objective": "predictive", "n_mc_train": 3, "theta": "variational", "averaging": 0.9},
    ],
)  # fmt: skip
def test_every_choice_is_saved_and_loaded(settings, tmp_path):
    model = deep_regressor(**EXACT | {"max_steps": 5} | settings).fit(X, Y)
    model.save(tmp_path / "m.bochner")
    loaded = load(tmp_path / "m.bochner")
    assert loaded.config_ == model.config_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert np.all(np.isfinite(loaded.log_prob(X, Y)))
    assert loaded.explain().columns == model.explain().columns


def test_members_of_a_classifier_give_one_mixture():
    features, labels = problems.classes(150)
    model = deep_classifier(**SMALL | {"n_members": 3, "max_steps": 200}).fit(features, labels)
    assert model.model_.n_members == 3
    np.testing.assert_allclose(model.predict_proba(features).sum(axis=1), 1.0, rtol=1e-5)
    assert model.score(features, labels) > 0.8


def test_two_targets_may_be_integrated():
    both = np.stack([Y, -Y], axis=1)
    model = deep_regressor(**EXACT).fit(X, both)
    assert model.config_["objective"] == "evidence"
    assert model.predict(X).shape == (150, 2)
    assert model.score(X, both) > 0.8


def test_rows_of_weight_two_count_twice_in_the_evidence():
    settings = EXACT | {"max_steps": 5, "preprocessing": "none"}
    weights = np.where(np.arange(150) < 50, 2.0, 1.0)
    repeated = np.concatenate([np.arange(150), np.arange(50)])
    by_weight = deep_regressor(**settings).fit(X / [1, 100, 1e-3], Y, sample_weight=weights)
    by_rows = deep_regressor(**settings).fit((X / [1, 100, 1e-3])[repeated], Y[repeated])
    elbos = [model.history_[0]["elbo"] / model.total_weight_ for model in (by_weight, by_rows)]
    assert elbos[0] == pytest.approx(elbos[1], abs=0.1)  # targets are scaled apart


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"likelihood": "student-t"}, "needs Gaussian noise"),
        ({"batch_size": 50}, "rows in each step, in one process"),
        ({"omega": "var-resampled"}, "frequencies that are held"),
        ({"local_reparameterization": True}, "the same for all rows"),
        ({"warm_start": True}, "its model cannot go on"),
        ({"objective": "predictive", "n_mc_train": 1}, "`n_mc_train` of at least 2"),
        ({"objective": "evidense"}, "Did you mean 'evidence'"),
        ({"theta": "fixed"}, "`theta` must be one of"),
        ({"n_members": 0}, "`n_members` must be a whole number"),
        ({"kl_weight": 0.0}, "`kl_weight` must be a finite number above 0"),
        ({"averaging": 1.0}, "`averaging` must be at least 0 and below 1"),
    ],
)  # fmt: skip
def test_choices_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        deep_regressor(**EXACT | settings).fit(X, Y)


def test_rows_to_come_lead_to_the_bound():
    model = deep_regressor(**EXACT | {"objective": None}).partial_fit(X, Y)
    assert model.config_["objective"] == "elbo"
    with pytest.raises(ValueError, match="its model cannot go on"):
        deep_regressor(batch_size=50, **EXACT).partial_fit(X, Y)


@pytest.mark.parametrize("way", ["partial_fit", "warm_start"])
def test_an_exact_model_goes_on_by_the_bound(way):
    model = deep_regressor(**EXACT | {"learning_rate": 1e-4}).fit(X, Y)
    model.set_params(members__objective=None)  # as where the recipe has chosen the evidence
    before = model.evaluate(X, Y)
    if way == "partial_fit":
        model.partial_fit(X, Y)
    else:
        model.set_params(warm_start=True).fit(X, Y)
    assert model.config_["objective"] == "elbo"
    assert model.model_.n_members == 4
    assert model.n_steps_ == 120
    # It starts where the exact model was, so that its mean is as good.
    assert model.evaluate(X, Y)["rmse"] < 1.5 * before["rmse"]


def test_evidence_that_was_asked_for_cannot_go_on():
    model = deep_regressor(**EXACT | {"max_steps": 2}).fit(X, Y)
    with pytest.raises(ValueError, match="neither by `partial_fit` nor"):
        model.partial_fit(X, Y)


def test_held_out_rows_judge_the_conditioned_model():
    model = deep_regressor(**EXACT).fit(X, Y, validation=(X[:40], Y[:40]))
    judged = [record["held_out_mnll"] for record in model.history_]
    assert min(value for value in judged if value is not None) < 3.0


@pytest.mark.parametrize(
    "kind", [pytest.param(DeepGPRegressor, marks=pytest.mark.slow), DeepGPClassifier]
)
def test_depth_is_chosen_on_held_out_rows(kind):
    rows, targets = (X, Y) if kind is DeepGPRegressor else problems.classes(150)
    settings = {"max_steps": 20, "n_random_features": 10, "width": 2, "random_state": 0}
    fitted = deep_regressor if kind is DeepGPRegressor else deep_classifier
    model = fitted(n_layers="auto", **settings).fit(rows, targets)
    assert list(model.depth_scores_) == [1, 2, 3]
    best = min(model.depth_scores_, key=model.depth_scores_.get)
    assert model.config_["n_layers"] == best
    assert model.predict(rows).shape == (150,)
