"""scikit-learn's conventions that its own checks leave out."""

import inspect
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bochner import Deep, DeepGPClassifier, DeepGPRegressor
from tests.deep_alone import deep_classifier, deep_regressor, parameters_of
from tests.estimators import problems
from tests.estimators.problems import SMALL

NAMES = ["age", "height", "mass"]


def test_a_clone_has_the_same_parameters_and_nothing_learned(regressor):
    copy = clone(regressor)
    assert parameters_of(copy) == parameters_of(regressor)
    assert copy.members is not regressor.members
    assert not hasattr(copy, "model_")
    with pytest.raises(NotFittedError):
        copy.predict(problems.numbers()[0])


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, X: model.sample_functions(1),
        lambda model, X: model.explain(),
        lambda model, X: model.members_,
        lambda model, X: model.save("nowhere"),
        lambda model, X: model.evaluate(X, X[:, 0]),
        lambda model, X: model.predict_interval(X),
        lambda model, X: model.sample_y(X),
    ],
)
def test_what_needs_a_fit_says_so(ask):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ask(DeepGPRegressor(), problems.numbers()[0])


def test_a_pipeline_predicts_and_scores():
    X, y = problems.numbers()
    pipeline = make_pipeline(StandardScaler(), deep_regressor(**SMALL | {"max_steps": 300}))
    assert pipeline.fit(X, y).score(X, y) > 0.5
    mean, std = pipeline.predict(X, return_std=True)
    assert mean.shape == std.shape == y.shape


def test_a_grid_search_runs_in_several_processes():
    X, y = problems.classes(90)
    search = GridSearchCV(
        deep_classifier(**SMALL | {"max_steps": 40}),
        {"members__learning_rate": [1e-5, 0.05]},  # the same program for both
        cv=2,
        n_jobs=2,
        refit=False,
    )
    search.fit(X, y)
    poor, good = search.cv_results_["mean_test_score"]
    assert good > poor + 0.1


@pytest.mark.parametrize("kind", [DeepGPRegressor, DeepGPClassifier])
def test_the_docstring_describes_every_parameter(kind):
    arguments = inspect.getdoc(kind).partition("Args:\n")[2].partition("\n\n")[0]
    described = re.findall(r"^    (\w+): ", arguments, re.MULTILINE)
    assert len(described) == len(set(described))
    assert set(described) == set(kind().get_params())


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_fitted_by_the_names_of_their_columns(frame, recwarn):
    X, y = problems.numbers()
    table = frame(dict(zip(NAMES, X.T, strict=True)))
    model = deep_regressor(**SMALL).fit(table, y)
    assert model.feature_names_in_.tolist() == NAMES
    plain = deep_regressor(**SMALL).fit(X, y)
    np.testing.assert_array_equal(model.predict(table), plain.predict(X))
    model.evaluate(table, y)
    model.log_prob(table, y)
    model.sample_y(table)
    assert not [w for w in recwarn if "feature names" in str(w.message)]
    with pytest.raises(ValueError, match="same order as they were in fit"):
        model.predict(table[["mass", "age", "height"]])
    wrong = frame(dict(zip(["age", "size", "mass"], X.T, strict=True)))
    with pytest.raises(ValueError, match=r"(?s)seen at fit time.*|unseen at fit time:\n- size"):
        model.predict(wrong)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("dtype", [str, object])
def test_classes_may_be_named_by_text(dtype):
    X, y = problems.classes()
    model = deep_classifier(**SMALL).fit(X, y.astype(dtype))
    assert model.classes_.tolist() == ["blue", "green", "red"]
    assert set(model.predict(X)) <= set(y)
    assert set(model.sample_y(X, 3).ravel()) <= set(y)


def test_classes_need_not_count_from_zero():
    X, y = problems.classes(n_classes=2)
    model = deep_classifier(**SMALL | {"max_steps": 300}).fit(X, np.where(y == "blue", 7, -3))
    assert model.classes_.tolist() == [-3, 7]
    assert model.score(X, np.where(y == "blue", 7, -3)) > 0.8


def test_score_is_the_coefficient_of_determination_and_the_accuracy(regressor, classifier):
    X, y = problems.numbers()
    expected = 1 - np.mean((y - regressor.predict(X)) ** 2) / np.var(y)
    assert regressor.score(X, y) == pytest.approx(expected)
    X, y = problems.classes()
    assert classifier.score(X, y) == pytest.approx(np.mean(classifier.predict(X) == y))


def test_parameters_are_only_stored_until_fit():
    model = DeepGPRegressor(Deep(n_layers=-1, kernel="nonsense"))
    assert model.get_params()["members__kernel"] == "nonsense"
    assert vars(model).keys() == model.get_params(deep=False).keys()
