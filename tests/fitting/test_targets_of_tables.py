"""Targets of tables as people write them: missing ones, numbers that are no classes, classes that are numbers."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, Linear, load, open_table
from bochner.fitting.known_targets import KnownTargets
from bochner.fitting.sources import TrainingSource, task_of
from bochner.tables.source import TableError


def european(path, n=40, other="0,5"):
    """Write `y = 1000 x` with points, commas and units; and give x and y."""
    x = np.round(np.random.default_rng(0).uniform(1, 9, n), 2)
    cells = [f"{1000 * v:,.2f}".translate(str.maketrans(",.", ".,")) + " \u20ac" for v in x]
    lines = [f"{v:.2f}".replace(".", ",") + f";{cell}" for v, cell in zip(x, cells, strict=True)]
    path.write_text("x;y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return x, 1000 * x


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    x, y = european(folder / "flats.csv")
    model = DeepGPRegressor(Linear(), random_state=0).fit(folder / "flats.csv", "y")
    model.save(folder / "flats.bochner")
    return load(folder / "flats.bochner"), folder / "flats.csv", x, y


def test_numbers_as_people_write_them_are_learned_as_numbers(fitted):
    model, path, x, y = fitted
    np.testing.assert_allclose(model.predict(path), y, atol=50)
    np.testing.assert_allclose(model.predict(pd.DataFrame({"x": x})), y, atol=50)
    assert model.evaluate(path, "y")["rmse"] < 25


def test_a_saved_model_reads_a_later_table_as_the_first(fitted, tmp_path):
    model, *_ = fitted
    # Alone, this column would be read as 2.345, and that of the target as text.
    (tmp_path / "new.csv").write_text("x;y\n5,00;5.000\n6,00;6.000\n")
    np.testing.assert_allclose(model.predict(tmp_path / "new.csv"), [5000, 6000], atol=50)
    assert model.evaluate(tmp_path / "new.csv", "y")["rmse"] < 50


def test_a_target_of_many_texts_is_no_target(tmp_path):
    lines = "".join(f"{i},lot {i}: {i}\n" for i in range(400))
    (tmp_path / "a.csv").write_text("x,y\n" + lines)
    with pytest.raises(
        ValueError,
        match=r"'y' has 400 different values in 400 rows, such as 'lot 0: 0'.*`--decimal`",
    ):
        DeepGPClassifier(Linear()).fit(tmp_path / "a.csv", "y")
    with pytest.raises(ValueError, match="y has 30 different values in 60 rows"):
        DeepGPClassifier(Linear()).fit(np.arange(60.0)[:, None], np.arange(60) % 30)


def test_rows_without_target_are_left_out():
    table = pa.table({"x": [1.0, 2, 3, 4, 5], "y": [2.0, None, 6, float("nan"), 10]})
    with pytest.warns(
        UserWarning, match="missing in 2 of 5 rows, the first being row 2; they are left out"
    ):
        found = TrainingSource.open(table, "y", (), classification=False)
    assert found.n_rows == 3
    assert found.sample["x"].to_pylist() == [1, 3, 5]
    model = DeepGPRegressor(Linear(), random_state=0)
    with pytest.warns(UserWarning, match="left out"):
        model.fit(table, "y")
    assert model.total_weight_ == 3
    with pytest.warns(UserWarning, match="left out"):
        measured = model.evaluate(table, "y")
    known = table.filter(pa.array([True, False, True, False, True]))
    assert measured == model.evaluate(known, "y")


def test_a_target_that_is_nowhere_known_is_said():
    with (
        pytest.warns(UserWarning, match="missing in 2 of 2 rows"),
        pytest.raises(TableError, match="no rows with a target"),
    ):
        TrainingSource.open(
            pa.table({"x": [1, 2], "y": pa.nulls(2, pa.float64())}), "y", (), classification=False
        )


def test_an_infinite_target_is_named_by_its_row():
    table = pa.table({"x": [1.0, 2, 3], "y": [None, 1.0, float("inf")]})
    with pytest.raises(TableError, match="target 'y' is infinite in row 3"):
        TrainingSource.open(table, "y", (), classification=False)


def test_few_whole_numbers_may_be_classes():
    with pytest.warns(
        UserWarning, match="only 4 different numbers, all whole.*--task classification"
    ):
        assert (
            task_of(open_table(pa.table({"x": range(40), "y": [0, 1, 2, 3] * 10})), "y")[0]
            == "regression"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in (range(40), [0.5, 1.5, 2.5, 3.5] * 10, ["a", "b"] * 20):
            task_of(open_table(pa.table({"x": [1, 2] * 20, "y": values})), "y")


SUMMED = [3.0, 1.5, 0, 2, 7.25, 1, 4]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("rows_a_batch", [3, 100])
def test_a_row_of_totals_at_the_end_is_said(sign, rows_a_batch):
    y = sign * np.array([*SUMMED, sum(SUMMED), np.nan])
    known = KnownTargets("y", classification=False)
    for start in range(0, len(y), rows_a_batch):
        part = pa.array(y[start : start + rows_a_batch], from_pandas=True)
        known.rows(pa.RecordBatch.from_pydict({"y": part}))
    with (
        pytest.warns(UserWarning, match="in row 8, the last one, is the sum of all others"),
        pytest.warns(UserWarning, match="missing in 1 of 9 rows"),
    ):
        known.warn()


@pytest.mark.parametrize(
    "y",
    [
        [*SUMMED, sum(SUMMED) * 1.001],
        [*SUMMED[:2], sum(SUMMED[:2])],  # few
        [1, -1, 1, -1, 1, -1, 1, 1],  # of both signs, where it is no wonder
        [0.0] * 9,
    ],
)
@pytest.mark.filterwarnings("error::UserWarning")
def test_other_last_rows_are_no_totals(y):
    known = KnownTargets("y", classification=False)
    known.rows(pa.RecordBatch.from_pydict({"y": pa.array(y, pa.float64())}))
    known.warn()
