"""Columns of any type have their values back, and values by which effects can be told."""

import dataclasses
import datetime

import numpy as np
import pyarrow as pa
import pytest

from bochner import DeepGPRegressor, Linear
from bochner.explaining import table_columns


@pytest.fixture(scope="module")
def fitted():
    table = pa.table(
        {
            "age": [30.0, None, 50, 40, 20, 60],
            "color": ["red", None, "blue", "red", "blue", "red"],
            "day": [datetime.datetime(2024, 1, d, h) for d, h in zip(range(1, 7), range(6), strict=True)],
            "late": [True, False, None, True, False, True],
            "wait": pa.array([60, 120, 180, 240, 300, 360], pa.duration("s")),
            "y": [1.0, 2, 3, 4, 5, 7],
        }
    )  # fmt: skip
    return DeepGPRegressor(Linear(), random_state=0).fit(table, "y").fitted_, table


def test_values_are_those_of_the_table(fitted):
    fitted, table = fitted
    X = fitted.encoder(table)
    age, color, day, late, wait = table_columns(fitted)
    np.testing.assert_array_equal(age.values(X), [30, np.nan, 50, 40, 20, 60])
    assert color.values(X).tolist() == table["color"].to_pylist()
    assert day.values(X).tolist() == table["day"].to_pylist()
    assert late.values(X).tolist() == [True, False, None, True, False, True]
    np.testing.assert_allclose(wait.values(X) * 24 * 3600, [60, 120, 180, 240, 300, 360])
    assert wait.unit == ": days"
    assert [column.is_category for column in (age, color, day, late, wait)] == [
        False, True, False, True, False,
    ]  # fmt: skip


def test_every_place_belongs_to_one_column(fitted):
    places = [place for column in table_columns(fitted[0]) for place in column.places]
    assert places == list(range(fitted[0].d_in))


def test_an_unseen_value_is_another_one(fitted):
    column = table_columns(fitted[0])[1]
    assert column.values(np.zeros((1, fitted[0].d_in))).tolist() == ["another"]


def test_grids_hold_values_that_are_there_or_lie_between(fitted):
    fitted, table = fitted
    X = fitted.encoder(table)
    age, color, day, late, _ = table_columns(fitted)
    values, own = age.grid(X, 9)
    assert values.tolist() == [20, 30, 40, 50, 60]
    assert own.tolist() == [[value, 0] for value in values]
    values, own = age.grid(X, 3)
    assert values == pytest.approx([20.4, 40, 59.6])
    assert (own[:, 1] == 0).all()
    assert color.grid(X, 2)[0].tolist() == ["blue", "red", None]
    values, own = day.grid(X, 3)
    assert values.tolist() == [table["day"].to_pylist()[place] for place in (0, 2, 5)]
    np.testing.assert_array_equal(own, day.of(X)[[0, 2, 5]])
    assert late.grid(X, 5)[0].tolist() == [False, True]


def test_a_grid_decodes_to_itself(fitted):
    fitted, table = fitted
    X = fitted.encoder(table)
    for column in table_columns(fitted):
        values, own = column.grid(X, 50)
        rows = column.put(np.repeat(X[:1], len(own), axis=0), own)
        assert column.values(rows).tolist() == values.tolist()
        others = np.delete(np.arange(X.shape[1]), column.places)
        np.testing.assert_array_equal(rows[:, others], np.repeat(X[:1, others], len(own), axis=0))


def test_columns_of_the_same_name_are_told_apart():
    model = DeepGPRegressor(Linear(), random_state=0).fit(np.eye(4)[:, :3], np.arange(4.0))
    fitted = dataclasses.replace(model.fitted_, names=("a", "b", "a"))
    assert [column.name for column in table_columns(fitted)] == ["a (0)", "b", "a (2)"]
