"""Contributions of columns to one row: they add up exactly, and of sums they are the terms."""

import numpy as np
import pyarrow as pa
import pytest

from bochner.explaining import TableColumn
from bochner.explaining.contributions import contributions_of
from tests.explaining.tables import additive, sectors


def test_contributions_add_up_and_are_the_terms_of_a_sum(model, explanation):
    frame, terms = additive()
    for place in (0, 7):
        row = frame.drop(columns="y").iloc[[place]]
        found = model.explain_row(row)
        total = found.contributions.sum()
        assert total == pytest.approx(float(found.mean - found.average), rel=1e-12)
        assert float(found.mean) == pytest.approx(model.predict(row)[0], rel=1e-6)
        background = model.predict(explanation.rows).mean()
        assert float(found.average) == pytest.approx(background, rel=1e-6)
        centered = terms.iloc[place] - terms.mean()
        np.testing.assert_allclose(found.contributions, centered, atol=0.35)
        assert found.columns == tuple(terms.columns)
        assert found.values == tuple(row.iloc[0])
        assert found.deviations is None


def test_what_columns_do_together_is_shared_out_as_by_all_orders():
    X = np.random.default_rng(0).normal(size=(400, 3))
    columns = [TableColumn(name, (place,)) for place, name in enumerate("abc")]
    row = np.array([[1.0, 2.0, 3.0]])
    found = contributions_of(columns, lambda X: X.prod(axis=1, keepdims=True), [], X, row)
    assert found.contributions.sum() == pytest.approx(6 - X.prod(axis=1).mean())
    # Of a product of columns with mean zero, only the step that comes last adds something.
    np.testing.assert_allclose(found.contributions, [2, 2, 2], atol=0.45)


def test_columns_of_several_places_go_together():
    X = np.array([[0.0, 0.0, 5.0], [0.0, 0.0, 5.0]])
    columns = [TableColumn("pair", (0, 1)), TableColumn("c", (2,))]
    row = np.array([[2.0, 3.0, 6.0]])
    found = contributions_of(columns, lambda X: X[:, [0]] * X[:, [1]] + X[:, [2]], [], X, row)
    assert found.contributions.tolist() == [6.0, 1.0]


def test_deviations_are_those_of_drawn_functions():
    X = np.random.default_rng(0).normal(size=(30, 2))
    columns = [TableColumn("a", (0,)), TableColumn("b", (1,))]
    slopes = np.random.default_rng(1).normal(1, 0.5, size=500)
    drawn = [lambda X, s=s: s * X[:, 0] + X[:, 1] for s in slopes]
    row = np.array([[3.0, 3.0]])
    found = contributions_of(columns, lambda X: X.sum(axis=1, keepdims=True), drawn, X, row)
    expected = 0.5 * (3 - X[:10, 0].mean())
    np.testing.assert_allclose(found.deviations, [expected, 0], rtol=0.1, atol=1e-12)


def test_probabilities_of_classes_are_explained_one_by_one(classifier):
    X, _ = sectors()
    found = classifier.explain_row(X[0])
    assert found.contributions.shape == (2, 3)
    np.testing.assert_allclose(
        found.contributions.sum(axis=0), found.mean - found.average, atol=1e-12
    )
    np.testing.assert_allclose(found.contributions.sum(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(found.mean, classifier.predict_proba(X[:1])[0], atol=1e-6)
    of_first, of_second = np.abs(found.contributions).max(axis=1)
    assert of_first > 5 * of_second


def test_several_targets_and_a_deep_model_are_explained(several, deep):
    found = several.explain_row({"a": 0.5, "b": -1.0}, n_draws=3)
    assert found.contributions.shape == found.deviations.shape == (2, 2)
    np.testing.assert_allclose(found.contributions.sum(axis=0), found.mean - found.average)
    assert found.contributions[1, 1] == pytest.approx(-1000, rel=0.3)
    found = deep.explain_row([1.0, 0, 0], n_draws=4)
    assert found.contributions.sum() == pytest.approx(float(found.mean - found.average))
    assert np.argmax(np.abs(found.contributions)) == 0
    assert np.all(found.deviations > 0)


def test_a_row_may_come_in_any_form(model):
    frame = additive()[0].drop(columns="y")
    row = frame.iloc[[3]]
    forms = [row, frame.iloc[3], row.iloc[0].to_dict(), pa.Table.from_pandas(row)]
    found = [model.explain_row(form).contributions for form in forms]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_what_is_no_row_is_told(model, classifier):
    frame = additive()[0].drop(columns="y")
    for wrong in (frame.iloc[:2], frame.iloc[:0]):
        with pytest.raises(ValueError, match="a row to explain must be one"):
            model.explain_row(wrong)
    for wrong in ([1.0], [1.0, 2.0, 3.0], [[0.0, 1.0], [0.0, 2.0]], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="of 2 finite numbers"):
            classifier.explain_row(wrong)


def test_rows_to_compare_with_can_be_given(classifier):
    X, _ = sectors()
    low = X[X[:, 0] < -1]
    found = classifier.explain_row(X[0], low)
    np.testing.assert_allclose(found.average, classifier.predict_proba(low).mean(axis=0), atol=1e-6)
