import datetime
import errno
import gzip
import io
import os
import threading
import types

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from bochner.tables import csv_reader, parquet_reader
from bochner.tables import source as tables
from bochner.tables.reading import Reading
from bochner.tables.source import TableError, open_table, open_table_as

ROWS = {
    "number": [1.5, None, -3.25, 4.0],
    "count": [1, 2, 3, 4],
    "color": ["red", None, "blue, green", 'a "quoted"\nline'],
    "yes": [True, False, None, True],
    "day": [datetime.date(2020, 1, day) for day in (1, 2, 3, 4)],
    "when": [datetime.datetime(2020, 1, 1, hour) for hour in (0, 6, 12, 23)],
}
TABLE = pa.table(ROWS)


def contents(table, columns=None, n_rows=65_536):
    return pa.Table.from_batches(list(table.batches(columns, n_rows)))


def write_csv(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def written(folder, form):
    """The same table in one of the forms that can be opened."""
    path = folder / f"table.{form}"
    if form == "csv":
        pyarrow.csv.write_csv(TABLE, path)
    elif form == "csv.gz":
        pyarrow.csv.write_csv(TABLE, folder / "plain.csv")
        path.write_bytes(gzip.compress((folder / "plain.csv").read_bytes()))
    elif form == "tsv":
        options = pyarrow.csv.WriteOptions(delimiter="\t")
        pyarrow.csv.write_csv(TABLE, path, options)
    elif form == "parquet":
        pyarrow.parquet.write_table(TABLE, path, row_group_size=3)
    elif form == "folder":
        path.mkdir()
        for part in range(4):
            pyarrow.parquet.write_table(TABLE.slice(part, 1), path / f"{part}.parquet")
    return path


@pytest.mark.parametrize("form", ["csv", "csv.gz", "tsv", "parquet", "folder"])
@pytest.mark.parametrize("n_rows", [1, 3, 100])
def test_every_file_gives_the_rows_that_were_written(tmp_path, form, n_rows):
    table = open_table(written(tmp_path, form))
    assert table.n_rows == 4
    assert table.schema.names == list(ROWS)
    for _ in range(2):  # from the start each time
        batches = list(table.batches(n_rows=n_rows))
        assert [batch.num_rows for batch in batches[:-1]] == [n_rows] * (len(batches) - 1)
        assert pa.Table.from_batches(batches).to_pydict() == ROWS


@pytest.mark.parametrize(
    "source",
    [
        TABLE,
        TABLE.to_pandas(),
        polars.from_arrow(TABLE),
        pyarrow.dataset.dataset(TABLE),
        TABLE.to_batches()[0],
    ],
    ids=["arrow", "pandas", "polars", "dataset", "batch"],
)
def test_tables_in_memory_are_read_alike(source):
    rows = contents(open_table(source), ["color", "count"])
    assert rows.to_pydict() == {"color": ROWS["color"], "count": ROWS["count"]}


def test_a_dataset_of_files_is_read_as_the_files_are(tmp_path):
    dataset = pyarrow.dataset.dataset(written(tmp_path, "folder"))
    assert contents(open_table(dataset)).to_pydict() == ROWS


def test_standard_input_is_read_twice_and_its_copy_removed(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    stream = types.SimpleNamespace(buffer=io.BytesIO(b"a,b\n1,x\n2,y\n"))
    monkeypatch.setattr("sys.stdin", stream)
    table = open_table("-")
    assert table.name == "standard input"
    for _ in range(2):
        assert contents(table).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    assert len(list(tmp_path.iterdir())) == 1
    del table
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_read_twice_and_its_copy_removed(monkeypatch, tmp_path):
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("a,b\n1,x\n2,y\n",))
    writer.start()
    table = open_table(tmp_path / "pipe")
    writer.join()
    assert table.name == str(tmp_path / "pipe")
    for _ in range(2):
        assert contents(table).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    del table
    assert not list(copies.iterdir())


def test_a_full_disk_is_told_where_a_copy_is_made(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"a\n1\n")))
    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(TableError, match=f"cannot be copied to {tmp_path}.*TMPDIR"):
        open_table("-")
    assert not list(tmp_path.iterdir())


def test_a_bad_standard_input_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(TableError, match="standard input: the file is empty"):
        open_table("-")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_become_columns(tmp_path, order, save):
    X = np.random.default_rng(0).normal(size=(10, 3))
    y, label = np.arange(10), np.array(["a", "bb"] * 5)
    save(tmp_path / "a.npz", X=np.asarray(X, order=order), y=y, label=label)
    table = open_table(tmp_path / "a.npz")
    assert (table.n_rows, table.schema.names) == (10, ["x0", "x1", "x2", "y", "label"])
    rows = contents(table, n_rows=4)
    for index in range(3):
        np.testing.assert_array_equal(rows[f"x{index}"], X[:, index])
    assert rows["y"].to_pylist() == y.tolist()
    assert rows["label"].to_pylist() == label.tolist()
    assert contents(table, ["y", "x1"]).schema.names == ["y", "x1"]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float16", pa.float16()),
        (">f8", pa.float64()),
        ("longdouble", pa.float64()),
        ("int8", pa.int8()),
        (">i4", pa.int32()),
        ("bool", pa.bool_()),
        ("M8[D]", pa.date32()),
        ("M8[h]", pa.timestamp("s")),
        ("m8[ms]", pa.duration("ms")),
    ],
)
def test_matrices_of_any_plain_type_are_read(tmp_path, dtype, expected):
    X = np.arange(6).reshape(3, 2).astype(dtype)
    np.save(tmp_path / "a.npy", X)
    rows = contents(open_table(tmp_path / "a.npy"))
    assert rows["x1"].type == expected
    np.testing.assert_array_equal(rows["x1"].to_numpy(), X[:, 1])


def test_python_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match="Python objects"):
        open_table(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((3, 2)), "y": np.ones(4)}, "'X' has 3, 'y' has 4"),
        ({"X": np.ones((3, 2, 2))}, r"shape \(3, 2, 2\)"),
        ({"X": np.ones(3, complex)}, "complex128"),
        ({}, "no NumPy arrays"),
    ],
)
def test_arrays_that_make_no_table_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(TableError, match=message):
        open_table(tmp_path / "a.npz")


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
def test_the_content_decides_what_a_file_is(tmp_path, form):
    path = written(tmp_path, form).rename(tmp_path / "table.data")
    assert contents(open_table(path)).to_pydict() == ROWS


def test_a_header_without_commas_may_use_semicolons(tmp_path):
    path = write_csv(tmp_path / "a.csv", "a;b\n1;2\n")
    assert contents(open_table(path)).to_pydict() == {"a": [1], "b": [2]}


def test_missing_values_have_many_spellings(tmp_path):
    path = write_csv(tmp_path / "a.csv", "a,b\n1,x\n?,\nNA,NULL\nnan,?\n")
    rows = contents(open_table(path)).to_pydict()
    assert rows == {"a": [1, None, None, None], "b": ["x", None, None, None]}


LATE = [
    ("1", "2.5", pa.float64()),
    ("red", "7", pa.string()),
    ("", "7", pa.int64()),
    ("", "7.5", pa.float64()),
    ("", "2020-01-01", pa.date32()),
    ("", "true", pa.bool_()),
    ("2020-01-01", "2020-01-01 12:00:00", pa.timestamp("s")),
    ("2020-01-01", "2020-01-01 12:00:00.123", pa.timestamp("ns")),
    ("true", "maybe", pa.string()),
    ("12:30:00", "noon", pa.string()),
]


@pytest.mark.parametrize(("early", "late", "expected"), LATE)
def test_a_value_far_down_the_file_widens_the_type_of_its_column(
    monkeypatch, tmp_path, early, late, expected
):
    monkeypatch.setattr(csv_reader, "_BLOCK", 1 << 10)
    lines = ["first,k,second"] + [f"{early},1,{early}"] * 500 + [f"{late},1,{early}"]
    path = write_csv(tmp_path / "a.csv", "\n".join([*lines, f"{early},1,{late}", ""]))
    table = open_table(path)
    assert table.schema.types == [expected, pa.int64(), expected]
    assert table.n_rows == 502
    rows = contents(table)
    assert rows.num_rows == 502
    assert rows["first"][500].as_py() == rows["second"][501].as_py() is not None


def test_given_types_hold_whatever_the_file_looks_like(tmp_path):
    given = {"a": pa.float64(), "b": pa.float64(), "c": pa.string(), "d": pa.timestamp("us")}
    path = write_csv(tmp_path / "a.csv", "d,c,b,a,e\n2020-01-01,7,,1,1\n2020-01-01T06:00Z,8,,2,x\n")
    table = open_table_as(path, given, Reading())
    rows = contents(table)
    assert rows.schema == table.schema
    assert rows["a"].to_pylist() == [1.0, 2.0]
    assert rows["b"].type == pa.float64()
    assert rows["b"].null_count == 2
    assert rows["c"].to_pylist() == ["7", "8"]
    assert rows["d"][1].as_py() == datetime.datetime(2020, 1, 1, 6)
    assert rows["e"].to_pylist() == ["1", "x"]


def test_given_types_hold_for_tables_in_memory_too():
    table = open_table_as(pa.table({"a": ["1", " 2.5", "?"]}), {"a": pa.float64()}, Reading())
    assert contents(table)["a"].to_pylist() == [1.0, 2.5, None]


@pytest.mark.parametrize("form", ["csv", "parquet", "memory"])
def test_text_among_numbers_is_named_with_its_column_and_row(tmp_path, form):
    values = ["1"] * 700 + ["two"] + ["3"] * 10
    source = pa.table({"b": ["x"] * 711, "a": values})
    path = tmp_path / f"a.{form}"
    if form == "csv":
        source = write_csv(path, "b,a\n" + "".join(f"x,{value}\n" for value in values))
    elif form == "parquet":
        pyarrow.parquet.write_table(source, path)
        source = path
    table = open_table_as(source, {"a": pa.float64()}, Reading())
    place = "line 702" if form == "csv" else "row 701"
    with pytest.raises(TableError, match=f"column 'a', {place}: expected a number; got 'two'"):
        list(table.batches(n_rows=100))
    with pytest.raises(TableError, match=f"column 'a', {place}"):
        list(table.batches(["a"], n_rows=100))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n1,2\n1,2,3\n", "line 3 .* has 3 fields, the header has 2"),
        ("a,b\n1,2\n1\n", "line 3 .* has 1 fields, the header has 2"),
        ("a,b\ncaf\u00e9s,\u00fc\n".encode() + b"caf\xe9,1\n", "1 bytes are not. .*`--encoding`"),
        (b"a,b\n1,\x00\x00\n", "neither text nor Parquet"),
        ('[{"a": 1}, 2]', "JSON must be one object a line"),
        ('{"a": {"0": 1, "1": 2}}', "JSON must be one object a line"),
        ('{"a": 1}\n{"a"', "JSON"),
        ('{"a": 1}\n{"a": "x"}\n', "changed from number to string in row 1"),
        (gzip.compress(b'{"a": 1}'), "JSON that is compressed"),
        (b"\xd0\xcf\x11\xe0 something", "an old Excel workbook"),
        (b"SQLite format 3\x00", "an SQLite database"),
        ('a,b\n1,"x\n2,y\n3,z\n', "a quotation mark is not closed"),
        ('a,"b\n1,2\n', "quotation mark"),
    ],
)
def test_csv_errors_say_what_is_wrong_and_where(tmp_path, text, message):
    path = write_csv(tmp_path / "a.csv", text)
    with pytest.raises(TableError, match=message) as caught:
        open_table(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a,b\r\n"])
def test_a_header_alone_is_a_table_without_rows(tmp_path, text):
    table = open_table(write_csv(tmp_path / "a.csv", text))
    assert (table.n_rows, table.schema.names) == (0, ["a", "b"])
    assert list(table.batches()) == []


def test_long_fields_enlarge_the_blocks_up_to_a_limit(monkeypatch, tmp_path):
    monkeypatch.setattr(csv_reader, "_BLOCK", 1 << 8)
    monkeypatch.setattr(csv_reader, "_LARGEST_BLOCK", 1 << 14)
    lines = [f"{i},x" for i in range(300)] + [f"300,{'z' * 9000}"]
    text = "a,b\n" + "\n".join(lines) + "\n"
    path = write_csv(tmp_path / "a.csv", text)
    for given in (
        None,
        {"a": pa.float64()},
    ):  # with types, blocks grow while batches are handed out
        rows = contents(open_table_as(path, given, Reading()), n_rows=10)
        assert rows["a"].to_pylist() == list(range(301))
        assert len(rows["b"][300].as_py()) == 9000
    path = write_csv(tmp_path / "b.csv", text + f"1,{'z' * 70_000}\n2,y\n")
    with pytest.raises(TableError, match="a row does not end within"):
        open_table(path)


def test_a_damaged_gzip_file_is_refused(tmp_path):
    path = tmp_path / "a.csv.gz"
    numbers = "\n".join(map(str, np.random.default_rng(0).random(20_000)))
    path.write_bytes(gzip.compress(f"a\n{numbers}".encode())[:-2000])
    with pytest.raises(TableError, match="complete and undamaged"):
        contents(open_table(path))


def test_files_that_are_not_there_or_not_what_they_say_are_refused(tmp_path):
    with pytest.raises(TableError, match="there is no such file"):
        open_table(tmp_path / "a.csv")
    with pytest.raises(TableError, match="holds no Parquet files"):
        open_table(tmp_path)
    with pytest.raises(TableError, match=r"this is no \.parquet file"):
        open_table(write_csv(tmp_path / "a.parquet", "a,b\n1,2\n"))
    with pytest.raises(TableError, match="expected a path or a table"):
        open_table([[1.0]])


def test_a_column_that_is_not_there_is_named(tmp_path):
    table = open_table(written(tmp_path, "csv"))
    with pytest.raises(TableError, match=r"no column 'shape', 'size'. The columns are 'number'"):
        table.batches(["count", "shape", "size"])
    with pytest.raises(ValueError, match="`n_rows` must be at least 1"):
        table.batches(n_rows=0)


def test_frames_with_repeated_or_mixed_columns_are_refused():
    with pytest.raises(TableError, match="several columns are named 'a'"):
        open_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(TableError, match="column a"):
        open_table(pandas.DataFrame({"a": [1, "x", b"y"]}))


def test_damaged_text_in_a_parquet_file_is_named(tmp_path):
    binary = pa.array([b"fine", b"caf\xe9"])
    text = pa.Array.from_buffers(pa.string(), 2, binary.buffers())
    pyarrow.parquet.write_table(pa.table({"a": text}), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="column 'a' is damaged"):
        contents(open_table(tmp_path / "a.parquet"))


def test_batches_of_long_texts_have_fewer_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(parquet_reader, "BYTES_OF_A_BATCH", 1 << 20)
    monkeypatch.setattr(tables, "BYTES_OF_A_BATCH", 1 << 20)
    lines = ["z" * 10_000] * 500
    pyarrow.parquet.write_table(
        pa.table({"a": lines}), tmp_path / "a.parquet", use_dictionary=False
    )
    write_csv(tmp_path / "a.csv", "\n".join(["a", *lines]))
    for path in (tmp_path / "a.parquet", tmp_path / "a.csv"):
        sizes = [batch.nbytes for batch in open_table(path).batches()]
        assert max(sizes) < 3 << 20
        assert sum(sizes) > 500 * 10_000
