import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest

from bochner import DeepGPRegressor, Linear, TableError, load
from bochner.estimators.integrations import arrow
from bochner.estimators.integrations.arrow import Predictor


def test_predictions_are_those_of_the_model(flats, files):
    found = Predictor(files / "price.bochner", 0.8, quantiles=[0.25], keep=["key"])(flats)
    model = load(files / "price.bochner")
    mean, std = model.predict(flats, return_std=True)
    assert found.column_names == ["key", "mean", "std", "lower", "upper", "q0.25"]
    assert found["key"].equals(flats["key"])
    np.testing.assert_array_equal(found["mean"], mean)
    np.testing.assert_array_equal(found["std"], std)
    interval = model.predict_interval(flats, 0.8)
    np.testing.assert_allclose(found["lower"], interval[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found["upper"], interval[:, 1], rtol=1e-12)
    np.testing.assert_allclose(found["q0.25"], model.predict_quantiles(flats, 0.25)[:, 0])


def test_classes_come_with_their_probabilities(flats, files):
    predictor = Predictor(files / "dear.bochner")
    found, model = predictor(flats), load(files / "dear.bochner")
    assert found.schema == predictor.schema
    assert found["class"].to_pylist() == model.predict(flats).tolist()
    np.testing.assert_array_equal(found["probability_yes"], model.predict_proba(flats)[:, 1])


def test_a_calibrated_model_gives_sets_of_classes(flats, files, tmp_path):
    model = load(files / "dear.bochner").calibrate(flats, "dear")
    model.save(tmp_path / "calibrated.bochner")
    found = Predictor(tmp_path / "calibrated.bochner", 0.5)(flats)
    expected = model.predict_set(flats, 0.5)
    assert [len(one.split("|")) for one in found["set"].to_pylist()] == expected.sum(
        axis=1
    ).tolist()


def test_batches_give_what_the_whole_table_gives(flats, files):
    predictor = Predictor(files / "price.bochner", keep=["key"])
    pieces = [predictor(batch) for batch in flats.to_batches(max_chunksize=7)]
    assert all(isinstance(piece, pa.RecordBatch) for piece in pieces)
    found, whole = pa.Table.from_batches(pieces), predictor(flats)
    assert found.schema == whole.schema
    for name in whole.column_names:
        np.testing.assert_allclose(found[name], whole[name], rtol=1e-12)


def test_no_rows_give_no_rows_of_the_same_columns(flats, files):
    for name in ("price", "dear"):
        predictor = Predictor(files / f"{name}.bochner", keep=["key"])
        empty = predictor(flats.slice(0, 0))
        assert (empty.num_rows, empty.schema) == (0, predictor(flats).schema)
        batch = predictor(pa.RecordBatch.from_pylist([], schema=flats.schema))
        assert (batch.num_rows, batch.schema) == (0, empty.schema)


def test_a_file_is_opened_once(flats, files, monkeypatch):
    opened = []
    monkeypatch.setattr(arrow, "load", lambda path: opened.append(path) or load(path))
    arrow._opened.cache_clear()
    for predictor in (Predictor(files / "price.bochner"), Predictor(files / "price.bochner")):
        sent = pickle.loads(pickle.dumps(predictor))
        assert (sent, copy.copy(sent)) == (predictor, predictor)
        sent(flats)
        predictor(flats)
    assert len(opened) == 1


def test_what_is_sent_to_other_processes_is_small(files):
    assert len(pickle.dumps(Predictor(files / "price.bochner"))) < 500


def test_a_file_that_takes_the_place_of_another_is_opened(flats, files, tmp_path):
    path = tmp_path / "model.bochner"
    load(files / "price.bochner").save(path)
    predictor = Predictor(path)
    before = predictor(flats)
    DeepGPRegressor(Linear()).fit(flats.select(["size", "price"]), "price").save(path)
    assert not predictor(flats).equals(before)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("price", {"coverage": 1.5}, "`coverage` must lie strictly between 0 and 1; got 1.5"),
        ("price", {"quantiles": [0.0]}, "`quantiles` must lie strictly"),
        ("dear", {"quantiles": [0.5]}, "predicts classes"),
        ("price", {"keep": ["mean"]}, "'mean', which is a column of the predictions"),
        ("price", {"quantiles": [0.5, 0.1, 0.5]}, "`quantiles` would give two columns 'q0.5'"),
        ("price", {"quantiles": [0.1, 0.10000001]}, "`quantiles` would give two columns 'q0.1'"),
        ("price", {"keep": ["size", "size"]}, "`keep` would give two columns 'size'"),
    ],
)
def test_what_cannot_be_predicted_is_refused_before_any_row(files, name, options, message):
    with pytest.raises(ValueError, match=message):
        Predictor(files / f"{name}.bochner", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantiles": 0.5}, r"`quantiles` must be a list of numbers .* got 0.5\."),
        ({"quantiles": "0.5"}, r"`quantiles` must be a list .* got '0.5'\."),
        ({"quantiles": ["0.5"]}, "`quantiles` must be a list .* got '0.5' in it"),
        ({"keep": "size"}, r"`keep` must be a list of names .* got 'size'\."),
        ({"keep": [0]}, "`keep` must be a list of names .* got 0 in it"),
    ],
)
def test_settings_that_are_no_lists_are_refused_in_words(files, options, message):
    with pytest.raises(TypeError, match=message):
        Predictor(files / "price.bochner", **options)


def test_levels_come_in_an_array_too(flats, files):
    found = Predictor(files / "price.bochner", quantiles=np.array([0.25, 0.75]))(flats)
    assert found.column_names[-2:] == ["q0.25", "q0.75"]


def test_a_model_of_several_targets_is_refused(tmp_path):
    X = np.arange(10.0)[:, None]
    DeepGPRegressor(Linear()).fit(X, np.column_stack([X, -X])).save(tmp_path / "two.bochner")
    with pytest.raises(ValueError, match="has 2 targets"):
        Predictor(tmp_path / "two.bochner")


def test_a_missing_column_is_named(flats, files):
    with pytest.raises(TableError, match=r"no column 'id' to keep.* are 'key', 'size'"):
        Predictor(files / "price.bochner", keep=["id"])(flats)
    with pytest.raises(TableError, match="size"):
        Predictor(files / "price.bochner")(flats.drop_columns("size"))
