"""Later rows judge what was learned from earlier ones."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from bochner import Constant, DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear
from bochner.exact.columns import Columns
from bochner.exact.learning import Effort
from bochner.exact.process import Process
from bochner.exact.regression import regression_parts
from bochner.fitting.splits import ByGroups, ByTime
from tests.members.tables import SIMPLE, training

N = 60
LIGHT = Effort(then=3, all=2)


def drifting(n=N, seed=0):
    """A level that walks in time, told by the time alone; rows in no order."""
    generator = np.random.default_rng(seed)
    moments = generator.permutation(n).astype(float)
    level = np.cumsum(generator.normal(size=n))[moments.astype(int)]
    X = np.column_stack([moments, generator.normal(size=n)])
    return X, level + X[:, 1] + 0.05 * generator.normal(size=n), moments


def test_the_last_fifth_of_few_rows_judges_and_the_last_tenth_of_many():
    X, y, moments = drifting()
    few = training(X, y, split=ByTime(moments))
    np.testing.assert_array_equal(np.sort(moments[few.judged]), np.arange(48, 60))
    assert len(np.unique(few.group_numbers[few.judged])) == 1
    assert len(np.unique(few.group_numbers)) == 49
    judged_fold = np.unique(few.folds[few.judged])
    assert len(judged_fold) == 1
    assert np.sum(few.folds == judged_fold[0]) == 12  # no earlier row leaves with them
    many = np.arange(5000.0)
    large = training(many[:, None], many, split=ByTime(-many))
    np.testing.assert_array_equal(large.judged, np.arange(500))


def test_rows_of_one_moment_stay_together():
    moments = np.repeat([1.0, 2.0, 3.0], [5, 3, 2])
    assert ByTime(moments).held_out(1, seed=0).tolist() == [8, 9]
    assert ByTime(moments).held_out(4, seed=0).tolist() == [5, 6, 7, 8, 9]
    assert ByTime(moments).held_out(10, seed=0).tolist() == [5, 6, 7, 8, 9]
    for train, test in ByTime(moments).folds(4, seed=0):
        assert moments[train].max() < moments[test].min()


def test_exact_parts_are_judged_by_processes_of_the_earlier_rows():
    X, y, moments = drifting()
    rows = Columns.learn(list(X.T))(list(X.T))
    learning = training(X, y, split=ByTime(moments))
    judged, groups = learning.judged, learning.group_numbers
    part = regression_parts(
        rows, y, judged=judged, groups=groups, transforms=["as it is"], varying_noise=False, effort=LIGHT
    )[-1]  # fmt: skip
    earlier = np.setdiff1d(np.arange(N), judged)
    whole = part.process
    process = Process.condition(
        whole.kernel, whole.v, rows[earlier], whole.targets[earlier], whole.noise[earlier]
    )
    found = dataclasses.replace(part, process=process).law(rows[judged]).log_density(y[judged])
    np.testing.assert_allclose(part.left_out, found, rtol=1e-6)


@pytest.mark.parametrize("member", [Exact(), Landmarks(n_landmarks=N, n_learned_from=N)])
def test_what_is_near_in_time_does_not_help_to_foresee(member):
    X, y, moments = drifting()
    model = DeepGPRegressor([*SIMPLE, ("mine", member)], random_state=0)
    at_random = model.fit(X, y).summary_["log_likelihood"]
    in_time = model.fit(X, y, time=moments).summary_
    assert in_time["n_rows"] == 12
    assert in_time["log_likelihood"] < at_random - 0.3


def test_a_constant_is_judged_by_the_mean_of_earlier_rows_and_frequencies_by_earlier_ones():
    n = 50
    y = np.r_[np.zeros(40), np.full(10, 8.0)] + np.random.default_rng(0).normal(size=n)
    X = np.zeros((n, 1))
    model = DeepGPRegressor(Constant(), random_state=0).fit(X, y, time=np.arange(n))
    # The mean of the others is two standard deviations of all lower.
    assert model.summary_["log_likelihood"] < -np.mean((y[40:] - y[:40].mean()) ** 2) / 2 / 25
    classes = DeepGPClassifier(Constant(), random_state=0).fit(X, y > 4, time=np.arange(n))
    assert classes.summary_["log_likelihood"] == pytest.approx(np.log(0.5 / 41), abs=1e-6)


def test_classes_are_judged_by_later_rows():
    X, y, moments = drifting()
    members = [("constant", Constant()), ("exact", Exact())]
    model = DeepGPClassifier(members, random_state=0).fit(X, y > np.median(y), time=moments)
    assert model.summary_["n_rows"] == 12


def test_a_column_of_a_table_may_be_the_time_and_is_learned_from_unless_ignored():
    X, y, moments = drifting()
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(moments, unit="D")
    table = pd.DataFrame({"day": days, "x": X[:, 1], "y": y})
    model = DeepGPRegressor([*SIMPLE], random_state=0).fit(table, "y", time="day")
    assert model.summary_["n_rows"] == 12
    assert model.fitted_.judging == "later rows of 'day' left out"
    assert "day" in model.fitted_.encoder.input_names
    by_number = DeepGPRegressor([*SIMPLE], random_state=0)
    by_number.fit(table.assign(day=moments), "y", time="day", ignore=["day"])
    assert by_number.fitted_.encoder.input_names == ["x"]
    arrays = DeepGPRegressor([*SIMPLE], random_state=0).fit(X[:, 1:], y, time=days)
    assert arrays.summary_ == pytest.approx(by_number.summary_)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"time": np.zeros(N)}, "two moments or more"),
        ({"groups": np.zeros(N)}, "two groups or more"),
        ({"time": np.arange(3)}, "one entry for each of the 60 rows"),
        ({"time": ["soon"] * N}, "must hold numbers or dates; got 'soon'"),
        ({"time": [np.nan, *range(N - 1)]}, "missing in row 0"),
        ({"time": np.arange(N), "groups": np.arange(N)}, "not both"),
    ],
)
def test_times_that_do_not_tell_are_refused(told, message):
    X, y, _ = drifting()
    with pytest.raises(ValueError, match=message):
        DeepGPRegressor(Linear()).fit(X, y, **told)


def test_a_missing_moment_of_a_table_is_refused():
    table = pd.DataFrame(
        {"day": ["2020-01-01", None, "2020-01-03"], "x": [1, 2, 3], "y": [1, 2, 3]}
    )
    with pytest.raises(ValueError, match="missing in row 1"):
        DeepGPRegressor(Linear()).fit(table, "y", time="day")
    with pytest.raises(ValueError, match="no column 'when'"):
        DeepGPRegressor(Linear()).fit(table, "y", time="when")


def test_folds_of_groups_hold_whole_groups():
    values = np.random.default_rng(0).choice(list("abcdef"), size=40)
    found = ByGroups(values).folds(3, seed=0)
    assert len(found) == 3
    assert sorted(np.concatenate([test for _, test in found]).tolist()) == list(range(40))
    assert all(not set(values[train]) & set(values[test]) for train, test in found)
