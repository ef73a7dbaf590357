"""The files of a folder are one table."""

import pyarrow as pa
import pyarrow.parquet
import pytest

from bochner.tables.source import TableError, open_table
from tests.tables.test_tables import contents


def test_files_of_a_folder_are_joined_by_column_name(tmp_path):
    parts = [
        pa.table({"a": [1, 2], "b": ["x", "y"]}),
        pa.table({"b": ["z"], "a": [2.5]}),
    ]
    for index, part in enumerate(parts):
        folder = tmp_path / f"year={2020 + index}"
        folder.mkdir()
        pyarrow.parquet.write_table(part, folder / "part.parquet")
    rows = contents(open_table(tmp_path))
    assert rows.to_pydict() == {"a": [1.0, 2.0, 2.5], "b": ["x", "y", "z"], "year": [2020, 2020, 2021]}  # fmt: skip
    assert contents(open_table(tmp_path), ["year"]).to_pydict() == {"year": [2020, 2020, 2021]}


def test_a_file_of_a_folder_with_other_columns_is_named(tmp_path):
    pyarrow.parquet.write_table(pa.table({"a": [1], "b": [1]}), tmp_path / "0.parquet")
    pyarrow.parquet.write_table(pa.table({"a": [1], "c": [1]}), tmp_path / "1.parquet")
    with pytest.raises(TableError, match=r"1\.parquet lacks 'b'"):
        open_table(tmp_path)
