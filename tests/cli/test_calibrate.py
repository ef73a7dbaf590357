"""`bochner calibrate`, and what other commands make of a calibrated model."""

import json

import numpy as np
import pandas as pd
import pytest

from bochner import load
from tests.cli.conftest import make_frame


@pytest.fixture(scope="module")
def flats(tmp_path_factory, call):
    """Tables, and a model of prices and one of colors by a plane."""
    folder = tmp_path_factory.mktemp("calibrate")
    for name, seed in (("old", 0), ("held", 1), ("new", 2)):
        make_frame(200, seed).to_csv(folder / f"{name}.csv", index=False)
    for target in ("price", "color"):
        words = ("--members", "linear", "--ignore", "id", "--quiet")
        call("fit", folder / "old.csv", "--target", target, "--model", folder / target, *words)
    return folder


def test_the_intervals_are_those_of_python(call, flats, tmp_path):
    out, table = tmp_path / "calibrated", flats / "new.csv"
    before = (flats / "price").read_bytes()
    words = ("calibrate", flats / "price", flats / "held.csv", "--groups", "color")
    told = json.loads(call(*words, "--output", out, "--json", "--quiet").output)
    assert "on 200 rows in 2 groups" in told["calibrated"]
    assert (flats / "price").read_bytes() == before
    model = load(flats / "price").calibrate(flats / "held.csv", "price", groups="color")
    for options, groups in (((), None), (("--groups", "color"), "color")):
        predicted = tmp_path / "p.csv"
        call("predict", out, table, "-o", predicted, "--quiet", *options)
        found = pd.read_csv(predicted)[["lower", "upper"]]
        wanted = model.predict_interval(table, groups=groups)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert "on 200 rows in 2 groups" in json.loads(call("info", out, "--json").output)["calibrated"]


def test_the_model_file_is_replaced_where_no_other_is_named(call, flats, tmp_path):
    path = tmp_path / "model"
    path.write_bytes((flats / "price").read_bytes())
    for forgetting in ((), ("--forgetting", "0.01")):
        call("calibrate", path, flats / "held.csv", *forgetting, "--quiet")
    assert len(load(path).fitted_.calibration) == 400
    assert (
        "would overwrite" in call("calibrate", path, flats / "held.csv", "-o", path, code=1).output
    )
    assert "calibrated" in call("info", path).output


def test_sets_of_classes_are_predicted_by_calibrated_models_alone(call, flats, tmp_path):
    out = tmp_path / "calibrated"
    call("calibrate", flats / "color", flats / "held.csv", "-o", out, "--quiet")
    predicted = tmp_path / "p.csv"
    call("predict", flats / "color", flats / "new.csv", "-o", predicted, "--quiet")
    assert "set" not in pd.read_csv(predicted)
    call("predict", out, flats / "new.csv", "-o", predicted, "--coverage", "0.99", "--quiet")
    found = pd.read_csv(predicted)
    held = [
        t in s.split("|") for t, s in zip(make_frame(200, 2)["color"], found["set"], strict=True)
    ]
    assert np.mean(held) > 0.95


def test_a_column_of_groups_that_is_not_there_is_named(call, flats, tmp_path):
    words = ("calibrate", flats / "price", flats / "held.csv", "-o", tmp_path / "m")
    assert "no column 'region'" in call(*words, "--groups", "region", code=1).output
    assert not (tmp_path / "m").exists()


def test_novelty_is_a_column_of_its_own(call, flats, tmp_path):
    words = ("--target", "price", "--members", "exact", "--ignore", "id", "--quiet")
    make_frame(60).to_csv(tmp_path / "few.csv", index=False)
    call("fit", tmp_path / "few.csv", "--model", tmp_path / "m", *words)
    call("predict", tmp_path / "m", flats / "new.csv", "-o", tmp_path / "p.csv", "--novelty")
    found = pd.read_csv(tmp_path / "p.csv")["novelty"]
    np.testing.assert_allclose(found, load(tmp_path / "m").novelty(flats / "new.csv"), rtol=1e-5)


def test_intervals_by_folds_are_those_of_python(call, flats, tmp_path):
    words = ("--target", "price", "--members", "linear", "--ignore", "id", "--quiet")
    call("fit", flats / "old.csv", "--model", tmp_path / "m", "--folds", 2, *words)
    predicted = ("predict", tmp_path / "m", flats / "new.csv", "-o", tmp_path / "p.csv")
    call(*predicted, "--method", "cross", "--coverage", 0.8)
    wanted = load(tmp_path / "m").predict_interval(flats / "new.csv", 0.8, method="cross")
    np.testing.assert_allclose(
        pd.read_csv(tmp_path / "p.csv")[["lower", "upper"]], wanted, rtol=1e-5
    )
    words = ("predict", flats / "color", flats / "new.csv", "-o", tmp_path / "q.csv")
    assert "for regression" in call(*words, "--method", "cross", code=1).output
