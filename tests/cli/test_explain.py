"""`bochner explain` prints what Python gives, of columns and of one row, and draws effects."""

import json

import numpy as np
import pandas as pd
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, Linear, load
from tests.cli.conftest import make_frame


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """A table, and linear models of its numbers and of its classes."""
    folder = tmp_path_factory.mktemp("explain")
    frame = make_frame().drop(columns="id").assign(day=pd.date_range("2024-01-01", periods=300))
    frame.to_csv(folder / "t.csv", index=False)
    numbers = DeepGPRegressor(Linear(), random_state=0).fit(frame, "price")
    numbers.save(folder / "numbers.bochner")
    classes = DeepGPClassifier(Linear(), random_state=0).fit(frame, "color")
    classes.save(folder / "classes.bochner")
    return folder


def test_shares_are_those_of_python(call, linear):
    printed = json.loads(call("explain", linear / "numbers.bochner", "--json").stdout)
    known = load(linear / "numbers.bochner").explain()
    assert printed["columns"] == pytest.approx(dict(known.columns))
    assert list(printed["columns"]) == ["size", "color", "day"]
    assert printed["parts"] == {"linear": pytest.approx(1)}
    assert printed["members"]["linear"]["weight"] == known.members["linear"].weight
    assert printed["rows"] == 200
    shown = call("explain", linear / "numbers.bochner").stdout
    assert f"size: {known.columns['size']:.1%}" in shown


def test_shares_by_a_table_are_those_of_its_rows(call, linear):
    frame = pd.read_csv(linear / "t.csv")
    frame[frame["color"] == "red"].head(90).to_csv(linear / "red.csv", index=False)
    words = ["explain", linear / "numbers.bochner", linear / "red.csv", "--json"]
    printed = json.loads(call(*words).stdout)
    assert printed["rows"] == 90
    assert printed["columns"]["color"] == 0
    assert sum(printed["columns"].values()) == pytest.approx(1)


def test_a_row_is_explained_as_in_python(call, linear):
    model, table = linear / "numbers.bochner", linear / "t.csv"
    printed = json.loads(call("explain", model, table, "--row", 5, "--json").stdout)
    frame = pd.read_csv(table)
    known = load(model).explain_row(frame.drop(columns="price").iloc[[5]])
    assert list(printed["contributions"].values()) == pytest.approx(known.contributions.tolist())
    total = sum(printed["contributions"].values())
    assert total == pytest.approx(printed["mean"] - printed["average"])
    assert printed["mean"] == pytest.approx(load(model).predict(table)[5])
    assert printed["values"]["color"] == frame["color"][5]
    assert printed["values"]["day"] == "2024-01-06"
    shown = call("explain", model, table, "--row", 5).stdout
    assert (
        f"color = {frame['color'][5]}: {known.contributions[known.columns.index('color')]:+.4g}"
        in shown
    )


def test_a_row_of_classes_is_explained_for_each_of_them(call, linear):
    model, table = linear / "classes.bochner", linear / "t.csv"
    printed = json.loads(call("explain", model, table, "--row", 0, "--json").stdout)
    proba = load(model).predict_proba(table)[0]
    assert list(printed["mean"].values()) == pytest.approx(proba.tolist())
    assert printed["contributions"]["price"].keys() == {"green", "red"}
    likely = ["green", "red"][int(np.argmax(proba))]
    assert f"mean of {likely}" in call("explain", model, table, "--row", 0).stdout
    outputs = json.loads(call("explain", model, "--json").stdout)["outputs"]
    assert outputs.keys() == {"green", "red"}


def test_effects_are_drawn_into_the_file(call, linear, tmp_path):
    for name, start in (("e.png", b"\x89PNG"), ("e.svg", b"<?xml")):
        words = ["explain", linear / "numbers.bochner", "--plot", tmp_path / name, "--json"]
        assert json.loads(call(*words).stdout)["plot"] == str(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--row", 1], "--row needs TABLE"),
        (["TABLE", "--row", 1, "--plot", "p.png"], "goes without --plot"),
        (["TABLE", "--row", 300], "TABLE has 300 rows, so --row must be less; got 300"),
        (["--plot", "p.gif"], "--plot must end in .png, .pdf or .svg"),
        (["TABLE", "--plot", "TABLE"], "would overwrite TABLE"),
        (["EMPTY"], "must be two or more; got 0"),
    ],
)
def test_what_cannot_be_is_told(call, linear, words, message):
    (linear / "empty.csv").write_text("size,color,day,price\n")
    places = {"TABLE": linear / "t.csv", "EMPTY": linear / "empty.csv"}
    words = [places.get(word, word) for word in words]
    found = call("explain", linear / "numbers.bochner", *words, code=1).output
    assert message in " ".join(found.split())


def test_a_model_without_kept_rows_asks_for_a_table(call):
    old = "tests/data_files/regressor-1.bochner"
    assert "has kept no training rows: give TABLE" in call("explain", old, code=1).output
