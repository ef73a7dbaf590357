import json

import numpy as np
import pytest

from bochner.exact.columns import Category, Columns, Number
from tests.exact.tables import mixed_columns


def test_ranks_are_the_empirical_distribution_and_go_on_linearly():
    column = Number.learn(np.array([0.0, 1.0, 1.0, 4.0]))
    np.testing.assert_allclose(
        column.rank(np.array([0.0, 1.0, 4.0, 2.5])), [0.125, 0.5, 0.875, 0.6875]
    )
    slope = (0.875 - 0.125) / 4
    np.testing.assert_allclose(
        column.rank(np.array([-2.0, 5.0])), [0.125 - 2 * slope, 0.875 + slope]
    )


def test_many_values_are_ranked_by_few_knots():
    values = np.random.default_rng(100).normal(size=20_000)
    column = Number.learn(values)
    assert len(column.knots) <= 1024
    exact = (np.argsort(np.argsort(values)) + 0.5) / len(values)
    np.testing.assert_allclose(column.rank(values), exact, atol=2e-3)


def test_wild_values_do_not_shrink_the_others():
    values = np.random.default_rng(100).normal(size=1000)
    wild = np.append(values, 1e9)
    typical = np.std(Number.learn(wild).standardize(values))
    assert 0.9 < typical < 1.1
    assert 5 < Number.learn(wild).standardize(np.array([1e9]))[0] < 30


def test_largest_numbers_do_not_overflow():
    rows = Columns.learn([np.array([-1.7e308, 0.0, 1.7e308])])(
        [np.array([-1.7e308, 1e300, np.inf])]
    )
    assert np.isfinite(rows.numbers).all()
    assert np.isfinite(rows.ranks).all()


def test_missing_numbers_are_the_median_with_an_indicator():
    columns = Columns.learn([np.array([1.0, 2.0, 9.0, np.nan])])
    rows = columns([np.array([2.0, np.nan])])
    assert rows.codes[:, 0].tolist() == [0, 1]
    assert rows.ranks[0] == rows.ranks[1]
    assert rows.layout.columns == (0, 0)


@pytest.mark.parametrize(
    "values",
    [
        np.full(5, 3.0),
        np.full(5, np.nan),
        np.array(["a"] * 5),
        np.array(list("abcde")),
        np.array([None] * 5),
    ],
)
def test_columns_that_say_nothing_are_left_out(values):
    assert Columns.learn([values])([values]).layout.n_axes == 0


def test_rare_and_new_values_have_the_code_of_the_rest():
    column = Category.learn(["a", "a", "b", "b", "c"])
    assert column.code(["a", "b", "c", "new", None]).tolist() == [0, 1, 2, 2, 2]
    with_missing = Category.learn(["a", "a", None, float("nan")])
    assert with_missing.code(["a", None, "new"]).tolist() == [1, 0, 2]


def test_what_was_learned_survives_json():
    values = mixed_columns(50)
    columns = Columns.learn(values)
    again = Columns.from_json(json.loads(json.dumps(columns.to_json())))
    one, other = columns(values), again(values)
    for name in ("numbers", "ranks", "codes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.layout == other.layout


def test_another_number_of_columns_is_refused():
    with pytest.raises(ValueError, match="2 columns seen in training; got 1"):
        Columns.learn([np.arange(3.0), np.arange(3.0)])([np.arange(3.0)])


def test_equal_rows_are_one_group():
    x = np.array([1.0, 2.0, 1.0])
    groups = Columns.learn([x])([x]).groups()
    assert groups[0] == groups[2] != groups[1]


def test_columns_are_chosen_with_their_indicators():
    values = mixed_columns(30)
    rows = Columns.learn(values)(values)
    chosen = rows.of_columns([1, 3])
    assert chosen.layout.columns == (1, 1, 3)
    np.testing.assert_array_equal(chosen.ranks[:, 0], rows.ranks[:, 1])


PROGRAMS = {"program", "encode_program", "draws"}
"""Modules in JAX, which no other module needs."""


def test_nothing_that_fits_or_predicts_needs_jax():
    import ast
    from pathlib import Path

    import bochner

    for path in (Path(bochner.__file__).parent / "exact").rglob("*.py"):
        modules = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
        own = {module for module in modules if module.startswith("bochner")}
        assert all(module.startswith(("bochner.exact", "bochner.system")) for module in own), path
        if path.stem not in PROGRAMS:
            assert not any(module.split(".")[0] == "jax" for module in modules), path
            assert not any(module.split(".")[-1] in PROGRAMS for module in own), path
