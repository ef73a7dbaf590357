"""`bochner update`: what Python does, on files."""

import json

import numpy as np
import pytest

from bochner import load
from tests.cli.conftest import make_frame


@pytest.fixture(scope="module")
def flats(tmp_path_factory, call):
    folder = tmp_path_factory.mktemp("update")
    for name, seed in (("old", 0), ("new", 1)):
        make_frame(150, seed).to_csv(folder / f"{name}.csv", index=False)
    words = ("--target", "price", "--members", "linear", "--ignore", "id", "--quiet")
    call("fit", folder / "old.csv", "--model", folder / "price", *words)
    return folder


def test_the_file_has_learned_what_python_learns(call, flats, tmp_path):
    path = tmp_path / "model"
    path.write_bytes((flats / "price").read_bytes())
    told = json.loads(call("update", path, flats / "new.csv", "--json", "--quiet").output)
    assert (told["new_rows"], told["rows"]) == (150, 300)
    model = load(flats / "price").update(flats / "new.csv", "price")
    table = flats / "new.csv"
    np.testing.assert_allclose(load(path).predict(table), model.predict(table), rtol=1e-6)


def test_earlier_rows_may_be_forgotten(call, flats, tmp_path):
    out = tmp_path / "model"
    call("update", flats / "price", flats / "new.csv", "-o", out, "--forgetting", "0.1", "--quiet")
    assert load(out).total_weight_ == pytest.approx(10, rel=1e-3)
    assert load(flats / "price").total_weight_ == 150
    words = ("update", flats / "price", flats / "new.csv", "-o", tmp_path / "other")
    assert "from 0 to below 1" in call(*words, "--forgetting", 1, code=1).output
    assert not (tmp_path / "other").exists()
