import copy
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.exact.columns import Category, Columns
from bochner.exact.encode_program import encoder
from bochner.exact.matrix import MatrixColumns
from bochner.system.saving import ModelFileError

SOURCES = [(0,), (2, 3, 4), (1,)]


def matrix(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 5))
    X[:, :2] = rng.normal(size=(n, 2))
    X[rng.random(n) < 0.2, 1] = np.nan
    place = rng.integers(0, 4, n)
    X[place < 3, 2 + place[place < 3]] = 1
    return X, place


def test_dummies_are_a_category_and_others_numbers():
    X, place = matrix()
    text = np.array(["0", "1", "2", "rest"], dtype=object)[place]
    columns = [X[:, 0], text, X[:, 1]]
    expected, found = Columns.learn(columns)(columns), MatrixColumns.learn(X, SOURCES)(X)
    for name in ("numbers", "ranks", "codes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.layout == expected.layout


def test_a_dummy_that_is_missing_makes_the_category_missing():
    X, _ = matrix()
    X[:10, 3] = np.nan
    columns = MatrixColumns.learn(X, SOURCES)
    category = columns.columns.columns[1]
    assert isinstance(category, Category)
    values = category.values
    assert len(values) == 5
    assert np.all(columns(X[:10]).codes[:, 0] == values.index("\0missing"))


def test_rows_are_counted_where_no_column_is_used():
    assert len(MatrixColumns.learn(np.zeros((4, 2)), [])(np.zeros((7, 2)))) == 7


def test_it_survives_json():
    X, _ = matrix()
    columns = MatrixColumns.learn(X, SOURCES)
    again = MatrixColumns.from_json(json.loads(json.dumps(columns.to_json())), 5)
    assert again.sources == columns.sources
    np.testing.assert_array_equal(again(X).numbers, columns(X).numbers)


def of_many_values():
    """A number, and the numbers of values of a category with an indicator beside them, which is left aside."""
    X = np.column_stack([np.arange(6.0), [0, 0, 1, 1, 0, 0], [3, 3, 9, 700, 9, 3]])
    return X, MatrixColumns.learn(X, [(0,), (1, 2)], coded=[2])


def test_categories_of_many_values_are_told_apart_by_their_numbers():
    X, columns = of_many_values()
    assert columns(X).codes.tolist() == [[0], [0], [1], [2], [1], [0]]
    assert columns(X).numbers.shape == (6, 1)
    again = MatrixColumns.from_json(json.loads(json.dumps(columns.to_json())), 3)
    assert again.coded == (2,)
    odd = np.array([[0, 0, 4.0], [0, 0, -1], [0, 0, np.nan], [0, 0, 1e9], [0, 0, 700]])
    assert again(odd).codes[:, 0].tolist() == [3, 3, 3, 3, 2]
    with jax.enable_x64(True):
        np.testing.assert_array_equal(encoder(again)(jnp.asarray(odd)).codes, again(odd).codes)


@pytest.mark.parametrize(
    "change",
    [
        {"coded": []},
        {"coded": [1]},
        {"coded": "2"},
        {"sources": [[0], [2, 1]]},
        {"columns": [{"values": [1, 2]}, {"values": [1, 2]}]},
        *({"values": own} for own in ([2, 1], [1, 1], [-1], [0.5], [20_000], ["a"], list(range(20_000)))),
    ],
    ids=lambda change: str(change)[:40],
)  # fmt: skip
def test_such_columns_are_checked_when_they_are_read(change):
    stored = of_many_values()[1].to_json()
    if "values" in change:
        change = {"columns": [stored["columns"][0], change]}
    with pytest.raises(ModelFileError):
        MatrixColumns.from_json(json.loads(json.dumps(stored | change)), 3)


def stored():
    return MatrixColumns.learn(matrix()[0], SOURCES).to_json()


CHANGES = {
    "no object": lambda s: None,
    "no list": lambda s: s | {"sources": 3},
    "a source beyond": lambda s: s | {"sources": [[0], [2, 3, 4], [5]]},
    "a source below": lambda s: s | {"sources": [[0], [2, 3, 4], [-1]]},
    "a flag": lambda s: s | {"sources": [[0], [2, 3, 4], [True]]},
    "a source twice": lambda s: s | {"sources": [[0], [2, 3, 4], [0]]},
    "an empty source": lambda s: s | {"sources": [[0], [], [1]]},
    "few sources": lambda s: s | {"sources": [[0], [2, 3, 4]]},
    "other types": lambda s: s | {"sources": [[0, 1], [2], [3]]},
    "no columns": lambda s: {"sources": s["sources"]},
}
COLUMN_CHANGES = {
    "knots": [[], [1.0], "text", [None], None],
    "ranks": [[], [0.5], {"a": 1}],
    "center": [None, "1", float("nan"), 1e200, True],
    "deviation": [-1.0, float("inf"), []],
    "share_missing": [1.5, -0.1],
    "values": [[1], ["a", "a"], ["a"] * 2, [str(i) for i in range(50)], "abc"],
    "shares": [[0.5], [2.0, 0, 0, 0, 0], [float("nan")] * 5, None],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_does_not_fit_is_refused(change):
    with pytest.raises(ModelFileError):
        MatrixColumns.from_json(change(stored()), 5)


@pytest.mark.parametrize("name", COLUMN_CHANGES)
def test_columns_that_do_not_fit_are_refused(name):
    for value in COLUMN_CHANGES[name]:
        changed = copy.deepcopy(stored())
        column = changed["columns"][1 if name in ("values", "shares") else 0]
        column[name] = value
        with pytest.raises(ModelFileError):
            MatrixColumns.from_json(changed, 5)
        del column[name]
        with pytest.raises(ModelFileError):
            MatrixColumns.from_json(changed, 5)


@pytest.mark.parametrize("knots", [[0.0, 0.0], [1.0, 0.0], [0.0, 1e-320]])
def test_knots_must_increase_by_what_can_be_divided_by(knots):
    changed = stored()
    changed["columns"][0] |= {"knots": knots, "ranks": [0.1, 0.9]}
    with pytest.raises(ModelFileError, match="knots"):
        MatrixColumns.from_json(changed, 5)
