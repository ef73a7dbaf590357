import itertools
import json

import numpy as np
import pandas as pd
import pytest

from bochner import DeepGPRegressor, Linear
from bochner.fitting.splits import folds_at_random
from tests.cli.conftest import make_frame

LINEAR = ["--members", "linear", "--ignore", "id", "--quiet", "--json"]


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """A table of flats in six houses, sold day by day, from the last to the first."""
    n = 60
    frame = make_frame(n).assign(
        house=np.arange(n) % 6, day=pd.date_range("2024-01-01", periods=n)[::-1]
    )
    path = tmp_path_factory.mktemp("cv") / "days.csv"
    frame.to_csv(path, index=False)
    return path


def test_folds_are_judged_by_fits_to_the_other_rows(call, days):
    found = json.loads(call("cv", days, "--target", "price", "--folds", 3, *LINEAR).stdout)
    frame = pd.read_csv(days, parse_dates=["day"])
    expected = []
    for train, test in folds_at_random(np.zeros(len(frame)), 3, seed=0):
        model = DeepGPRegressor(Linear(), random_state=0)
        model.fit(frame.iloc[train], "price", ignore=["id"])
        expected.append({"rows": 20, **model.evaluate(frame.iloc[test], "price")})
    for one, other in zip(found["folds"], expected, strict=True):
        assert one == pytest.approx(other, rel=1e-6)
    rmse = [one["rmse"] for one in expected]
    assert found["mean"]["rmse"] == pytest.approx(np.mean(rmse))
    assert found["standard_error"]["rmse"] == pytest.approx(np.std(rmse, ddof=1) / np.sqrt(3))


def test_classes_are_spread_over_folds(call, linear):
    found = json.loads(call("cv", linear / "flats.csv", "--target", "color", *LINEAR).stdout)
    assert found["task"] == "classification"
    assert [one["rows"] for one in found["folds"]] == [12] * 5
    assert found["mean"]["error_rate"] < 0.3


@pytest.mark.parametrize(
    ("flag", "rows", "words"),
    [("--groups", [20, 20, 20], "whole groups of 'house' left out"),
     ("--time", [15, 15, 15], "later rows of 'day' left out")],
)  # fmt: skip
def test_groups_and_time_part_the_table(call, days, monkeypatch, flag, rows, words):
    column, seen = words.split("'")[1], []
    fit = DeepGPRegressor.fit

    def watched(self, table, target, **told):
        seen.append((set(table[column].to_pylist()), told))
        return fit(self, table, target, **told)

    monkeypatch.setattr(DeepGPRegressor, "fit", watched)
    found = json.loads(
        call("cv", days, "--target", "price", "--folds", 3, flag, column, *LINEAR).stdout
    )
    assert [one["rows"] for one in found["folds"]] == rows
    assert found["judged_by"] == words
    assert all(told[flag[2:]] == column for _, told in seen)
    if flag == "--time":
        assert [len(values) for values, _ in seen] == [15, 30, 45]
        assert all(first < later for (first, _), (later, _) in itertools.pairwise(seen))
    else:
        assert [len(values) for values, _ in seen] == [4, 4, 4]


def test_the_table_of_folds_is_printed(call, days):
    words = ["cv", days, "--target", "price", "--folds", 2, "--members", "constant"]
    printed = call(*words, "--ignore", "id").output
    assert "Fold 2 of 2: 30 rows to learn from, 30 to judge by." in printed
    assert "2 folds, by rows left out at random" in printed
    assert "standard error" in printed
    assert "…" not in printed  # it fits into 80 columns


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "prize"], "no column 'prize'"),
        ([], "--target is missing"),
        (["--target", "price", "--folds", "61"], "--folds must be at most the 60 rows"),
        (["--target", "price", "--groups", "hous"], "no column 'hous'"),
        (["--target", "price", "--time", "day", "--groups", "house"], "not both"),
        (["--target", "price", "--time", "color"], "the times in 'color' must be numbers or dates"),
        (["--target", "price", "--members", "trees"], "got 'trees'"),
    ],
)
def test_mistakes_are_told_before_any_fit(call, days, words, message):
    printed = call("cv", days, *words, "-q", code=1).output
    assert message in " ".join(printed.split())


def test_help_is_short_and_help_all_is_whole(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("fit", "cv"):
        short, whole = call(name, "--help").output, call(name, "--help-all").output
        assert "--n-random-features" in whole
        assert "--n-random-features" not in short
        assert "--help-all" in short
        assert call(name, "--help").output == short
    assert short.count("│ --") <= 15
    assert "Column to predict.  [required]" in short
