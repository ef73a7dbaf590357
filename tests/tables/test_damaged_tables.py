"""Files with random damage either give finite numbers or a `TableError`, never anything else."""

import random
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from bochner.tables.encoding import Encoder
from bochner.tables.reading import Reading
from bochner.tables.source import TableError, open_table, open_table_as

ROWS = pa.table(
    {
        "a": pa.array([1, 2, None, 4] * 5),
        "b": pa.array([1.5, None, 3, 4] * 5),
        "c": ["x", "y", None, "zz"] * 5,
        "d": pa.array(range(20), pa.timestamp("s")),
        "e": [True, False] * 10,
    }
)
INSERTED = [b'"', b",", b"\n", b"\xff", b"\x00", b"1e999", b"\r", b";", b'"""', b"\n\n", b"x" * 50]
OVERWRITTEN = [b"\xff\xff\xff\x7f", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff"]


def write(path):
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(ROWS, path)
    elif path.suffix == ".parquet":
        texts = ROWS["c"].dictionary_encode()
        pyarrow.parquet.write_table(ROWS.append_column("f", texts), path, compression="none")
    elif path.suffix == ".npz":
        np.savez(path, X=np.arange(40.0).reshape(20, 2), y=np.array(["a", "b"] * 10))
    else:
        np.save(path, np.arange(40.0).reshape(20, 2))


def damage(whole, chance):
    damaged = bytearray(whole)
    for _ in range(chance.choice([1, 1, 1, 2, 4, 16])):
        # The end is as likely as all the rest: the tables of contents of Parquet and zip are there.
        place = chance.randrange(len(damaged))
        if chance.random() < 0.5:
            place = max(0, len(damaged) - 1 - int(chance.expovariate(1 / 200)))
        kind = chance.randrange(6)
        if kind == 0:
            damaged[place] = chance.randrange(256)
        elif kind == 1:
            damaged[place] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del damaged[place : place + chance.randrange(1, 20)]
        elif kind == 3:
            damaged[place:place] = chance.choice(INSERTED)
        elif kind == 4:
            del damaged[place + 1 :]
        else:
            damaged[place : place + 4] = chance.choice(OVERWRITTEN)
        damaged = damaged or bytearray(b"a")
    return bytes(damaged)


def read(path):
    table = open_table(path)
    batches = list(table.batches(n_rows=7))
    if batches:
        rows = pa.Table.from_batches(batches)
        encoder = Encoder.learn(rows)
        X = encoder(rows)
        assert X.shape == (rows.num_rows, len(encoder.feature_names))
        assert np.all(np.isfinite(X))


@pytest.mark.parametrize(
    ("ending", "n_files"), [("csv", 700), ("parquet", 1500), ("npz", 500), ("npy", 300)]
)
def test_damaged_files_are_read_or_refused(tmp_path, ending, n_files):
    path, chance, n_refused = tmp_path / f"a.{ending}", random.Random(7), 0
    write(path)
    whole = path.read_bytes()
    read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(n_files):
            path.write_bytes(damage(whole, chance))
            try:
                read(path)
            except TableError:
                n_refused += 1
    assert n_files / 4 < n_refused < n_files


@pytest.mark.parametrize("value", ["x", "1e999", "2020-01-01", "true", '"a\nb"', "é", "1" * 5000])
def test_a_strange_value_in_any_cell_is_read_or_refused(tmp_path, value):
    path = tmp_path / "a.csv"
    write(path)
    given = Encoder.learn(ROWS).types
    named = []
    lines = [line.split(",") for line in path.read_text().splitlines()]
    for column in range(5):
        changed = [list(line) for line in lines]
        changed[7][column] = value
        path.write_text("\n".join(",".join(line) for line in changed))
        # Without types the column is widened; with them the error names it.
        assert pa.Table.from_batches(open_table(path).batches()).num_rows == 20
        try:
            pa.Table.from_batches(open_table_as(path, given, Reading()).batches())
        except TableError as error:
            named.append((column, str(error)))
    for column, message in named:
        assert f"column {ROWS.column_names[column]!r}, " in message
