"""Tables of very many columns are read in time that grows with their number, or refused at once."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

from bochner.tables import array_reader, readers
from bochner.tables.source import TableError, open_table


@pytest.fixture(scope="module", params=["csv", "npy"])
def wide(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("wide") / f"t.{request.param}"
    if request.param == "npy":
        np.save(path, np.ones((2, 300)))
    else:
        names, values = ",".join(f"c{i}" for i in range(300)), ",".join(["1"] * 300)
        path.write_text(f"{names}\n{values}\n")
    return path


def test_more_columns_than_the_limit_are_refused(wide, monkeypatch):
    assert len(open_table(wide).schema) == 300
    monkeypatch.setattr(readers, "MOST_COLUMNS", 200)
    with pytest.raises(TableError, match=r"there are 300 columns; at most 200 are read\. Choose"):
        open_table(wide)


def test_a_header_of_very_many_columns_is_refused_at_once(tmp_path):
    (tmp_path / "t.csv").write_text(",".join(f"c{i}" for i in range(60_000)) + "\n")
    with pytest.raises(TableError, match="there are 60,000 columns; at most 30,000"):
        open_table(tmp_path / "t.csv")


def table(n_columns):
    return pa.table({f"c{i}": [1.0, 2.0] for i in range(n_columns)})


@pytest.mark.parametrize(
    "kind", ["parquet", "folder", "feather", "npz", "arrow", "pandas", "dataset"]
)
def test_so_are_those_of_all_other_tables(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "MOST_COLUMNS", 30)

    def source(n_columns):
        path, made = tmp_path / f"{n_columns}.{kind}", table(n_columns)
        if kind == "parquet":
            pyarrow.parquet.write_table(made, path)
        elif kind in ("folder", "dataset"):
            path.mkdir()
            pyarrow.parquet.write_table(made, path / "part.parquet")
        elif kind == "feather":
            pyarrow.feather.write_feather(made, path)
        elif kind == "npz":  # one array a column, each of them narrow
            np.savez(path, **{f"c{i}": np.ones(2) for i in range(n_columns)})
        else:
            return made if kind == "arrow" else made.to_pandas()
        return pyarrow.dataset.dataset(path) if kind == "dataset" else path

    assert len(open_table(source(30)).schema) == 30
    with pytest.raises(TableError, match=r"there are 31 columns; at most 30 are read\. Choose"):
        open_table(source(31))


def test_an_array_by_columns_must_be_small_enough_to_be_held(tmp_path, monkeypatch):
    np.save(tmp_path / "t.npy", np.asfortranarray(np.ones((20, 10))))
    assert open_table(tmp_path / "t.npy").n_rows == 20
    monkeypatch.setattr(array_reader, "_MOST_BY_COLUMNS", 1599)
    with pytest.raises(TableError, match=r"column by column and has 1,600 bytes; .*ascontiguous"):
        open_table(tmp_path / "t.npy")
    np.save(tmp_path / "t.npy", np.ones((20, 10)))
    assert open_table(tmp_path / "t.npy").n_rows == 20
