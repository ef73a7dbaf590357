"""Tables as people and spreadsheets write them: numbers, dates, encodings, separators, comments, names."""

import datetime
import gzip
import warnings
import zipfile

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.feather
import pytest

from bochner.tables.encoding import Encoder
from bochner.tables.notation import Moments, Numbers
from bochner.tables.reading import Reading
from bochner.tables.source import TableError, open_table, open_table_as

NOTHING = "error::UserWarning"


def written(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def rows(table):
    return pa.Table.from_batches(list(table.batches()), table.schema).to_pydict()


NUMBERS = {
    "decimal commas": (["1,5", "-0,25", "3"], [1.5, -0.25, 3]),
    "points between groups": (["1.234,56", "12", "1.234.567,8"], [1234.56, 12, 1234567.8]),
    "commas between groups": (["1,234.56", "12.5", "1,234,567"], [1234.56, 12.5, 1234567]),
    "groups of India": (["1,23,456.5", "12,34,567"], [123456.5, 1234567]),
    "spaces between groups": (["1 234,5", "1\u202f234\u00a0567,25"], [1234.5, 1234567.25]),
    "apostrophes": (["1'234.50", "3", "2\u2019000.5"], [1234.5, 3, 2000.5]),
    "dollars": (["$1,234.56", "$7", "-$2.50", "3"], [1234.56, 7, -2.5, 3]),
    "euros": (["1.234,56 \u20ac", "7,00 \u20ac"], [1234.56, 7]),
    "codes of currencies": (["EUR 5,5", "6,5 EUR"], [5.5, 6.5]),
    "percent": (["12 %", "3.5%", "0"], [12, 3.5, 0]),
    "brackets": (["(1,234.50)", "7.25"], [-1234.5, 7.25]),
    "signs": (["+1,5", "\u22122,5"], [1.5, -2.5]),
    "exponents": (["1,5E+03", "2,5e-1"], [1500, 0.25]),
    "three decimals": (["0,123", "1,234"], [0.123, 1.234]),
}


@pytest.mark.parametrize(("cells", "values"), NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("form", ["csv", "frame"])
@pytest.mark.filterwarnings(NOTHING)
def test_numbers_in_any_notation_are_numbers(tmp_path, cells, values, form):
    frame = pandas.DataFrame({"name": "a", "c": cells})
    if form == "csv":
        frame.to_csv(tmp_path / "a.csv", index=False)
    table = open_table(frame if form == "frame" else tmp_path / "a.csv")
    assert table.schema.field("c").type == pa.float64()
    np.testing.assert_allclose(rows(table)["c"], values, rtol=1e-15)


TEXTS = [
    ["A1", "A2"], ["5 kg", "6 kg"], ["1.2.3", "1.2.4"], ["10-20", "30-40"], ["$5", "5 %"],
    ["12 %", "0.12", "12 %", "0.5"], ["1,5,2", "2,5,1"], ["007", "0815"], ["+", "-"], ["12:30 h", "9:15 h"],
    ["1,5", "1.5"],     ["31.02.2023", "30.02.2023"],
]  # fmt: skip


@pytest.mark.parametrize("cells", TEXTS)
@pytest.mark.filterwarnings("ignore:.*taken as text")
def test_other_texts_stay_texts(cells):
    assert open_table(pa.table({"c": cells * 5})).schema.field("c").type == pa.string()


@pytest.mark.filterwarnings(NOTHING)
def test_whole_numbers_that_come_as_text_are_names():
    frame = pandas.DataFrame({"zip": ["80331", "10115"]})
    assert open_table(frame).schema.field("zip").type != pa.float64()


@pytest.mark.parametrize("word", ["-", "unknown", "k.A.", "\x00", "#DIV/0!", "see below"])
def test_a_few_other_cells_are_missing_and_named(tmp_path, word):
    ages = [str(age) for age in range(20, 60)]
    ages[6] = ages[30] = word
    path = written(tmp_path / "a.csv", "name,age\n" + "".join(f"x,{age}\n" for age in ages))
    with pytest.warns(
        UserWarning, match=r"'age': 2 cells are not a number.* in row 7, .* in row 31"
    ):
        table = open_table(path)
    found = rows(table)["age"]
    assert found[6] is found[30] is None
    assert found[7] == 27.0


def test_half_of_the_cells_may_be_words_for_missing_values():
    with pytest.warns(UserWarning, match="5 cells are not a number, .*'-' in row 1"):
        table = open_table(pa.table({"c": ["-", "1", "-", "2"] * 2 + ["-", "3"]}))
    assert rows(table)["c"][-1] == 3.0
    with pytest.warns(UserWarning, match="'c' is taken as text: 3 of its 10 cells"):
        table = open_table(pa.table({"c": ["low", "high", "none at all", *"1234567"]}))
    assert table.schema.field("c").type == pa.string()


def test_what_can_be_read_in_two_ways_is_said_and_settled(tmp_path):
    path = written(tmp_path / "a.csv", 'a,b\n"1,234",x\n"5,678",x\n')
    with pytest.warns(UserWarning, match="'1,234' is read as 1234, but could be 1.234"):
        assert rows(open_table(path))["a"] == [1234, 5678]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(open_table(path, decimal=","))["a"] == [1.234, 5.678]
        assert rows(open_table(path, thousands=","))["a"] == [1234, 5678]


def test_other_columns_tell_what_a_comma_means(tmp_path):
    path = written(tmp_path / "a.csv", "a;b;c\n1,234;0,5;1.250\n5,678;1,5;12\n")
    with pytest.warns(UserWarning, match="could be") as told:
        found = rows(open_table(path))
    assert found == {"a": [1.234, 5.678], "b": [0.5, 1.5], "c": [1250, 12]}
    assert any("'1.250' is read as 1250, but could be 1.25" in str(one.message) for one in told)


def test_points_before_decimals_stay_so_beside_commas(tmp_path):
    path = written(tmp_path / "a.csv", "a;b\n1,5;1.25\n2,5;7.5\n")
    assert rows(open_table(path)) == {"a": [1.5, 2.5], "b": [1.25, 7.5]}


DATES = {
    "%d.%m.%Y": ["31.12.2023", "1.2.2024"],
    "%m/%d/%Y": ["04/17/2023", "12/5/2023"],
    "%d/%m/%Y": ["17/04/2023", "05/12/2023"],
    "%Y/%m/%d": ["2023/04/17", "2023/12/05"],
    "%b %d, %Y": ["Apr 7, 2023", "Dec 31, 2023"],
    "%B %d, %Y": ["April 7, 2023", "May 31, 2023"],
    "%d-%b-%Y": ["07-Apr-2023", "31-dec-2023"],
    "%d.%m.%y": ["31.12.23", "1.2.24"],
    "%d.%m.%Y %H:%M": ["31.12.2023 14:05", "1.2.2024 9:30"],
    "%m/%d/%Y %I:%M %p": ["4/17/2023 2:05 PM", "12/31/2023 12:00 AM"],
}


@pytest.mark.parametrize(("pattern", "cells"), DATES.items())
@pytest.mark.filterwarnings(NOTHING)
def test_dates_in_any_notation_are_dates(pattern, cells):
    table = open_table(pa.table({"day": cells * 3}))
    expected = [datetime.datetime.strptime(cell, pattern) for cell in cells]
    assert rows(table)["day"][:2] == expected


def test_months_and_days_that_could_change_places_are_said(tmp_path):
    path = written(tmp_path / "a.csv", "day,n\n04/07/2023,1\n05/06/2023,2\n")
    with pytest.warns(UserWarning, match="read by %m/%d/%Y, but could be by %d/%m/%Y"):
        assert rows(open_table(path))["day"][0] == datetime.datetime(2023, 4, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = open_table(path, date_format="%d/%m/%Y")
    assert rows(table)["day"][0] == datetime.datetime(2023, 7, 4)
    semicolons = written(tmp_path / "b.csv", "day;n\n04/07/2023;1\n05/06/2023;1\n")
    with pytest.warns(UserWarning, match="read by %d/%m/%Y"):
        assert rows(open_table(semicolons))["day"][0] == datetime.datetime(2023, 7, 4)


def test_other_columns_tell_what_comes_first_in_a_date():
    days = {"sure": ["31/12/2023", "05/06/2023"], "doubtful": ["04/07/2023", "05/06/2023"]}
    with pytest.warns(UserWarning, match="'doubtful': its dates are read by %d/%m/%Y"):
        found = rows(open_table(pa.table(days)))
    assert found["doubtful"][0] == datetime.datetime(2023, 7, 4)


TRAILING = {
    "rows": "a,b,c\n1,2.5,x\n,3.5,y\n4,,z\n".replace("\n", ",\n").replace("c,\n", "c\n"),
    "rows in quotes": 'a;b;c\n1;2.5;"x";\n;3.5;"y";\n4;;"z";\n',
    "header": "a,b,c,\n1,2.5,x\n,3.5,y\n4,,z\n",
    "comments before": "# by hand\na,b,c\n1,2.5,x,\n,3.5,y,\n4,,z,\n",
}


@pytest.mark.parametrize("text", TRAILING.values(), ids=TRAILING)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.filterwarnings(NOTHING)
def test_a_separator_after_the_last_field_is_no_field(tmp_path, text, encoding):
    table = open_table(written(tmp_path / "a.csv", text, encoding))
    assert rows(table) == {"a": [1, None, 4], "b": [2.5, 3.5, None], "c": ["x", "y", "z"]}
    (batch,) = table.batches(["c", "a"])
    assert batch.to_pydict() == {"c": ["x", "y", "z"], "a": [1, None, 4]}
    again = open_table_as(tmp_path / "a.csv", {"a": pa.float64()}, table.reading)
    assert rows(again)["a"] == [1, None, 4]


def test_something_after_such_a_separator_is_an_error(tmp_path):
    text = "a,b\n" + "1,2,\n" * 40
    path = written(tmp_path / "a.csv", text + "3,4,5\n")
    with pytest.raises(
        TableError, match=r"'after the last separator', line 42: expected nothing; got '5'"
    ):
        open_table(path)
    with pytest.raises(TableError, match=r"2 fields"):
        open_table(written(tmp_path / "b.csv", text + "3,4\n"))


def test_names_of_rows_without_a_header_are_no_such_thing(tmp_path):
    path = written(tmp_path / "a.csv", "a,b\nx,1,2\ny,3,4\n")
    with pytest.raises(TableError, match=r"has 3 fields, the header has 2"):
        open_table(path)


GERMAN = (
    "Gr\u00f6\u00dfe;Preis;Stra\u00dfe\n1,5;1.000,00 \u20ac;M\u00fchlweg\n2,5;7,50 \u20ac;Am Bach\n"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.filterwarnings("ignore:.*is read as cp1252")
def test_exports_of_a_european_spreadsheet_are_read(tmp_path, encoding, compressed):
    text = GERMAN.encode(encoding)
    path = written(tmp_path / "a.csv", gzip.compress(text) if compressed else text)
    expected = {
        "Gr\u00f6\u00dfe": [1.5, 2.5],
        "Preis": [1000, 7.5],
        "Stra\u00dfe": ["M\u00fchlweg", "Am Bach"],
    }
    assert rows(open_table(path)) == expected


def test_another_encoding_than_utf8_is_said_far_down_the_file_too(tmp_path):
    path = written(tmp_path / "a.csv", b"a,b\n" + b"1,x\n" * 40_000 + b"1,\xe9\n")
    with pytest.warns(UserWarning, match="not in UTF-8, and is read as cp1252"):
        table = open_table(path)
    assert rows(table)["b"][-1] == "\u00e9"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(open_table(path, encoding="cp1250"))["b"][-1] == "\u00e9"
    with pytest.raises(TableError, match=r"the text is not in utf-8\. Name its encoding"):
        open_table(path, encoding="utf-8")


HEADERS = {
    "pipes": ("a|b\n1|2\n", ["a", "b"]),
    "tabs after a byte order mark": ("\ufeffa\tb\n1\t2\n", ["a", "b"]),
    "semicolons after a byte order mark": ("\ufeffa;b\n1;2\n", ["a", "b"]),
    "quoted separators": ('a;"b, c, d"\n1;2\n', ["a", "b, c, d"]),
    "separators in names": ("size;price, EUR, net\n1;2\n3;4\n", ["size", "price, EUR, net"]),
    "line of the separator": ("sep=;\na;b,c\n1;2\n", ["a", "b,c"]),
    "comments": ("# made by hand\n#\n\na,b\n1,2\n# the end\n", ["a", "b"]),
    "number sign in the header": ("#a,b\n1,2\n", ["#a", "b"]),
    "empty columns at the end": ("a;b;;\n1;2;;\n", ["a", "b", "", "column 4"]),
}


@pytest.mark.parametrize(("text", "names"), HEADERS.values(), ids=HEADERS)
@pytest.mark.filterwarnings(NOTHING)
def test_headers_are_found(tmp_path, text, names):
    table = open_table(written(tmp_path / "a.csv", text))
    assert table.schema.names == names
    values = rows(table)
    assert (values[names[0]][0], values[names[1]][0], table.n_rows) == (
        1,
        2,
        text.count("\n1") + text.count("\n3"),
    )


def test_one_column_of_decimal_commas(tmp_path):
    assert rows(open_table(written(tmp_path / "a.csv", "a\n1,5\n2,5\n"))) == {"a": [1.5, 2.5]}


def test_a_separator_that_is_said_is_taken(tmp_path):
    path = written(tmp_path / "a.csv", "a,b;c\n1,2;3\n4,5;6\n")
    assert open_table(path, sep=";").schema.names == ["a,b", "c"]
    assert open_table(path, sep=",").schema.names == ["a", "b;c"]


def test_columns_of_one_name_are_renamed(tmp_path):
    path = written(tmp_path / "a.csv", "a,b,a\n1,2,3\n")
    with pytest.warns(UserWarning, match=r"renamed: 'a' to 'a \(2\)'"):
        assert rows(open_table(path)) == {"a": [1], "b": [2], "a (2)": [3]}


def test_words_for_missing_values_can_be_named(tmp_path):
    path = written(tmp_path / "a.csv", "a,b\n1,red\n-99,none\n3,blue\n")
    expected = {"a": [1, None, 3], "b": ["red", None, "blue"]}
    assert rows(open_table(path, na=["-99", "none"])) == expected
    assert (
        rows(open_table(pandas.read_csv(path, na_filter=False), na=["none"]))["b"] == expected["b"]
    )


def test_feather_files_are_read(tmp_path):
    pyarrow.feather.write_feather(pa.table({"a": [1, 2], "b": ["x", None]}), tmp_path / "a.feather")
    assert rows(open_table(tmp_path / "a.feather")) == {"a": [1, 2], "b": ["x", None]}


def test_a_workbook_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(TableError, match=r"an Excel workbook.*read_excel"):
        open_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"decimal": ";"}, "`decimal` must be a point or a comma; got ';'"),
        ({"thousands": ",", "decimal": ","}, "`thousands` must be"),
        ({"sep": ";;"}, "`sep` must be one character"),
        ({"encoding": "klingon"}, "`encoding` must be one that Python knows"),
        ({"encoding": "zip"}, "`encoding` must be one that Python knows"),
        ({"date_format": "dd.mm.yyyy"}, "a pattern such as '%d.%m.%Y'; got 'dd.mm.yyyy'"),
        ({"na": "unknown"}, "`na` must be a list of texts"),
    ],
)
def test_options_are_checked_before_the_file_is_read(asked, message):
    with pytest.raises(ValueError, match=message):
        open_table("no-such-file.csv", **asked)


def test_what_was_recognized_is_stored_and_applied(tmp_path):
    text = "price;day;age\n1.234,5;31.12.2023;34\n7,5;1.1.2024;-\n8;2.1.2024;36\n9;3.1.2024;37\n"
    with pytest.warns(UserWarning, match="'age': 1 cell"):
        table = open_table(written(tmp_path / "a.csv", text), na=["k.A."])
    encoder = Encoder.learn(pa.Table.from_batches(table.batches()), table.reading)
    assert encoder.reading.columns == {
        "price": Numbers(False, ",", "."),
        "day": Moments(False, "%d.%m.%Y"),
        "age": Numbers(True, ",", "."),
    }
    stored = encoder.to_json()
    again = Encoder.from_json(stored)
    assert again == encoder
    # Alone, these cells could be read in other ways.
    new = written(tmp_path / "b.csv", "price;day;age\n1.234;3.4.2023;unknown\nk.A.;4.4.2023;40\n")
    with pytest.warns(UserWarning, match="'age': 1 cell is .*'unknown' in row 1"):
        (batch,) = open_table_as(new, again.types, again.reading).batches()
    assert batch.column("price").to_pylist() == [1234, None]
    assert batch.column("day")[0].as_py() == datetime.datetime(2023, 4, 3)
    assert batch.column("age").to_pylist() == [None, 40]
    wrong = written(tmp_path / "c.csv", "price;day;age\n1;3.4.2023;1\nfree;4.4.2023;1\n")
    with pytest.raises(TableError, match=r"'price': expected a number.*got 'free' in row 2"):
        list(open_table_as(wrong, again.types, again.reading).batches())
    # Files from before there were notations have none.
    del stored["reading"]
    assert Encoder.from_json(stored).reading == Reading()


@pytest.mark.parametrize(
    "reading",
    [
        7,
        {"other": 1},
        {"decimal": 3},
        {"decimal": "x"},
        {"na": "x"},
        {"na": [1]},
        {"columns": []},
        {"columns": {"a": {"kind": "words"}}},
        {"columns": {"a": {"kind": "numbers"}}},
        {"columns": {"a": {"kind": "moments", "lenient": False, "pattern": "x"}}},
        {"columns": {"a": {"kind": "moments", "lenient": 1, "pattern": "%d"}}},
        {
            "columns": {
                "a": {"kind": "numbers", "lenient": True, "decimal": 1, "thousands": "", "unit": ""}
            }
        },
    ],
)
def test_damaged_readings_are_refused(reading):
    with pytest.raises(ValueError, match=r"must be|must have|lacks"):
        Reading.from_json(reading)
