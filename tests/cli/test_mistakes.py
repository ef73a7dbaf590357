"""Mistakes of all kinds, in every command, get one message in words and an exit code."""

import random
import sys

import pytest

WITH_A_TABLE = {
    "predict": ["-o", "out.csv"],
    "evaluate": [],
    "calibrate": ["-o", "out.bochner"],
    "update": ["-o", "out.bochner"],
    "report": ["-o", "out.html"],
    "explain": ["--row", "0"],
    "check": ["--seconds", "1"],
    "sample": ["-o", "out.csv"],
}
TABLES = {
    "missing.csv": "no such file",
    "empty.csv": "is empty",
    "folder": "no Parquet files",
    "": "name of the table is empty",
    "noise.dat": "neither text nor Parquet",
    "picture.png": "neither text nor Parquet",
    "prices.bochner": "neither text nor Parquet",
    "prose.csv": "missing columns",
}


@pytest.fixture(scope="module")
def folder(linear):
    (linear / "empty.csv").touch()
    (linear / "folder").mkdir()
    (linear / "noise.dat").write_bytes(b"n" + random.Random(0).randbytes(3000))
    (linear / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(500))
    (linear / "prose.csv").write_text("hello world\nthis is prose, really\n")
    return linear


def told(call, *words, code=1):
    result = call(*words, code=code)
    assert isinstance(result.exception, SystemExit)  # no traceback
    return " ".join(result.stderr.split())


@pytest.mark.parametrize("command", WITH_A_TABLE)
def test_what_is_no_table_of_the_model_is_refused_by_every_command(
    call, folder, monkeypatch, command
):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    for table, message in TABLES.items():
        words = told(call, command, "prices.bochner", table, *WITH_A_TABLE[command])
        assert "Error: " in words
        assert message in words
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "command", ["evaluate", "calibrate", "update", "report", "check", "compare"]
)
def test_a_table_without_any_target_is_told(call, folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    lines = (folder / "new.csv").read_text().splitlines()
    (folder / "unknown.csv").write_text(
        "\n".join([lines[0], *(line.rsplit(",", 1)[0] + "," for line in lines[1:])])
    )
    models = ["prices.bochner"] * (2 if command == "compare" else 1)
    found = told(call, command, *models, "unknown.csv", *WITH_A_TABLE.get(command, []))
    assert "no row has a value of the target 'price'" in found


@pytest.mark.parametrize("command", [*WITH_A_TABLE, "info", "export"])
@pytest.mark.parametrize("model", ["missing.bochner", "folder", "empty.csv", "new.csv"])
def test_what_is_no_model_is_refused_by_every_command(call, folder, monkeypatch, command, model):
    monkeypatch.chdir(folder)
    more = [] if command in ("info", "export") else ["flats.csv"]
    assert "Error: " in told(call, command, model, *more)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--folds", "61"], "--folds must be at most the 60 rows"),
        (["--ignore", "price"], "'price' is the target, which cannot be ignored"),
        (["--groups", "price"], "'price' is the target"),
        (["--date-format", "%Q"], "a format of dates must be a pattern such as '%d.%m.%Y'; got '%Q'"),
    ],
)  # fmt: skip
def test_settings_of_a_fit_that_cannot_be_meant_are_refused_before_any_work(
    call, folder, tmp_path, more, message
):
    words = ["--target", "price", "--model", tmp_path / "m.bochner", "--members", "linear", *more]
    found = told(call, "fit", folder / "flats.csv", *words)
    assert message in found
    assert "fitting" not in found
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-o", ""], "--output must name a file; got an empty name"),
        (["--method", "best"], "--method must be model or cross; got 'best'"),
    ],
)
def test_settings_of_a_prediction_that_cannot_be_meant_are_refused(call, folder, more, message):
    assert message in told(call, "predict", folder / "prices.bochner", folder / "new.csv", *more)


def test_a_closed_standard_input_is_told(folder, monkeypatch):
    from bochner.tables.source import TableError, open_table

    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(TableError, match="standard input is closed"):
        open_table("-")


def test_an_unknown_data_set_is_told_with_the_command_that_lists_them(call):
    assert "or `bochner datasets list`, lists all" in told(
        call, "datasets", "get", "step-functions"
    )
