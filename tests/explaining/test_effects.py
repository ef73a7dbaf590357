"""Effects of columns: of known functions they are exact, and of fitted ones the truth lies in their intervals."""

import numpy as np
import pandas as pd
import pytest

from bochner.explaining import TableColumn
from bochner.explaining.effects import effect_of
from tests.explaining.tables import COLORS, additive, terms_of


def known_effect(explanation, column, values):
    """What the column adds at each value, and the mean over rows of what the others do."""
    frame, terms = additive()
    others = 10 + terms.drop(columns=column).sum(axis=1).mean()
    filler = pd.DataFrame({name: [frame[name][0]] * len(values) for name in terms})
    filler[column] = values
    return others + terms_of(filler)[column].to_numpy()


def test_the_known_effect_of_numbers_lies_mostly_in_the_intervals(explanation):
    for column in ("wave", "line"):
        effect = explanation.effect(column, 20)
        known = known_effect(explanation, column, effect.values)
        # Rows that are averaged over are not quite those of the table.
        shift = np.mean(effect.mean - known)
        assert abs(shift) < 0.5
        inside = (effect.low - 0.05 <= known + shift) & (known + shift <= effect.high + 0.05)
        assert inside.mean() > 0.8
        assert np.ptp(effect.mean) > 2
        assert np.all(effect.low <= effect.high)
        assert np.max(effect.high - effect.low) < 1.5
        assert len(effect.values) == 20
        assert np.all(np.diff(effect.values) > 0)


def test_a_category_has_one_value_each(explanation):
    effect = explanation.effect("color", n_points=2)
    assert effect.is_category
    assert effect.values.tolist() == list(COLORS)
    np.testing.assert_allclose(np.diff(effect.mean), [1.5, 1.5], atol=0.2)


def test_an_effect_is_the_average_over_rows_that_have_the_value(model, explanation):
    effect = explanation.effect("color")
    frame = additive()[0].drop(columns="y")
    all_red = model.explain(frame.assign(color="red")).rows
    reds = model.predict(all_red).mean()
    np.testing.assert_allclose(effect.mean[effect.values == "red"], reds, atol=0.2)


def test_classes_and_several_targets_have_a_column_each(classifier, of_classes, several):
    effect = of_classes.effect("column 0", n_points=5)
    assert effect.mean.shape == effect.low.shape == (5, 3)
    np.testing.assert_allclose(effect.mean.sum(axis=1), 1, atol=1e-6)
    low, middle, high = (
        list(classifier.classes_).index(name) for name in ("low", "middle", "high")
    )
    assert effect.mean[0, low] > 0.8
    assert effect.mean[2, middle] > 0.8
    assert effect.mean[-1, high] > 0.8
    assert np.all(effect.low >= 0)
    assert np.all(effect.high <= 1)
    of_targets = several.explain().effect("b", n_points=3, n_draws=2)
    slopes = np.diff(of_targets.mean, axis=0) / np.diff(of_targets.values)[:, None]
    np.testing.assert_allclose(slopes[:, 1], 1000, rtol=0.1)


def test_a_deep_model_alone_has_effects(deep):
    effect = deep.explain().effect("column 0", n_points=9, n_draws=8)
    known = 5 + 2 * np.sin(2 * effect.values)
    inside = np.abs(effect.values) < 1.5
    assert np.mean(np.abs(effect.mean - known)[inside]) < 0.6
    assert np.all(effect.low < effect.high)


def test_intervals_are_those_of_drawn_functions_about_the_mean():
    X = np.random.default_rng(0).normal(size=(40, 2))
    slopes = np.random.default_rng(1).normal(2, 0.5, size=40)
    drawn = [lambda X, s=s: s * X[:, 0] + X[:, 1] for s in slopes]
    column = TableColumn("a", (0,))
    effect = effect_of(column, lambda X: 2 * X[:, :1] + X[:, 1:], drawn, X, 3, 0.8)
    np.testing.assert_allclose(effect.mean, 2 * effect.values + X[:, 1].mean())
    deviations = effect.values[:, None] * (slopes - slopes.mean())
    low, high = np.quantile(deviations, [0.1, 0.9], axis=1)
    np.testing.assert_allclose(effect.low - effect.mean, low)
    np.testing.assert_allclose(effect.high - effect.mean, high)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"column": "price"}, "no column 'price'; the columns are 'wave'"),
        ({"column": "wave", "n_points": 1}, "two points or more"),
        ({"column": "wave", "n_draws": 1}, "two draws or more"),
        ({"column": "wave", "coverage": 1.0}, "a coverage between 0 and 1"),
    ],
)
def test_what_cannot_be_is_told(explanation, words, message):
    with pytest.raises(ValueError, match=message):
        explanation.effect(**words)
