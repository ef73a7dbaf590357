import re

import numpy as np
import pandas as pd
import pytest

from bochner import load
from bochner.cli.predictions import shortened
from tests.cli.conftest import make_frame


def test_printed_predictions_have_six_significant_digits(call, linear):
    printed = call("predict", linear / "prices.bochner", linear / "new.csv").stdout
    numbers = re.findall(r"-?[0-9.]+(?:e-?[0-9]+)?", "\n".join(printed.splitlines()[1:]))
    digits = [len(re.sub(r"e.*|[-.]", "", one).lstrip("0")) for one in numbers]
    assert max(digits) == 6
    rows = pd.read_csv(linear / "new.csv")
    whole = call("predict", linear / "prices.bochner", linear / "new.csv", "--digits", 17).stdout
    mean = [float(line.split(",")[0]) for line in whole.splitlines()[1:]]
    np.testing.assert_array_equal(mean, load(linear / "prices.bochner").predict(rows))


def test_digits_suffice_for_the_deviation():
    mean, std = np.array([1234567.891, -0.5, 0.0]), np.array([0.01234567, 20.0, 0.0])
    found = shortened({"mean": mean, "std": std, "class": ["a"] * 3}, 6)
    np.testing.assert_allclose(found["mean"][0], mean[0], rtol=0, atol=0.0005)
    assert found["mean"][1:].tolist() == [-0.5, 0.0]
    assert found["std"].tolist() == [0.0123457, 20.0, 0.0]
    assert found["class"] == ["a"] * 3


def test_parquet_holds_all_digits(call, linear, tmp_path):
    call(
        "predict", linear / "prices.bochner", linear / "new.csv", "-o", tmp_path / "p.parquet", "-q"
    )
    mean = load(linear / "prices.bochner").predict(pd.read_csv(linear / "new.csv"))
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "p.parquet")["mean"], mean)


def test_all_columns_are_kept_and_rows_are_numbered(call, linear, tmp_path):
    call("predict", linear / "colors.bochner", linear / "new.csv", "-o", tmp_path / "p.csv", "-q",
         "--keep", "all", "--row-numbers")  # fmt: skip
    found = pd.read_csv(tmp_path / "p.csv")
    table = pd.read_csv(linear / "new.csv")
    predicted = ["class", "probability_green", "probability_red"]
    assert list(found) == ["row", *table, *predicted]
    assert found["row"].tolist() == list(range(len(table)))
    pd.testing.assert_frame_equal(found[list(table)], table)


@pytest.mark.parametrize(("column", "words"), [("all", []), ("row", ["--row-numbers"])])
def test_a_column_that_is_named_like_an_option_is_itself(call, linear, tmp_path, column, words):
    make_frame(5).assign(**{column: 1}).to_csv(tmp_path / "t.csv", index=False)
    command = ["predict", linear / "prices.bochner", tmp_path / "t.csv", "--keep", column, *words]
    if words:
        assert "rename it" in " ".join(call(*command, code=1).output.split())
        return
    assert call(*command).stdout.startswith('"all","mean"')
