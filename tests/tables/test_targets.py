import datetime
import math

import numpy as np
import pyarrow as pa
import pytest

from bochner.tables.source import TableError
from bochner.tables.targets import find_task, target_values


@pytest.mark.parametrize(
    ("column", "task"),
    [
        (pa.array(["a", "b", "c"]), "classification"),
        (pa.array([1, 2, 3]).dictionary_encode(), "classification"),
        (pa.array([True, None]), "classification"),
        (pa.array([0, 1, None, 1]), "classification"),
        (pa.array([-1.0, 1.0]), "classification"),
        (pa.chunked_array([[0, 1], [2]]), "regression"),
        (pa.array([0.5, 1.5, 2.5]), "regression"),
        (pa.array([7, 7]), "regression"),
        (pa.array([1, 2, 1], pa.float16()), "classification"),
    ],
)
def test_the_values_decide_the_task(column, task):
    found, reason = find_task(column)
    assert found == task
    assert reason.startswith("it holds ")


@pytest.mark.parametrize("column", [pa.array([datetime.date(2020, 1, 1)]), pa.array([[1]])])
def test_dates_and_lists_are_no_targets(column):
    with pytest.raises(TableError, match="must be numbers, text, categories or booleans"):
        find_task(column)
    with pytest.raises(TableError, match="target 'y'"):
        target_values(pa.table({"y": column}), "y")


@pytest.mark.parametrize(
    ("values", "classification", "expected", "dtype"),
    [
        (pa.array([1, 2]), None, [1.0, 2.0], np.float64),
        (pa.array([1, 2], pa.int8()), True, [1, 2], np.int8),
        (pa.array([1.5, 2.0]), True, [1.5, 2.0], np.float64),
        (pa.array([True, False]), None, [True, False], np.bool_),
        (pa.array([True, False]), False, [1.0, 0.0], np.float64),
        (pa.array(["b", "a"]), None, ["b", "a"], object),
        (pa.array(["b", "a"]).dictionary_encode(), None, ["b", "a"], object),
        (pa.array(["1", "2.5"]), False, [1.0, 2.5], np.float64),
    ],
)
@pytest.mark.parametrize("form", [pa.table, pa.record_batch])
def test_targets_are_numbers_or_labels_that_can_be_sorted(
    values, classification, expected, dtype, form
):
    found = target_values(form({"y": values}), "y", classification=classification)
    assert found.tolist() == expected
    assert found.dtype == dtype
    assert np.unique(found).tolist() == sorted(expected)


@pytest.mark.parametrize("classification", [True, False])
def test_missing_and_infinite_targets_are_counted_and_named(classification):
    batch = pa.table({"y": [1.0, None, 2.0, None], "z": [1.0, 2.0, math.inf, math.nan]})
    with pytest.raises(TableError, match="target 'y' is missing in 2 rows, the first being row 12"):
        target_values(batch, "y", classification=classification, row=10)
    with pytest.raises(
        TableError, match="'z' has 2 values that are not finite, the first in row 3"
    ):
        target_values(batch, "z", classification=classification)
    with pytest.raises(TableError, match=r"no target column 'w'\. The columns are 'y', 'z'"):
        target_values(batch, "w", classification=classification)


def test_missing_labels_are_counted_and_named():
    for values in (pa.array(["a", None]), pa.array([True, None]), pa.array([1, None]), pa.nulls(2)):
        with pytest.raises(TableError, match="target 'y' is missing in"):
            target_values(pa.table({"y": values}), "y", classification=True)
