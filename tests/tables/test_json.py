"""Tables in JSON: the same as in CSV."""

import datetime
import json

import pandas as pd
import pyarrow as pa
import pytest

from bochner import DeepGPRegressor, Linear
from bochner.tables import json_reader
from bochner.tables.source import TableError, open_table

ROWS = [
    {"size": 1.5, "city": "Rome", "day": "31.12.2023", "new": True},
    {"size": None, "city": "Oslo", "day": "1.2.2024", "new": False},
    {"city": "Bern", "size": 2, "new": None, "day": "2.2.2024", "late": 7},
]
EXPECTED = {
    "size": [1.5, None, 2],
    "city": ["Rome", "Oslo", "Bern"],
    "day": [datetime.datetime(2023, 12, 31), datetime.datetime(2024, 2, 1), datetime.datetime(2024, 2, 2)],
    "new": [True, False, None],
    "late": [None, None, 7],
}  # fmt: skip


def rows(table):
    return pa.Table.from_batches(list(table.batches()), table.schema).to_pydict()


@pytest.mark.parametrize(
    "before", ["\ufeff", " " * 64, "\n" * 4095, "\ufeff" + "\r\n" * 5000], ids=len
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_byte_order_mark_and_blanks_may_come_first(tmp_path, before, indent):
    for text in (json.dumps(ROWS, indent=indent), "\n".join(map(json.dumps, ROWS))):
        (tmp_path / "a.json").write_text(before + text, encoding="utf-8")
        assert rows(open_table(tmp_path / "a.json")) == EXPECTED


@pytest.mark.parametrize("form", ["lines", "list", "pretty", "named otherwise"])
def test_objects_are_rows(tmp_path, form):
    path = tmp_path / ("table.txt" if form == "named otherwise" else "table.json")
    if form == "list":
        text = json.dumps(ROWS)
    elif form == "pretty":
        text = "\n" + json.dumps(ROWS, indent=2)
    else:
        text = "\n".join(map(json.dumps, ROWS))
    path.write_text(text)
    assert rows(open_table(path)) == EXPECTED


def test_values_of_several_types_in_a_list_are_text(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(
        '[{"a": 1, "b": 1}, {"a": "x", "b": 2.5}, {"a": null, "b": 12345678901234567890123}]'
    )
    found = rows(open_table(path))
    assert found["a"] == ["1", "x", None]


def test_long_files_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(ROWS))
    monkeypatch.setattr(json_reader, "_MOST_BYTES", 100)
    with pytest.raises(TableError, match="a JSON file may have 0 MiB"):
        open_table(path)


def test_what_comes_late_in_a_long_file_is_there(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": 1, "text": "long enough"}\n' * 100_000 + '{"a": 1.5, "late": true}')
    found = rows(open_table(path))
    assert (found["a"][-1], found["late"][-1], found["late"][0]) == (1.5, True, None)


@pytest.mark.parametrize("lines", [False, True])
def test_what_pandas_writes_is_learned_from(tmp_path, lines):
    frame = pd.DataFrame({"x": [0.0, 1, 2, 4, 5], "y": [0.0, 2, 4, 8, 10.2]})
    frame.to_json(tmp_path / "a.json", orient="records", lines=lines)
    model = DeepGPRegressor(Linear(), random_state=0).fit(tmp_path / "a.json", "y")
    assert abs(model.predict(tmp_path / "a.json")[3] - 8) < 0.3
