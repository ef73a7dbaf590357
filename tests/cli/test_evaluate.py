import json

import pytest

from bochner import load


@pytest.mark.parametrize(("name", "target"), [("prices", "price"), ("colors", "color")])
def test_each_group_has_its_own_metrics(call, linear, name, target):
    model, table = linear / f"{name}.bochner", linear / "new.csv"
    column = "color" if name == "prices" else "id"
    words = ["evaluate", model, table, "--groups", column]
    printed = json.loads(call(*words, "--json", "--quiet").stdout)["groups"]
    known = load(model).evaluate(table, target, groups=column)["groups"]
    assert list(printed) == sorted(known)
    for group, found in printed.items():
        told = {name: value for name, value in known[group].items() if value == value}
        assert {name: value for name, value in found.items() if value is not None} == pytest.approx(
            told, rel=1e-6
        )
    if name == "prices":
        assert "red: rows: " in " ".join(call(*words).stdout.split())


def test_an_unknown_column_of_groups_is_named(call, linear):
    words = ["evaluate", linear / "prices.bochner", linear / "new.csv", "--groups", "hue"]
    assert "has no column 'hue' of groups" in " ".join(call(*words, code=1).output.split())
