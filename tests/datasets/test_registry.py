import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from bochner import datasets
from bochner.datasets.catalog import CATALOG
from bochner.datasets.files import CHECKSUMS, checked_path
from bochner.datasets.infinite_digits import N_IMAGES
from bochner.datasets.registry import _AIRLINES as AIRLINES
from bochner.datasets.simulated import FUNCTIONS

needs_data = pytest.mark.skipif(
    not os.environ.get("BOCHNER_DATA"),
    reason="the environment variable BOCHNER_DATA does not name the folder of data files",
)

# name: rows, inputs, target, folds, splits
REGRESSION = {
    "boston": (506, 13, "MEDV", 0, 20),
    "concrete": (1030, 8, "compressive_strength_MPa", 3, 20),
    "energy": (768, 8, "heating_load", 0, 20),
    "kin40k": (40_000, 8, "distance", 0, 0),
    "powerplant": (9568, 4, "PE", 3, 20),
    "protein": (45_730, 9, "RMSD", 3, 5),
    "wine_red": (1599, 11, "quality", 0, 20),
    "yacht": (308, 6, "residuary_resistance", 0, 20),
}
# name: rows, inputs, rows of each class, folds
CLASSIFICATION = {
    "credit": (1000, 24, [700, 300], 5),
    "eeg": (14_980, 14, [8257, 6723], 5),
    "spam": (4601, 57, [2788, 1813], 5),
}


def assert_test_rows_are_disjoint_parts(parts, n_rows, share):
    for rows in parts:
        assert len(np.unique(rows)) == len(rows)
        assert 0 <= rows.min() <= rows.max() < n_rows
        assert len(rows) == pytest.approx(share * n_rows, abs=2)


@needs_data
@pytest.mark.parametrize("name", REGRESSION)
def test_regression_tables_have_their_rows_target_folds_and_splits(name):
    n_rows, d_in, target, n_folds, n_splits = REGRESSION[name]
    data = datasets.load(name)
    assert data.name == name
    assert data.X.shape == (n_rows, d_in)
    assert data.X.dtype == np.float64
    assert data.y.shape == (n_rows,)
    assert len(data.feature_names) == d_in
    assert data.target_name == target
    assert not data.is_classification
    assert (len(data.folds), len(data.splits)) == (n_folds, n_splits)
    assert_test_rows_are_disjoint_parts(data.splits, n_rows, 0.1)
    assert_test_rows_are_disjoint_parts(data.folds, n_rows, n_rows**-0.5)
    assert np.all(np.isfinite(data.X))
    assert np.all(np.isfinite(data.y))


@needs_data
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_classification_tables_have_their_rows_classes_and_folds(name):
    n_rows, d_in, counts, n_folds = CLASSIFICATION[name]
    data = datasets.load(name)
    assert data.X.shape == (n_rows, d_in)
    assert data.is_classification
    assert len(data.class_names) == 2
    assert np.bincount(data.y).tolist() == counts
    assert len(data.folds) == n_folds
    assert_test_rows_are_disjoint_parts(data.folds, n_rows, n_rows**-0.5)


@needs_data
def test_mnist_has_its_published_test_part():
    data = datasets.load("mnist")
    assert data.X.shape == (70_000, 784)
    assert (data.X.min(), data.X.max()) == (0, 255)
    X_train, y_train, X_test, y_test = data.part(data.splits[0])
    assert (X_train.shape, X_test.shape) == ((60_000, 784), (10_000, 784))
    assert y_train[:5].tolist() == [5, 0, 4, 1, 9]
    assert y_test[:5].tolist() == [7, 2, 1, 0, 4]


def test_the_names_are_those_that_are_tested():
    elsewhere = {"composed", "step", "mnist", "mnist8m", *AIRLINES}
    assert datasets.names() == sorted([*REGRESSION, *CLASSIFICATION, *elsewhere])


def test_the_catalog_lists_every_data_set_with_its_size():
    assert list(CATALOG) == datasets.names()
    for name, (n_rows, n_inputs, *_) in {**REGRESSION, **CLASSIFICATION}.items():
        one = CATALOG[name]
        assert (one.n_rows, one.n_inputs) == (n_rows, n_inputs)
        assert (one.task == "regression") == (name in REGRESSION)
    for name in FUNCTIONS:
        assert datasets.load(name).X.shape == (CATALOG[name].n_rows, CATALOG[name].n_inputs)
    assert CATALOG["mnist8m"].n_rows == N_IMAGES
    assert all(set(one.files) <= set(CHECKSUMS) for one in CATALOG.values())


def test_the_catalog_says_what_is_here(monkeypatch, tmp_path):
    monkeypatch.setenv("BOCHNER_DATA", str(tmp_path))
    monkeypatch.setenv("BOCHNER_CACHE", str(tmp_path))
    places = [CATALOG[name].place for name in ("step", "yacht", "mnist")]
    assert places == ["made when asked for", "not here", "to download"]
    for name in CATALOG["yacht"].files:
        (tmp_path / name).touch()
    assert CATALOG["yacht"].place == "here"


@needs_data
def test_flights_have_the_sizes_of_the_catalog():
    for name in ("airline_2008", "airline_nyc2013"):
        data = datasets.load(name)
        assert data.X.shape == (CATALOG[name].n_rows, CATALOG[name].n_inputs)


@needs_data
def test_a_fold_is_standardized_by_its_training_part():
    data = datasets.load("concrete")
    X, _, X_test, y_test = data.fold(1)
    assert len(y_test) == len(data.folds[1])
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0, ddof=1), 1, rtol=1e-12)
    raw, raw_y, raw_test, raw_y_test = data.part(data.folds[1])
    np.testing.assert_allclose(X_test * raw.std(axis=0, ddof=1) + raw.mean(axis=0), raw_test)
    np.testing.assert_allclose(y_test * raw_y.std(ddof=1) + raw_y.mean(), raw_y_test)


@needs_data
def test_labels_of_a_fold_stay_labels_and_a_constant_column_is_only_centered():
    data = datasets.load("spam")
    assert set(data.fold(0)[1]) == {0, 1}
    X = np.ones((9, 1))
    constant = datasets.Dataset("c", X, np.arange(9.0), ("x",), "y", folds=(np.arange(3),))
    assert set(constant.fold(0)[0].ravel()) == {0.0}
    with pytest.raises(ValueError, match="c has 1 folds"):
        constant.fold(1)


@pytest.mark.parametrize("name", ["composed", "step"])
def test_simulated_functions_are_the_same_each_time_and_near_their_truth(name):
    data = datasets.load(name)
    np.testing.assert_array_equal(data.y, datasets.load(name).y)
    assert data.X.shape == (50, 1)
    residual = data.y - FUNCTIONS[name](data.X[:, 0])
    assert residual.std() == pytest.approx(0.1, rel=0.3)


@needs_data
def test_a_part_holds_each_row_once():
    data = datasets.load("yacht")
    X_train, y_train, X_test, y_test = data.part(data.splits[3])
    np.testing.assert_array_equal(X_test, data.X[data.splits[3]])
    np.testing.assert_array_equal(y_test, data.y[data.splits[3]])
    both = np.concatenate([y_train, y_test])
    np.testing.assert_array_equal(np.sort(both), np.sort(data.y))
    assert len(X_train) == len(y_train) == 308 - len(y_test)


@needs_data
def test_every_file_has_the_checksum_in_the_list():
    for filename in CHECKSUMS:
        assert checked_path(filename).name == filename


@needs_data
def test_the_list_of_checksums_is_that_of_the_data_folder():
    listed = Path(os.environ["BOCHNER_DATA"], "SHA256SUMS")
    if not listed.is_file():
        pytest.skip("the data folder holds no SHA256SUMS")
    published = dict(reversed(line.split()) for line in listed.read_text().splitlines() if line)
    assert CHECKSUMS.items() <= {k.lstrip("*"): v for k, v in published.items()}.items()


@needs_data
def test_a_damaged_copy_is_refused(monkeypatch, tmp_path):
    for filename in ("yacht.npz", "standard_splits.npz"):
        shutil.copy(Path(os.environ["BOCHNER_DATA"], filename), tmp_path)
    monkeypatch.setenv("BOCHNER_DATA", str(tmp_path))
    assert len(datasets.load("yacht").y) == 308
    path = tmp_path / "yacht.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"yacht\.npz is not the expected file.*intact copy"):
        datasets.load("yacht")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """An empty cache, whatever the user's holds."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("BOCHNER_CACHE", str(folder))
    return folder


@needs_data
def test_a_file_in_the_cache_serves_where_the_folder_has_none(monkeypatch, tmp_path, cache):
    for filename in ("yacht.npz", "standard_splits.npz"):
        shutil.copy(Path(os.environ["BOCHNER_DATA"], filename), cache)
    monkeypatch.setenv("BOCHNER_DATA", str(tmp_path))
    assert len(datasets.load("yacht").y) == 308


def test_a_missing_variable_is_explained(monkeypatch):
    monkeypatch.delenv("BOCHNER_DATA", raising=False)
    with pytest.raises(
        datasets.DataNotFoundError, match=r"yacht\.npz is neither in BOCHNER_DATA, which is not set"
    ):
        datasets.load("yacht")


def test_a_missing_file_is_named_with_its_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("BOCHNER_DATA", str(tmp_path))
    with pytest.raises(
        datasets.DataNotFoundError, match=rf"yacht\.npz is neither in .*{tmp_path.name}"
    ):
        datasets.load("yacht")


@pytest.mark.parametrize(
    ("wrong", "nearest"), [("protien", "protein"), ("wine-red", "wine_red"), ("MNIST", "mnist")]
)
def test_a_wrong_name_suggests_the_nearest(wrong, nearest):
    with pytest.raises(ValueError, match=f"no data set '{wrong}'. Did you mean '{nearest}'"):
        datasets.load(wrong)


def test_a_name_like_no_other_gets_no_suggestion():
    with pytest.raises(ValueError, match=r"no data set 'xyz'\. `bochner\.datasets\.names"):
        datasets.load("xyz")
