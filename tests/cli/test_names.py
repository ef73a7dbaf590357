"""Names of columns, classes and files are printed as they are, and cannot act on the terminal."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bochner.cli import landscape, landscape_pictures
from tests.cli.conftest import SMALL

TARGET = "[/b]"
COLUMNS = ["[red]x", "size\x1b[31mRED\x07", ":dog:"]
SHOWN_COLUMN = r"size\x1b[31mRED\x07"
CLASS_COLUMN, SHOWN_CLASS_COLUMN = "[/i]\x1b]0;title\x07", r"[/i]\x1b]0;title\x07"
CLASSES, SHOWN_CLASSES = ["[/green]", "\x1b[2Jred\nline"], r"\x1b[2Jred\nline, [/green]"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, call):
    """Tables and models whose names hold markup and orders to the terminal, and what `fit` printed."""
    folder = tmp_path_factory.mktemp("hostile") / "[" / "names]"
    folder.mkdir(parents=True)
    X = np.random.default_rng(0).normal(size=(120, 3))
    numbers = pd.DataFrame(X, columns=COLUMNS).assign(**{TARGET: X.sum(axis=1)})
    numbers.to_csv(folder / "numbers.csv", index=False)
    labels = {CLASS_COLUMN: np.where(X[:, 0] > 0, *CLASSES)}
    pd.DataFrame(X, columns=COLUMNS).assign(**labels).to_csv(folder / "classes.csv", index=False)
    printed = {}
    for name, target in (("numbers", TARGET), ("classes", CLASS_COLUMN)):
        printed[name] = call(
            "fit", folder / f"{name}.csv", "--target", target, "--model", folder / f"{name}.bochner",
            "--max-steps", 10, *SMALL,
        ).output  # fmt: skip
    return folder, printed


def is_harmless(text):
    return not set(text) & {"\x1b", "\x07", "\r"}


def test_fit_prints_names_as_they_are(hostile):
    _, printed = hostile
    assert TARGET in printed["numbers"]
    assert SHOWN_CLASS_COLUMN in printed["classes"]
    assert all(map(is_harmless, printed.values()))


def test_info_prints_names_as_they_are(call, hostile, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    folder, _ = hostile
    numbers = call("info", folder / "numbers.bochner").output
    assert f"[red]x, {SHOWN_COLUMN}, :dog:" in numbers
    assert "[/names]" in numbers
    classes = call("info", folder / "classes.bochner").output
    assert SHOWN_CLASSES in classes
    assert is_harmless(numbers + classes)
    found = json.loads(call("info", folder / "classes.bochner", "--json").stdout)
    assert sorted(found["classes"]) == sorted(CLASSES)


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_every_command_ends_well_with_such_names(call, hostile, tmp_path, name):
    # The paths are longer than a line.
    folder, _ = hostile
    model, table = folder / f"{name}.bochner", folder / f"{name}.csv"
    printed = [
        call("evaluate", model, table),
        call("predict", model, table, "-o", tmp_path / "[red].csv", "--keep", COLUMNS[1]),
        call("sample", model, table, "-o", tmp_path / "[bold].csv", "--n", 2),
        call("report", model, table, "-o", tmp_path / "[i].html"),
    ]
    for result, part in zip(printed, ("", "[red]", "[bold]", "[i]"), strict=True):
        assert part in "".join(re.findall(r"[^\s│]", result.output))
        assert is_harmless(result.output)
    assert COLUMNS[1] in pd.read_csv(tmp_path / "[red].csv")
    page = (tmp_path / "[i].html").read_text(encoding="utf-8")
    assert is_harmless(page)


def test_errors_and_warnings_quote_names_harmlessly(call, hostile, tmp_path):
    folder, _ = hostile
    for words in (
        ["fit", folder / "numbers.csv", "--target", "[/no]\x1b[31m", "--model", tmp_path / "m"],
        ["info", tmp_path / "[/no]\x1b[31m"],
        ["predict", folder / "numbers.bochner", "[/no]\x1b[31m\udcff.csv"],
    ):
        result = call(*words, code=1)
        assert r"[/no]\x1b[31m" in result.output
        assert is_harmless(result.output)
    table = pd.read_csv(folder / "numbers.csv")
    table["id\x1b[31m[/x]"] = [f"n{i}" for i in range(len(table))]
    table.to_csv(tmp_path / "t.csv", index=False)
    printed = call("fit", tmp_path / "t.csv", "--target", TARGET, "--model", tmp_path / "m",
                   "--max-steps", 2, *SMALL).output  # fmt: skip
    assert r"id\x1b[31m[/x]" in printed
    assert is_harmless(printed)


def test_the_demo_names_its_folder_as_it_is(call, tmp_path, monkeypatch):
    demo = sys.modules["bochner.cli.demo"]
    scores = dict.fromkeys(demo._HEADINGS, 1.0)
    table = pa.table({"height": [1.0, 2.0, 3.0], "east": [1.0, 2.0, 4.0]})
    monkeypatch.setattr(landscape.Landscape, "table", table)
    monkeypatch.setattr(landscape, "all_scores", lambda *_: {"[/model]": scores})
    monkeypatch.setattr(landscape_pictures, "draw", lambda *_: None)
    monkeypatch.setattr(demo, "_write_page", lambda *_: None)
    printed = call("demo", "-o", tmp_path / "[red]plots", "--quiet").output
    assert "[red]plots/" in printed.replace("\n", "")
    assert "[/model]" in printed
