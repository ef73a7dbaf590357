"""What scikit-learn offers around estimators works with ours."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bochner import Constant, DeepGPClassifier, DeepGPRegressor, Linear
from bochner.estimators.integrations.scikit_learn import (
    CLASSIFICATION_SCORES,
    REGRESSION_SCORES,
    Scorer,
    scorers,
)

N = 60


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 2)), columns=["size", "age"])
    y = (3 * X["size"] + 0.3 * rng.normal(size=N)).rename("price")
    return X, y, np.where(y > 0, "high", "low")


@pytest.fixture(scope="module")
def regressor(table):
    return DeepGPRegressor(Linear(), random_state=0).fit(*table[:2])


@pytest.fixture(scope="module")
def classifier(table):
    return DeepGPClassifier(Linear(), random_state=0).fit(table[0], table[2])


def test_scores_are_those_of_evaluate(table, regressor, classifier):
    X, y, labels = table
    numbers, classes = regressor.evaluate(X, y), classifier.evaluate(X, labels)
    for name, expected in (("neg_crps", -numbers["crps"]), ("neg_log_score", -numbers["mnll"])):
        assert Scorer(name)(regressor, X, y) == pytest.approx(expected, rel=1e-12)
    assert Scorer("coverage")(regressor, X, y) == numbers["coverage_90"]
    for name, expected in (("neg_brier", -classes["brier"]), ("neg_log_score", -classes["mnll"])):
        assert Scorer(name)(classifier, X, labels) == pytest.approx(expected, rel=1e-12)


def test_scores_of_classes_are_those_of_scikit_learn(table, classifier):
    X, _, labels = table
    p, weights = classifier.predict_proba(X), np.arange(N, dtype=float)
    high = classifier.classes_.tolist().index("high")
    brier = brier_score_loss(labels == "high", p[:, high], sample_weight=weights)
    # Ours is the sum over classes, which is twice that of two classes.
    assert Scorer("neg_brier")(classifier, X, labels, weights) == pytest.approx(-2 * brier)
    expected = -log_loss(labels, p, sample_weight=weights)
    assert Scorer("neg_log_score")(classifier, X, labels, weights) == pytest.approx(expected)


def test_the_interval_score_is_that_of_scoringrules(table, regressor):
    scoringrules = pytest.importorskip("scoringrules")
    X, y, _ = table
    y = y + np.linspace(-2, 2, N)  # some far outside
    low, high = regressor.predict_interval(X, 0.8).T
    expected = np.mean(scoringrules.interval_score(y.to_numpy(), low, high, 0.2))
    assert Scorer("neg_interval_score", 0.8)(regressor, X, y) == pytest.approx(-expected)


@pytest.mark.parametrize("name", REGRESSION_SCORES)
def test_one_column_of_targets_scores_as_a_vector_does(table, regressor, name):
    X, y, _ = table
    y = y + np.linspace(-2, 2, N)
    expected = Scorer(name, 0.8)(regressor, X, y)
    for column in (y.to_frame(), y.to_numpy()[:, None]):
        assert Scorer(name, 0.8)(regressor, X, column) == expected
    with pytest.raises(ValueError, match="y must have 1 columns"):
        Scorer(name)(regressor, X, np.column_stack([y, y]))


@pytest.mark.parametrize("name", CLASSIFICATION_SCORES)
def test_one_column_of_classes_scores_as_a_vector_does(table, classifier, name):
    X, _, labels = table
    expected = Scorer(name)(classifier, X, labels)
    assert Scorer(name)(classifier, X, labels[:, None]) == pytest.approx(expected, rel=1e-12)


def test_weights_count_rows(table, regressor):
    X, y, _ = table
    counts = np.arange(N) % 3
    some = np.repeat(np.arange(N), counts)
    for name, scorer in scorers(coverage=0.5).items():
        found = scorer(regressor, X, y, sample_weight=counts)
        if name != "neg_crps":  # whose draws differ from row to row
            assert found == pytest.approx(scorer(regressor, X.iloc[some], y.iloc[some]))
    coverage = scorers(coverage=0.5)["coverage"](regressor, X, y, counts)
    error = scorers(coverage=0.5)["neg_coverage_error"](regressor, X, y, counts)
    assert error == -abs(coverage - 0.5) < 0


def test_several_targets_are_averaged(table):
    X, y, _ = table
    both = np.column_stack([y, -10 * y])
    model = DeepGPRegressor(Linear(), random_state=0).fit(X, both)
    low, high = np.moveaxis(model.predict_interval(X, 0.8), -1, 0)
    expected = np.mean((low <= both) & (both <= high))
    assert Scorer("coverage", 0.8)(model, X, both) == pytest.approx(expected)
    assert Scorer("neg_crps")(model, X, both) == pytest.approx(-model.evaluate(X, both)["crps"])


@pytest.mark.parametrize(("options", "wrong"), [(("crps",), "crps"), (("coverage", 1.0), "1.0")])
def test_what_is_no_score_is_refused(options, wrong):
    with pytest.raises(ValueError, match=f"got .?{wrong}"):
        Scorer(*options)


def test_scores_of_other_models_are_refused(table, classifier):
    with pytest.raises(TypeError, match=r"'neg_crps' is of a DeepGPRegressor.*got a DeepGPClass"):
        Scorer("neg_crps")(classifier, table[0], table[2])
    with pytest.raises(TypeError, match="got a StandardScaler"):
        Scorer("neg_log_score")(StandardScaler(), table[0], table[2])


def test_searches_choose_by_scores_of_distributions(table):
    X, y, _ = table
    pipeline = make_pipeline(StandardScaler(), DeepGPRegressor(random_state=0))
    grid = {"deepgpregressor__members": [Constant(), Linear()]}
    search = GridSearchCV(pipeline, grid, scoring=scorers(), refit="neg_crps", cv=KFold(3))
    search.fit(X, y)
    assert isinstance(search.best_params_["deepgpregressor__members"], Linear)
    assert search.score(X, y) == Scorer("neg_crps")(search.best_estimator_, X, y)
    assert np.all(search.cv_results_["mean_test_coverage"] > 0.7)


def test_classifiers_are_cross_validated(table):
    X, _, labels = table
    model = DeepGPClassifier(Linear(), random_state=0)
    found = cross_validate(model, X, labels, scoring=scorers(*CLASSIFICATION_SCORES), cv=3)
    assert np.all(found["test_neg_brier"] > -0.5)
    assert np.all(found["test_neg_log_score"] > np.log(0.5))


def test_weights_and_groups_are_routed(table):
    X, y, _ = table
    groups, weights = np.arange(N) % 6, 1.0 + np.arange(N)
    with sklearn.config_context(enable_metadata_routing=True):
        model = DeepGPRegressor(Linear(), random_state=0)
        model.set_fit_request(sample_weight=True, groups=True)
        scorer = Scorer("neg_log_score").set_score_request(sample_weight=True)
        params = {"groups": groups, "sample_weight": weights}
        found = cross_validate(
            model,
            *(X, y),
            scoring=scorer,
            cv=GroupKFold(3),
            params=params,
            return_estimator=True,
            return_indices=True,
        )
        ignorant = Scorer("neg_log_score")
        with pytest.raises(ValueError, match="sample_weight"):
            cross_validate(model, X, y, scoring=ignorant, cv=GroupKFold(3), params=params)
    for fitted, train, test, score in zip(
        found["estimator"],
        found["indices"]["train"],
        found["indices"]["test"],
        found["test_score"],
        strict=True,
    ):
        assert not set(groups[train]) & set(groups[test])
        again = DeepGPRegressor(Linear(), random_state=0)
        again.fit(X.iloc[train], y.iloc[train], weights[train], groups=groups[train])
        log_prob = again.log_prob(X.iloc[test], y.iloc[test])
        np.testing.assert_array_equal(fitted.log_prob(X.iloc[test], y.iloc[test]), log_prob)
        assert score == pytest.approx(np.average(log_prob, weights=weights[test]))


def test_partial_dependence_averages_predictions_over_the_other_column(
    table, regressor, classifier
):
    X = table[0]
    for model, predict in (
        (regressor, regressor.predict),
        (classifier, lambda rows: classifier.predict_proba(rows)[:, 1]),
    ):
        found = partial_dependence(model, X, ["size"], grid_resolution=3)
        expected = [predict(X.assign(size=size)).mean() for size in found["grid_values"][0]]
        np.testing.assert_allclose(found["average"][0], expected)


def test_permutation_importance_finds_the_column_that_matters(table, regressor):
    X, y, _ = table
    found = permutation_importance(regressor, X, y, scoring=Scorer("neg_crps"), random_state=0)
    assert found.importances_mean[0] > 10 * abs(found.importances_mean[1])


def test_classifiers_are_calibrated_by_scikit_learn(table, classifier):
    X, _, labels = table
    refitted = CalibratedClassifierCV(DeepGPClassifier(Linear(), random_state=0), cv=3)
    for model in (refitted, CalibratedClassifierCV(FrozenEstimator(classifier))):
        p = model.fit(X, labels).predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert np.mean(model.classes_[p.argmax(axis=1)] == labels) > 0.9


def test_frames_of_a_pipeline_reach_the_model_with_their_names(table):
    X, y, _ = table
    pipeline = make_pipeline(StandardScaler(), DeepGPRegressor(Linear(), random_state=0))
    pipeline.set_output(transform="pandas").fit(X, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["size", "age"]


def test_notebooks_show_an_estimator_as_html(regressor):
    for model in (regressor, DeepGPRegressor([("line", Linear()), ("level", Constant())])):
        page = model._repr_html_()
        assert "DeepGPRegressor" in page
        assert "Linear" in page
