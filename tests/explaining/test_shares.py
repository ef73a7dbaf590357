"""Shares of columns: of known functions they are what they are defined to be, and of fitted ones about the truth."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import permutation_importance

from bochner import Constant, DeepGPRegressor, load
from bochner.explaining import TableColumn
from bochner.explaining.members import members_of
from bochner.explaining.shares import n_rows_for, shares_of_columns, variances, variances_by_column
from tests.explaining.tables import additive

DATA_FILES = Path(__file__).parents[1] / "data_files"
TWO = [TableColumn("a", (0,)), TableColumn("b", (1,))]


def shares(function, X, columns=TWO):
    (found,) = variances_by_column(lambda X: [function(X)[:, None]], X, columns)
    return shares_of_columns(found, variances(function(X)[:, None]))


def test_columns_that_act_together_count_with_all_that_they_do():
    # Of a + ab, with standard normal a and b, the total variances of Sobol are 2 and 1.
    X = np.random.default_rng(0).normal(size=(5000, 2))
    (found,) = variances_by_column(lambda X: [X[:, [0]] * (1 + X[:, [1]])], X, TWO)
    np.testing.assert_allclose(found[:, 0], [2, 1], rtol=0.15)
    np.testing.assert_allclose(shares(lambda X: X[:, 0] * X[:, 1], X), [0.5, 0.5], atol=0.02)


def test_shares_of_a_sum_are_those_of_its_terms_whatever_the_columns_have_in_common():
    a, b = np.random.default_rng(0).normal(size=(2, 5000))
    X = np.column_stack([a, 0.95 * a + np.sqrt(1 - 0.95**2) * b])
    for signs in ([2, 1], [2, -1]):
        np.testing.assert_allclose(shares(lambda X, s=signs: X @ s, X), [0.8, 0.2], atol=0.02)


def test_the_same_rows_have_the_same_shares_and_a_copy_of_a_place_goes_along():
    X = np.repeat(np.random.default_rng(0).normal(size=(50, 1)), 2, axis=1)
    together = [TableColumn("both", (0, 1))]
    assert shares(lambda X: X[:, 0] - X[:, 1], X, together).tolist() == [0.0]
    assert shares(lambda X: X.sum(axis=1), X, together).tolist() == [1.0]


def test_shares_of_a_fitted_sum_are_close_to_the_truth(explanation):
    truth = additive()[1].var()
    found = pd.Series(explanation.columns)
    assert list(explanation.columns) == truth.sort_values(ascending=False).index.tolist()
    np.testing.assert_allclose(found[truth.index], truth / truth.sum(), atol=0.05)
    assert found["nothing"] < 0.005
    assert found.sum() == pytest.approx(1)


def test_shares_are_those_of_permutation_importance(model):
    frame, _ = additive()
    X = frame.drop(columns="y")
    explained = model.explain(X).columns
    for y in (frame["y"], model.predict(X)):
        importance = permutation_importance(
            model, X, y, scoring="neg_mean_squared_error", n_repeats=5, random_state=0
        )["importances_mean"]
        by_column = pd.Series(importance, X.columns).sort_values(ascending=False)
        assert by_column.index[:3].tolist() == list(explained)[:3]
        expected = by_column / by_column.sum()
        np.testing.assert_allclose(pd.Series(explained)[expected.index], expected, atol=0.04)


def test_the_columns_are_those_of_the_table_for_the_whole_and_for_each_member(explanation):
    names = {"wave", "line", "color", "nothing"}
    assert explanation.columns.keys() == names
    assert all(member.columns.keys() == names for member in explanation.members.values())
    assert all(np.min(list(m.columns.values())) >= 0 for m in explanation.members.values())


def test_members_have_their_weights_and_shares_of_the_whole(model, explanation):
    weights = {m.name: m.weight for m in members_of(model.fitted_.predictor)}
    assert {name: m.weight for name, m in explanation.members.items()} == weights
    assert sum(weights.values()) == pytest.approx(1)
    assert sum(m.share for m in explanation.members.values()) == pytest.approx(1)
    assert explanation.members.keys() <= {"constant", "linear", "sum"}
    assert explanation.members["sum"].share > 0.8


def test_probabilities_of_classes_vary_with_the_column_that_decides(classifier, of_classes):
    explanation = of_classes
    assert list(explanation.columns) == ["column 0", "column 1"]
    assert explanation.columns["column 0"] > 0.95
    assert list(explanation.outputs) == classifier.classes_.tolist()
    assert all(by_class["column 0"] > 0.9 for by_class in explanation.outputs.values())


def test_several_targets_count_the_same(several):
    explanation = several.explain()
    assert explanation.columns["a"] == pytest.approx(0.5, abs=0.06)
    assert explanation.outputs["target 0"]["a"] > 0.9
    assert explanation.outputs["target 1"]["b"] > 0.9
    first = explanation.members["target 0: sum"]
    assert list(first.columns) == ["a", "b"]
    assert first.share == pytest.approx(0.5, abs=0.02)


def test_a_deep_model_alone_is_explained(deep):
    explanation = deep.explain()
    assert next(iter(explanation.columns)) == "column 0"
    assert explanation.columns["column 0"] > 0.9
    assert explanation.parts == {"deep": pytest.approx(1)}
    assert explanation.members["deep"].weight == 1


def test_where_the_same_is_predicted_for_all_rows_no_column_has_a_share():
    X = np.random.default_rng(0).normal(size=(20, 2))
    explanation = DeepGPRegressor(Constant()).fit(X, 1e6 + X[:, 0]).explain()
    assert set(explanation.columns.values()) == {0.0}
    assert explanation.parts == {}
    assert explanation.members["constant"].share == 0.0


@pytest.mark.parametrize("name", ["model", "deep"])
def test_a_loaded_model_explains_the_same(name, request, tmp_path):
    fitted = request.getfixturevalue(name)
    fitted.save(tmp_path / "m.bochner")
    loaded, known = load(tmp_path / "m.bochner").explain(), fitted.explain()
    np.testing.assert_array_equal(loaded.rows, known.rows)
    assert list(loaded.columns) == list(known.columns)
    for found, expected in ((loaded.columns, known.columns), (loaded.parts, known.parts)):
        assert found == pytest.approx(expected, abs=1e-3)


def test_a_model_that_has_kept_no_rows_needs_some():
    old = load(DATA_FILES / "regressor-1.bochner")
    with pytest.raises(ValueError, match="has kept no training rows: give some"):
        old.explain()
    with pytest.raises(ValueError, match="must be two or more; got 1"):
        old.explain(old.fitted_.deep.input_scaling.center[None])
    scaling = old.fitted_.deep.input_scaling
    Z = np.random.default_rng(0).normal(size=(30, old.n_features_in_))
    X = pd.DataFrame(Z * scaling.scale + scaling.center, columns=old.feature_names_in_)
    assert sum(old.explain(X).columns.values()) == pytest.approx(1)


def test_many_columns_are_explained_by_fewer_rows():
    X = np.random.default_rng(0).normal(size=(200, 400))
    columns = [TableColumn(str(place), (place,)) for place in range(400)]
    found = shares(lambda X: X[:, 3] + 0.1 * X[:, 7], X, columns)
    assert np.flatnonzero(found).tolist() == [3, 7]
    assert (n_rows_for(100), n_rows_for(10_000)) == (50, 20)
    model = DeepGPRegressor(Constant()).fit(X[:, :100], X[:, 0])
    assert len(model.explain().rows) == 50
    assert len(model.explain(X[:10, :100]).rows) == 10
