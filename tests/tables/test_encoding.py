import datetime
import decimal
import json
import math

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from bochner.tables.category import MOST_CATEGORIES
from bochner.tables.columns import COLUMNS
from bochner.tables.encoding import Encoder
from bochner.tables.reading import Reading
from bochner.tables.source import TableError, open_table, open_table_as

SAMPLE = pa.table(
    {
        "age": [30, None, 50, 20],
        "color": ["red", "blue", None, "red"],
        "smokes": [True, False, None, True],
        "when": [datetime.datetime(2020, 1, day, 6 * day) for day in (1, 2, 3)] + [None],
        "alarm": pa.array([23_400, None, 43_200, 0], pa.time32("s")),
        "stay": [datetime.timedelta(days=1.5)] * 3 + [None],
    }
)


def feature(encoder, X, name):
    return X[:, encoder.feature_names.index(name)].tolist()


def test_each_kind_is_encoded_as_by_hand():
    encoder = Encoder.learn(SAMPLE)
    X = encoder(SAMPLE)
    expected = {
        "age": [30.0, 30.0, 50.0, 20.0],
        "age is missing": [0, 1, 0, 0],
        "color=blue": [0, 1, 0, 0],
        "color=red": [1, 0, 0, 1],
        "color is missing": [0, 0, 1, 0],
        "smokes": [1.0, 0.0, 1.0, 1.0],
        "smokes is missing": [0, 0, 1, 0],
        "when: days": [18262.25, 18263.5, 18264.75, 18263.5],
        "when: time of day": [6.0, 12.0, 18.0, 12.0],
        "when: day of week": [2.0, 3.0, 4.0, 3.0],  # the first of January 2020 was a Wednesday
        "when: day of year": [1.0, 2.0, 3.0, 2.0],
        "when is missing": [0, 0, 0, 1],
        "alarm: hours": [6.5, 6.5, 12.0, 0.0],
        "alarm is missing": [0, 1, 0, 0],
        "stay: days": [1.5, 1.5, 1.5, 1.5],
        "stay is missing": [0, 0, 0, 1],
    }
    assert encoder.feature_names == list(expected)
    assert X.dtype == np.float64
    np.testing.assert_allclose(X, np.array(list(expected.values())).T, rtol=1e-15)


def mixed_frame(n, seed, n_colors):
    generator = np.random.default_rng(seed)
    # A geometric law, so that no two counts near the limit of categories tie.
    colors = np.minimum(generator.geometric(0.1, n), n_colors)
    return pandas.DataFrame(
        {
            "a": np.where(generator.random(n) < 0.2, np.nan, generator.normal(size=n)),
            "color": [f"color {color:03}" for color in colors],
            "b": generator.normal(size=n),
        }
    )


@pytest.mark.parametrize("n_colors", [4, 200])
def test_numbers_and_categories_are_encoded_as_by_a_scikit_learn_pipeline(n_colors):
    train, test = mixed_frame(5000, 0, n_colors), mixed_frame(1000, 1, n_colors)
    test.loc[:9, "color"] = "never seen"
    one_hot = OneHotEncoder(
        max_categories=MOST_CATEGORIES, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    pipeline = make_column_transformer(
        (SimpleImputer(strategy="median", add_indicator=True), ["a"]),
        (one_hot, ["color"]),
        ("passthrough", ["b"]),
    )
    pipeline.fit(train)
    encoder = Encoder.learn(pa.Table.from_pandas(train))
    X, numbered = encoder(pa.Table.from_pandas(test)), list(encoder.coded)
    np.testing.assert_array_equal(np.delete(X, numbered, axis=1), pipeline.transform(test))


def test_moments_have_the_parts_of_the_calendar_that_pandas_finds():
    moments = pandas.Series(pandas.date_range("1969-11-03", periods=500, freq="37h"))
    table = pa.table({"when": moments})
    encoder = Encoder.learn(table)
    X = encoder(table)
    hours = moments.dt.hour + moments.dt.minute / 60
    np.testing.assert_allclose(feature(encoder, X, "when: time of day"), hours)
    np.testing.assert_array_equal(feature(encoder, X, "when: day of week"), moments.dt.day_of_week)
    np.testing.assert_array_equal(feature(encoder, X, "when: day of year"), moments.dt.day_of_year)
    days = (moments - pandas.Timestamp(0)) / pandas.Timedelta(days=1)
    np.testing.assert_allclose(feature(encoder, X, "when: days"), days)


def test_parts_of_the_calendar_that_do_not_vary_are_left_out():
    sundays = [datetime.date(2021, 1, 3) + datetime.timedelta(weeks=week) for week in range(9)]
    assert Encoder.learn(pa.table({"day": sundays})).feature_names == ["day: days", "day: day of year"]  # fmt: skip
    assert Encoder.learn(pa.table({"day": sundays[:1]})).feature_names == ["day: days"]


def test_columns_are_found_by_name_in_any_order_and_others_are_ignored():
    encoder = Encoder.learn(SAMPLE)
    shuffled = SAMPLE.select(SAMPLE.column_names[::-1]).append_column("extra", [[[1]] * 4])
    np.testing.assert_array_equal(encoder(shuffled), encoder(SAMPLE))
    np.testing.assert_array_equal(encoder(SAMPLE.to_batches()[0]), encoder(SAMPLE))


def test_all_missing_columns_are_named():
    encoder = Encoder.learn(SAMPLE)
    with pytest.raises(TableError, match="missing columns: 'age', 'when'"):
        encoder(SAMPLE.drop_columns(["age", "when"]))


def test_a_missing_value_where_the_sample_had_none_is_imputed_all_the_same():
    encoder = Encoder.learn(pa.table({"a": [1.0, 3.0, 8.0], "b": ["x", "y", "x"]}))
    assert encoder.feature_names == ["a", "b=x", "b=y"]
    batch = pa.table({"a": pa.array([None], pa.float64()), "b": pa.array([None], pa.string())})
    assert encoder(batch).tolist() == [[3.0, 0.0, 0.0]]


def test_unseen_categories_join_the_rest():
    values = ["a", "b"] * 50 + [f"rare {i}" for i in range(30)]
    encoder = Encoder.learn(pa.table({"x": values}))
    assert len(encoder.feature_names) == MOST_CATEGORIES + 1
    X = encoder(pa.table({"x": ["a", "new", "rare 29", ""]}))
    assert X[:, :-1].sum(axis=1).tolist() == [1.0] * 4
    # All values have a number, those never seen the next one.
    assert X[:, -1].tolist() == [0.0, 32.0, encoder.columns[0].others.index("rare 29") + 24.0, 32.0]
    rest = feature(encoder, X, "x is another")
    assert rest[0] == 0
    assert rest[1] == 1
    assert rest[3] == 1  # missing, which the sample did not know


def test_words_for_missing_values_are_missing_in_every_format():
    encoder = Encoder.learn(pa.table({"x": ["a", "b", "?", " "]}))
    assert encoder.feature_names == ["x=a", "x=b", "x is missing"]


def test_constant_columns_and_counts_of_rows_are_warned_of():
    sample = pa.table({"id": range(30), "one": ["x"] * 30, "a": [2, 1] * 15})
    with pytest.warns(UserWarning, match=r"'one' have one value|'id' count the rows") as caught:
        assert Encoder.learn(sample).input_names == ["id", "one", "a"]
    assert len(caught) == 2


def test_infinite_numbers_are_named_by_their_row_in_the_table():
    encoder = Encoder.learn(pa.table({"a": [1.0, 2.0]}))
    with pytest.raises(
        TableError, match="column 'a' holds 1 infinite numbers, the first in row 12"
    ):
        encoder(pa.table({"a": [1.0, math.inf]}), row=10)


def test_identifiers_and_empty_columns_are_dropped_with_a_warning():
    names = pa.array([f"person {i}" for i in range(100)])
    sample = pa.table({"name": names, "a": [2, 1] * 50, "nothing": pa.nulls(100)})
    with pytest.warns(UserWarning, match="are not used") as caught:
        encoder = Encoder.learn(sample)
    assert [str(warning.message) for warning in caught] == [
        "The columns 'name' are not used: nearly each row has its own text there.",
        "The columns 'nothing' are not used: all values are missing.",
    ]
    assert (encoder.input_names, encoder.dropped) == (["a"], ("name", "nothing"))
    assert encoder(pa.table({"a": [1]})).tolist() == [[1.0]]
    with (
        pytest.warns(UserWarning, match="'name'"),
        pytest.raises(TableError, match="no column is left"),
    ):
        Encoder.learn(sample.select(["name"]))


def test_few_rows_of_text_are_categories_and_no_identifiers():
    assert Encoder.learn(pa.table({"x": ["a", "b", "c"]})).feature_names == ["x=a", "x=b", "x=c"]


TYPES = [
    pa.array([1, 2, None], pa.int8()),
    pa.array([1, 2**64 - 1, None], pa.uint64()),
    pa.array([1, 2, None], pa.float16()),
    pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("2.5")]),
    pa.array(["a", "b", None], pa.large_string()),
    pa.array(["a", "b", None], pa.string_view()),
    pa.array([b"a", b"b", None], pa.binary()),
    pa.array(["a", "b", None]).dictionary_encode(),
    pa.array([1, 2, None]).dictionary_encode(),
    pa.array([1, 2, None], pa.date32()),
    pa.array([86_400_000, 0, None], pa.date64()),
    pa.array([1, 2, None], pa.timestamp("s", "Europe/Berlin")),
    pa.array([1, 2, None], pa.timestamp("ns")),
    pa.array([1, 2, None], pa.time32("ms")),
    pa.array([1, 2, None], pa.time64("ns")),
    pa.array([1, 2, None], pa.duration("ns")),
    pa.array([True, False, None]),
    pa.RunEndEncodedArray.from_arrays([2, 3], [5, None]),
]


@pytest.mark.parametrize("values", TYPES, ids=lambda values: str(values.type))
def test_every_type_is_encoded_and_survives_storage(values):
    encoder = Encoder.learn(pa.table({"a": values}))
    X = encoder(pa.table({"a": values}))
    assert X.shape == (3, len(encoder.feature_names))
    assert np.all(np.isfinite(X))
    assert feature(encoder, X, "a is missing").count(1.0) == 1
    again = Encoder.from_json(json.loads(json.dumps(encoder.to_json(), allow_nan=False)))
    assert again == encoder
    np.testing.assert_array_equal(again(pa.table({"a": values})), X)


def test_time_zones_are_those_of_utc():
    moments = [datetime.datetime(2020, 1, 1, hour, tzinfo=datetime.UTC) for hour in (0, 12)]
    berlin = pa.table({"a": pa.array(moments, pa.timestamp("s", "Europe/Berlin"))})
    plain = pa.table({"a": pa.array([moment.replace(tzinfo=None) for moment in moments])})
    encoder = Encoder.learn(berlin)
    np.testing.assert_array_equal(encoder(berlin), encoder(plain))
    assert feature(encoder, encoder(plain), "a: time of day") == [0.0, 12.0]


@pytest.mark.parametrize("form", ["csv", "parquet", "pandas", "polars"])
def test_a_table_is_encoded_alike_from_every_format(tmp_path, form):
    table = SAMPLE.drop_columns(["stay"])  # CSV has no durations
    encoder = Encoder.learn(table)
    path = tmp_path / f"a.{form}"
    if form == "csv":
        pyarrow.csv.write_csv(table, path)
    elif form == "parquet":
        pyarrow.parquet.write_table(table, path)
    source = {"pandas": table.to_pandas, "polars": lambda: polars.from_arrow(table)}.get(
        form, lambda: path
    )()
    (batch,) = open_table_as(source, encoder.types, Reading()).batches()
    np.testing.assert_array_equal(encoder(batch), encoder(table))
    learned = Encoder.learn(pa.Table.from_batches(open_table(source).batches()))
    assert learned.feature_names == encoder.feature_names
    np.testing.assert_array_equal(learned(batch), encoder(table))


def test_lists_and_structs_are_refused_by_name():
    sample = pa.table({"a": [1], "b": [[1, 2]], "c": [{"d": 1}]})
    with pytest.raises(TableError, match=r"'b' \(list.*'c' \(struct.*`--ignore b --ignore c`"):
        Encoder.learn(sample)


@pytest.mark.parametrize("wrong", [math.inf, -math.inf])
def test_infinite_numbers_are_refused_by_name(wrong):
    with pytest.raises(TableError, match="column 'a' holds 1 infinite numbers, the first in row 2"):
        Encoder.learn(pa.table({"a": [1.0, wrong]}))
    encoder = Encoder.learn(pa.table({"a": [1.0, 2.0]}))
    with pytest.raises(TableError, match="column 'a'"):
        encoder(pa.table({"a": [1.0, wrong]}))


def test_values_of_another_kind_are_refused_by_name_row_and_value():
    encoder = Encoder.learn(SAMPLE)
    wrong = SAMPLE.set_column(0, "age", pa.array(["1", "2", "old", "4"]))
    with pytest.raises(TableError, match="column 'age', row 3: expected a number; got 'old'"):
        encoder(wrong)
    wrong = SAMPLE.set_column(3, "when", pa.array([1, 2, 3, 4]))
    with pytest.raises(TableError, match="column 'when', row 1: expected a date or time stamp"):
        encoder(wrong)


def test_a_table_without_rows_is_encoded_but_teaches_nothing():
    encoder = Encoder.learn(SAMPLE)
    assert encoder(SAMPLE.slice(0, 0)).shape == (0, len(encoder.feature_names))
    with pytest.raises(TableError, match="no rows"):
        Encoder.learn(SAMPLE.slice(0, 0))


numbers = st.none() | st.floats(allow_nan=True, allow_infinity=False)
texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
moments = st.none() | st.datetimes()


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.tuples(numbers, texts, moments), min_size=1, max_size=30),
    later=st.lists(st.tuples(numbers, texts, moments), min_size=1, max_size=10),
)
def test_any_table_gives_finite_numbers_before_and_after_storage(rows, later):
    kinds = [pa.float64(), pa.string(), pa.timestamp("us")]

    def table(rows):
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
        return pa.table(arrays, names=["a", "b", "c"])

    encoder = Encoder.learn(table(rows))
    X = encoder(table(later))
    assert X.shape == (len(later), len(encoder.feature_names))
    assert np.all(np.isfinite(X))
    again = Encoder.from_json(json.loads(json.dumps(encoder.to_json(), allow_nan=False)))
    assert again == encoder
    np.testing.assert_array_equal(again(table(later)), X)


def stored():
    return json.loads(json.dumps(Encoder.learn(SAMPLE).to_json()))


def test_every_kind_of_column_is_in_the_stored_example():
    assert {column["kind"] for column in stored()["columns"]} == set(COLUMNS)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(value, path=()):
    """All places in nested lists and objects."""
    yield path
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield from places(value[key], (*path, key))


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_damaged_storage_is_refused_with_a_value_error_or_still_encodes(data):
    damaged = stored()
    place = data.draw(st.sampled_from(list(places(damaged))))
    if place:
        *above, key = place
        inner = damaged
        for step in above:
            inner = inner[step]
        if data.draw(st.booleans()):
            inner[key] = data.draw(junk)
        else:
            del inner[key]
    else:
        damaged = data.draw(junk)
    try:
        encoder = Encoder.from_json(damaged)
    except ValueError:
        return
    if set(encoder.input_names) <= set(SAMPLE.column_names):
        assert np.all(np.isfinite(encoder(SAMPLE)))


@pytest.mark.parametrize(
    "changed",
    [
        {"medians": [math.nan]},
        {"medians": [math.inf]},
        {"medians": [10**400]},
        {"medians": [True]},
        {"medians": ["1"]},
        {"medians": []},
        {"medians": [1.0, 2.0]},
        {"has_indicator": 1},
        {"kind": "category"},
        {"kind": "__class__"},
        {"kind": ["number"]},
        {"name": 3},
        {"name": "color"},
        {"more": 1},
    ],
)
def test_storage_is_checked_strictly(changed):
    damaged = stored()
    damaged["columns"][0].update(changed)
    with pytest.raises(ValueError, match="the stored encoding of columns is damaged"):
        Encoder.from_json(damaged)
