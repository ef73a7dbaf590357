"""What `evaluate` says beside what `tests/prediction/test_scores.py` says of its sums."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, roc_auc_score

from bochner import DeepGPClassifier, DeepGPRegressor, Linear


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=60), "place": np.arange(60) % 2})
    X["place"] = np.where(X["place"] == 0, "north", "south")
    y = X["size"] + np.where(X["place"] == "north", 0.1, 1.0) * rng.normal(size=60)
    return X.assign(price=y, dear=np.where(y > 0, "yes", "no"))


def test_numbers_are_those_of_scikit_learn(table):
    X, y = table[["size", "place"]], table["price"]
    model = DeepGPRegressor(Linear(), random_state=0).fit(X[:40], y[:40])
    found, mean = model.evaluate(X[40:], y[40:]), model.predict(X[40:])
    assert found["mae"] == pytest.approx(mean_absolute_error(y[40:], mean))
    assert found["r_squared"] == pytest.approx(r2_score(y[40:], mean))
    assert found["r_squared"] == pytest.approx(model.score(X[40:], y[40:]))


def test_the_area_of_classes_is_that_of_scikit_learn(table):
    X, y = table[["size", "place"]], table["dear"]
    model = DeepGPClassifier(Linear(), random_state=0).fit(X[:40], y[:40])
    expected = roc_auc_score(y[40:] == "yes", model.predict_proba(X[40:])[:, 1])
    assert model.evaluate(X[40:], y[40:])["auc"] == pytest.approx(expected)


@pytest.mark.parametrize("named", [False, True])
def test_each_group_has_its_own_metrics(table, named):
    rows = table.drop(columns="dear")
    model = DeepGPRegressor(Linear(), random_state=0).fit(rows[:40], "price")
    new = rows[40:]
    if named:
        found = model.evaluate(new, "price", groups="place")
    else:
        found = model.evaluate(new.drop(columns="price"), new["price"], groups=new["place"])
    assert found.pop("groups").keys() == {"north", "south"}
    assert found == model.evaluate(new, "price")
    groups = model.evaluate(new, "price", groups="place")["groups"]
    for place, own in new.groupby("place"):
        low, high = model.predict_interval(own).T
        assert groups[place]["rows"] == len(own)
        inside = (low <= own["price"]) & (own["price"] <= high)
        assert groups[place]["coverage_90"] == pytest.approx(inside.mean())
        assert groups[place]["mae"] == pytest.approx(abs(model.predict(own) - own["price"]).mean())


def test_intervals_calibrated_by_group_are_judged_by_group(table):
    rows = table.drop(columns="dear")
    model = DeepGPRegressor(Linear(), random_state=0).fit(rows[:16], "price")
    model.calibrate(rows[16:], "price", "place")
    ends = [model.predict_interval(rows, groups=by)[:, 1] for by in ("place", None)]
    assert np.all(ends[0] != ends[1])
    rows = rows.assign(price=np.mean(ends, axis=0))  # inside one of the two
    found = model.evaluate(rows, "price", groups="place")["groups"]
    for place in ("north", "south"):
        inside = ends[0] > ends[1]
        expected = inside[rows["place"] == place].mean()
        assert found[place]["coverage_90"] == pytest.approx(expected)
    other = model.evaluate(rows, "price", groups=np.arange(len(rows)) % 3)["groups"]
    assert other.keys() == {"0", "1", "2"}


def test_groups_of_another_number_of_rows_are_refused(table):
    rows = table.drop(columns="dear")
    model = DeepGPRegressor(Linear(), random_state=0).fit(rows[:40], "price")
    with pytest.raises(ValueError, match=r"`groups` must have one entry for each of the 60 rows"):
        model.evaluate(rows, "price", groups=["a", "b"])
