"""Tables of named columns: files, frames and Arrow tables, in memory and streamed."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from bochner import DeepGPRegressor, load
from bochner.fitting import sources
from bochner.rows import spool
from bochner.tables.source import TableError
from tests.deep_alone import deep_classifier, deep_regressor
from tests.estimators.problems import SMALL

SHORT = SMALL | {"max_steps": 300, "random_state": 0}


def frame(n=400, seed=0):
    generator = np.random.default_rng(seed)
    size = generator.normal(size=n)
    color = generator.choice(["red", "green", "blue"], size=n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(generator.integers(0, 300, n), unit="D")
    price = 2 * size + 3.0 * (color == "red") + 0.1 * generator.normal(size=n)
    size[::17] = np.nan
    return pd.DataFrame(
        {"price": price, "size": size, "color": color, "sold": color == "red", "day": day}
    )


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "flats.csv"
    frame().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def fitted(csv):
    return deep_regressor(**SHORT).fit(csv, "price", ignore=["sold"])


def test_all_kinds_of_tables_give_the_same_model(csv, fitted, tmp_path):
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    pyarrow.parquet.write_table(table, tmp_path / "flats.parquet")
    for source in (table, tmp_path / "flats.parquet", pyarrow.dataset.dataset(table), frame()):
        model = deep_regressor(**SHORT).fit(source, "price", ignore=["sold"])
        np.testing.assert_allclose(model.predict(csv), fitted.predict(csv), rtol=1e-4, atol=1e-4)


def test_text_dates_and_missing_values_are_learned_from(fitted, csv):
    new = frame(200, seed=1)
    known = new["size"].notna()
    error = fitted.predict(new)[known] - new["price"][known]
    assert np.sqrt(np.mean(error**2)) < 0.5
    assert fitted.evaluate(csv, "price")["rmse"] < 1.0


def test_columns_may_come_in_another_order_and_further_ones_are_ignored(fitted, csv):
    moved = frame()[["day", "color", "size"]].assign(extra="x")
    np.testing.assert_array_equal(fitted.predict(moved), fitted.predict(frame()))
    with pytest.raises(TableError, match="color"):
        fitted.predict(frame()[["size", "day"]])


def test_unseen_categories_work(fitted):
    new = frame(20, seed=2)
    new["color"] = "violet"
    assert np.isfinite(fitted.predict(new)).all()


def test_a_saved_model_encodes_as_before(fitted, csv, tmp_path):
    fitted.save(tmp_path / "model.bochner")
    again = load(tmp_path / "model.bochner")
    np.testing.assert_array_equal(again.predict(csv), fitted.predict(csv))
    assert again.evaluate(csv, "price") == fitted.evaluate(csv, "price")


def test_a_validation_table_keeps_the_best_parameters(csv):
    model = deep_regressor(**SHORT).fit(csv, "price", validation=frame(100, seed=3))
    assert any(record["held_out_mnll"] is not None for record in model.history_)


def test_wrong_names_are_told_before_any_work(csv):
    with pytest.raises(TableError, match=r"no column 'prize'.*'price'"):
        DeepGPRegressor().fit(csv, "prize")
    with pytest.raises(TableError, match="no column 'colour'"):
        DeepGPRegressor().fit(csv, "price", ignore=["colour"])
    with pytest.raises(ValueError, match="sample_weight"):
        DeepGPRegressor().fit(csv, "price", sample_weight=np.ones(400))


def test_a_table_goes_into_every_method(fitted, csv):
    values = fitted.sample_functions(1)[0](frame())
    np.testing.assert_array_equal(values, fitted.sample_functions(1)[0](csv))
    assert fitted.score(frame(), "price") == fitted.score(csv, frame()["price"]) > 0.8
    assert fitted.plot_shares().get_yticklabels()[-1].get_text() in frame().columns
    again = deep_regressor(**SHORT).fit(csv, "price", ignore=["sold"])
    again.partial_fit(frame(50, seed=4), "price")
    assert again.total_weight_ == 450


@pytest.mark.parametrize("labels", [[0, 1, 2], [True, False], ["0", "1", "x"], [1.0, 2.0]])
def test_classes_are_read_as_at_the_fit(tmp_path, labels):
    # A file without the text "x" would suggest numbers, and one read for prediction takes other columns as text.
    table = frame(60).assign(label=[labels[i % len(labels)] for i in range(60)])
    table.to_csv(tmp_path / "all.csv", index=False)
    table[table["label"] != "x"].to_csv(tmp_path / "some.csv", index=False)
    model = deep_classifier(**SHORT | {"max_steps": 5}).fit(tmp_path / "all.csv", "label")
    assert model.classes_.tolist() == sorted(labels)
    for name in ("all.csv", "some.csv"):
        assert 0 <= model.evaluate(tmp_path / name, "label")["error_rate"] <= 1
    deep_classifier(**SHORT | {"max_steps": 5}).fit(
        tmp_path / "all.csv", "label", validation=tmp_path / "some.csv"
    )


def test_a_fit_that_fails_leaves_the_model_as_it_was(csv):
    model = deep_regressor(**SHORT | {"max_steps": 5}).fit(csv, "price")
    before = model.predict(csv)
    with pytest.raises(ValueError, match="max_steps"):
        model.set_params(members__max_steps=-1).fit(frame()[["size", "price"]], "price")
    np.testing.assert_array_equal(model.predict(csv), before)


@pytest.fixture
def small_memory(monkeypatch):
    """A machine whose memory holds a few rows only."""
    monkeypatch.setattr(sources, "NUMBERS_IN_MEMORY", 100)
    monkeypatch.setattr(sources, "_SAMPLE_ROWS", 200)
    monkeypatch.setattr(spool, "PART_ROWS", 512)
    monkeypatch.setattr(spool, "BLOCK_ROWS", 4)


@pytest.mark.parametrize("order", ["as it is", "sorted"])
def test_a_streamed_table_trains_as_well_sorted_as_not(small_memory, tmp_path, order, fitted):
    table = frame(2000)
    if order == "sorted":
        table = table.sort_values("price")
    pyarrow.parquet.write_table(pa.Table.from_pandas(table), tmp_path / "t.parquet")
    settings = SHORT | {"batch_size": 50, "max_steps": 600}
    model = deep_regressor(**settings).fit(tmp_path / "t.parquet", "price", ignore=["sold"])
    assert model.total_weight_ == 2000
    test = frame(500, seed=5)
    found = model.evaluate(test, "price")
    in_memory = deep_regressor(**settings)
    X, y = model.fitted_.encoder(pa.Table.from_pandas(table)), table["price"].to_numpy()
    in_memory.fit(X, y)
    known = in_memory.evaluate(model.fitted_.encoder(pa.Table.from_pandas(test)), test["price"])
    assert found["mnll"] < known["mnll"] + 0.1


def test_streamed_classes_and_their_weights(small_memory, csv):
    settings = SHORT | {"max_steps": 400, "class_weight": "balanced"}
    model = deep_classifier(**settings).fit(csv, "color", ignore=["day"])
    assert model.classes_.tolist() == ["blue", "green", "red"]
    assert model.total_weight_ == pytest.approx(400)
    assert model.predict_proba(csv).shape == (400, 3)
    assert model.evaluate(csv, "color")["error_rate"] < 0.5


def test_rows_are_held_out_of_a_stream(small_memory, csv):
    settings = SHORT | {"validation_fraction": 0.25}
    model = deep_regressor(**settings).fit(csv, "price")
    assert 0.6 * 400 < model.trained_weight_ < 0.9 * 400
    assert model.total_weight_ == 400
    assert any(record["held_out_mnll"] is not None for record in model.history_)


def test_a_warm_start_goes_on_with_a_stream(small_memory, csv):
    model = deep_regressor(**SHORT | {"max_steps": 20, "warm_start": True}).fit(csv, "price")
    assert model.fit(csv, "price").n_steps_ == 40
    with pytest.raises(ValueError, match="goes on with the target 'price'"):
        model.fit(csv, "size")


@pytest.mark.filterwarnings("ignore:.*starts anew")
def test_checkpoints_know_their_data(csv, tmp_path):
    settings = SHORT | {"checkpoint": tmp_path / "run", "resume": True, "max_steps": 50}
    first = deep_regressor(**settings).fit(csv, "price")
    again = deep_regressor(**settings).fit(csv, "price")
    np.testing.assert_array_equal(first.predict(csv), again.predict(csv))
    with pytest.raises(ValueError, match="another training: data"):
        deep_regressor(**settings).fit(frame(seed=8), "price")
    with pytest.raises(ValueError, match="another training: held_out_rows"):
        deep_regressor(**settings).fit(csv, "price", validation=frame(50, seed=1))
    with pytest.raises(ValueError, match="max_steps was 50 and is 60"):
        deep_regressor(**settings | {"max_steps": 60}).fit(csv, "price")
    with pytest.raises(ValueError, match="whole number as `random_state`"):
        deep_regressor(**settings | {"random_state": None}).fit(csv, "price")
