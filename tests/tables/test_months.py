"""Dates with names of months in several languages."""

import datetime

import pyarrow as pa
import pytest

from bochner.tables.notation import Moments
from bochner.tables.source import open_table, open_table_as
from tests.tables.test_written_by_people import NOTHING, rows

MONTHS = {
    "{d}. {m} {y}": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "{d:02}-{m}-{y}": "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "{d} {m} {y}": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "{d} {m}. {y}": "janv févr mars avr mai juin juil août sept oct nov déc",
    "{d} de {m} de {y}": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "{d} {m} {y} 1:05": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "{d}-{m}-{y} ": "gen feb mar apr mag giu lug ago set ott nov dic",
    "{d:02} {m} {y}": "JANUARI FEBRUARI MAART APRIL MEI JUNI JULI AUGUSTUS SEPTEMBER OKTOBER NOVEMBER DECEMBER",
    "{d:02} {m}. {y}": "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "{d} de {m} de {y} ": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    " {d}-{m}-{y}": "jan fev mar abr mai jun jul ago set out nov dez",
}  # fmt: skip
"""Of German, French, Spanish, Italian, Dutch and Portuguese calendars."""


@pytest.mark.parametrize(("form", "months"), MONTHS.items())
@pytest.mark.filterwarnings(NOTHING)
def test_months_may_have_their_names_in_other_languages(form, months):
    cells = [form.format(d=n + 3, m=name, y=2023) for n, name in enumerate(months.split())]
    table = open_table(pa.table({"day": cells * 2}))
    at = {"hour": 1, "minute": 5} if "1:05" in form else {}
    expected = [datetime.datetime(2023, n, n + 2, **at) for n in range(1, 13)]
    assert rows(table)["day"][:12] == expected
    again = open_table_as(pa.table({"day": cells}), {"day": pa.timestamp("us")}, table.reading)
    assert rows(again)["day"] == expected


@pytest.mark.filterwarnings(NOTHING)
def test_what_only_looks_like_a_month_is_no_date():
    cells = ["7 setter 2023", "3 marsh 2023", "8 maiden 2023", "4 outlaw 2023"]
    assert open_table(pa.table({"day": cells * 3})).schema.field("day").type == pa.string()


def test_the_first_of_a_month_in_french_is_one():
    texts = pa.array(["1er avril 2023", "2 avril 2023"])
    assert [one.day for one in Moments(False, "%d %B %Y").read(texts).to_pylist()] == [1, 2]
