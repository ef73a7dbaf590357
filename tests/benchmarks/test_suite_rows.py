"""Which rows train and which test, and how systems see them."""

import os

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.suite import tables
from benchmarks.suite.rows import TrainingRows, parts_of
from benchmarks.suite.tables import Groups, Split, Table

DATA = pytest.mark.skipif(
    not os.path.isdir(os.path.join(os.environ.get("BOCHNER_DATA", ""), "suite")),
    reason="BOCHNER_DATA names no folder with the suite's tables",
)
ROWS = pa.table(
    {
        "size": [1.0, 2.0, None, 4.0, 1.0, 6.0],
        "color": ["red", "blue", "red", None, "red", "green"],
        "nothing": pa.nulls(6),
        "kind": ["a", "b", "a", "b", "a", "c"],
    }
)
SPLIT = Split(np.array([0, 1, 2, 3]), np.array([4, 5]))


def test_the_number_of_splits_follows_the_rows():
    assert tables.splits_of("servo") == tuple(range(10))
    assert tables.splits_of("airfoil") == tuple(range(5))
    assert tables.splits_of("ring") == (0, 1)
    assert tables.splits_of("adult") == (0,)
    assert tables.splits_of("concrete") == (10, 11, 12, 13, 14)
    assert tables.splits_of("protein") == (0, 1, 2, 3, 4)


@DATA
@pytest.mark.parametrize("name", ["servo", "hypothyroid", "parkinsons by subject", "yacht"])
def test_training_and_test_rows_are_apart_and_the_same_each_time(name):
    table = tables.load(name)
    number = tables.splits_of(name)[0]
    one, two = (tables.split(name, number, table) for _ in range(2))
    np.testing.assert_array_equal(one.test, two.test)
    assert not set(one.training) & set(one.test)
    assert len(one.training) + len(one.test) == table.rows.num_rows
    assert len(one.test) >= table.rows.num_rows // 20


@DATA
def test_no_subject_of_the_test_rows_is_in_the_training_part_and_its_number_is_no_input():
    table = tables.load("parkinsons by subject")
    split = tables.split("parkinsons by subject", 0, table)
    subjects = table.rows["x0"].to_numpy()
    assert not set(subjects[split.training]) & set(subjects[split.test])
    parts = parts_of(table, split, seed=0)
    assert "x0" not in parts.inputs.column_names
    of_rows = parts.training.groups.of_rows
    for kept, held_out in parts.training.folds(5):
        assert not set(of_rows[kept]) & set(of_rows[held_out])


def test_groups_in_time_hold_out_the_last_rows():
    groups = Groups(np.repeat(np.arange(10), 4), in_time=True)
    inputs = pa.table({"x": np.arange(40.0)})
    rows = TrainingRows(inputs, np.arange(40.0), "y", None, groups, seed=0)
    kept, held_out = rows.held_out(0.2)
    assert held_out.tolist() == list(range(32, 40))
    assert kept.tolist() == list(range(32))


def test_folds_hold_out_each_row_once():
    rows = TrainingRows(pa.table({"x": np.zeros(23)}), np.zeros(23), "y", None, None, seed=3)
    held_out = np.concatenate([part for _, part in rows.folds(5)])
    assert sorted(held_out) == list(range(23))


def test_test_rows_of_classes_that_no_training_row_has_are_left_out():
    parts = parts_of(Table(ROWS, "kind", classification=True), SPLIT, seed=0)
    assert parts.training.classes.tolist() == ["a", "b"]
    assert parts.numbers.tolist() == [4]
    assert parts.y.tolist() == [0]
    assert parts.training.table["kind"].to_pylist() == ["a", "b", "a", "b"]


def test_test_rows_that_stand_in_the_training_part_are_marked():
    parts = parts_of(Table(ROWS, "kind", classification=True), SPLIT, seed=0)
    assert parts.repeated.tolist() == [True]
    other = ROWS.set_column(3, "kind", pa.array([1.0, 2.0, 3.0, 4.0, 1.5, 6.0]))
    parts = parts_of(Table(other, "kind", classification=False), SPLIT, seed=0)
    assert parts.repeated.tolist() == [False, False]


def test_a_frame_has_categories_of_training_rows_only():
    rows = parts_of(Table(ROWS, "kind", classification=True), SPLIT, seed=0).training
    further = rows.frame(ROWS.take([5]).drop_columns(["kind"]))
    assert list(rows.frame.rows.columns) == ["size", "color"]
    assert list(rows.frame.rows["color"].cat.categories) == ["blue", "red"]
    assert further["color"].isna().tolist() == [True]


def test_a_matrix_is_standardized_with_missing_values_marked():
    rows = parts_of(Table(ROWS, "kind", classification=True), SPLIT, seed=0).training
    X = rows.matrix.X
    assert np.isfinite(X).all()
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    further = rows.matrix(ROWS.take([5]).drop_columns(["kind"]))
    assert further.shape == (1, X.shape[1])
    assert np.isfinite(further).all()
