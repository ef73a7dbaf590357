"""What messages advise is taken by the command line as it stands there."""

import re
import shlex

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from bochner import load
from bochner.cli import app


def test_columns_that_count_the_rows_are_left_out_as_the_warning_says(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    frame = pd.DataFrame({"x": x, "the number": np.arange(1, 31), "y": x})
    frame.to_csv(tmp_path / "flats.csv")  # the index is a column without a name
    words = ["fit", "flats.csv", "--target", "y", "--model", "m.bochner", "--members", "constant"]
    words = [str(tmp_path / word) if "." in word else word for word in words]
    printed = " ".join(CliRunner().invoke(app, words).output.split())
    (advice,) = re.findall(r"count the rows.*?`(--ignore.*?)`", printed)
    found = CliRunner().invoke(app, [*words, *shlex.split(advice)])
    assert found.exit_code == 0, found.output
    assert "count the rows" not in found.output
    assert load(tmp_path / "m.bochner").feature_names_in_.tolist() == ["x"]
