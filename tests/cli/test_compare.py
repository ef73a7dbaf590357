import json

import numpy as np
import pandas as pd
import pytest

from bochner import load


@pytest.fixture(scope="module")
def constants(call, linear):
    for target in ("price", "color"):
        call("fit", linear / "flats.csv", "--target", target, "--ignore", "id", "--members", "constant",
             "--model", linear / f"constant-{target}.bochner", "-q")  # fmt: skip
    return {target: linear / f"constant-{target}.bochner" for target in ("price", "color")}


def compared(call, first, second, table):
    return json.loads(call("compare", first, second, table, "--json").stdout)["metrics"]


def test_numbers_are_compared_row_by_row(call, linear, constants):
    table, models = linear / "new.csv", [linear / "prices.bochner", constants["price"]]
    found = compared(call, *models, table)
    frame = pd.read_csv(table)
    losses = [-load(model).log_prob(frame, frame["price"]) for model in models]
    gaps = losses[0] - losses[1]
    assert found["mnll"]["first"] == pytest.approx(losses[0].mean())
    assert found["mnll"]["difference"] == pytest.approx(gaps.mean())
    assert found["mnll"]["standard_error"] == pytest.approx(gaps.std(ddof=1) / np.sqrt(40))
    errors = [(load(model).predict(frame) - frame["price"]).to_numpy() ** 2 for model in models]
    assert found["rmse"]["second"] == pytest.approx(np.sqrt(errors[1].mean()))
    assert compared(call, *models[::-1], table)["rmse"]["difference"] == pytest.approx(
        -found["rmse"]["difference"]
    )


def test_classes_are_compared_row_by_row(call, linear, constants):
    table, models = linear / "new.csv", [linear / "colors.bochner", constants["color"]]
    found = compared(call, *models, table)
    measured = [load(model).evaluate(pd.read_csv(table), "color") for model in models]
    for name in ("mnll", "error_rate", "brier"):
        for place, own in zip(("first", "second"), measured, strict=True):
            assert found[name][place] == pytest.approx(own[name])


def test_a_clear_difference_names_the_better_model(call, linear, constants, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    model, table = linear / "prices.bochner", linear / "new.csv"
    printed = call("compare", model, constants["price"], table).stdout
    row = next(line for line in printed.splitlines() if "rmse" in line)
    assert row.rstrip(" │").endswith(str(model))
    assert "no clear difference" in call("compare", model, model, table).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["prices.bochner", "colors.bochner", "new.csv"], "the other classes"),
        (["prices.bochner", "prices.bochner", "-"], "give a file"),
        (["prices.bochner", "nothing.bochner", "new.csv"], "no model file"),
        (["prices.bochner", "prices.bochner", "new.csv", "--target", "prize"], "prize"),
    ],
)
def test_what_cannot_be_compared_is_told(call, linear, words, message):
    files = [linear / one if "." in one else one for one in words]
    assert message in " ".join(call("compare", *files, code=1).output.split())
