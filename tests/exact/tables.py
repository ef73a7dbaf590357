"""Small tables for the tests."""

import numpy as np
import pytest

from bochner.exact.columns import Columns
from bochner.exact.rows import Rows


def mixed_columns(n: int, seed: int = 0) -> list[np.ndarray]:
    """Numbers, numbers with missing ones, whole numbers, and text."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=n),
        np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n) ** 2),
        rng.integers(0, 4, n).astype(float),
        rng.choice(["red", "green", "blue"], n).astype(object),
    ]


def mixed_rows(n: int, seed: int = 0) -> Rows:
    columns = mixed_columns(n, seed)
    return Columns.learn(columns)(columns)


def rows_of_many_values(n: int, seed: int = 0) -> Rows:
    """A number, a category of many values given by whole numbers, and one of few."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n), rng.integers(0, 1000, n), rng.choice(["a", "b"], n)]
    columns[1][: n // 2] = columns[1][n // 2 : 2 * (n // 2)]  # so that there are equal ones
    return Columns.learn(columns, of_many_values=[1])(columns)


def numbers(n: int, d: int, seed: int = 0) -> Rows:
    columns = list(np.random.default_rng(seed).normal(size=(d, n)))
    return Columns.learn(columns)(columns)


ODD_TABLES = {
    "one row": lambda rng: ([rng.normal(size=1)], np.ones(1)),
    "two rows": lambda rng: ([rng.normal(size=2)], np.array([1.0, 2.0])),
    "three rows": lambda rng: ([rng.normal(size=3)], np.array([1.0, 2.0, 4.0])),
    "no column that varies": lambda rng: ([np.ones(20)], rng.normal(size=20)),
    "constant target": lambda rng: ([rng.normal(size=20)], np.full(20, 7.0)),
    "two values": lambda rng: ([rng.normal(size=40)], rng.integers(0, 2, 40).astype(float)),
    "collinear": lambda rng: ([np.arange(40.0)] * 5, np.arange(40.0)),
    "duplicates": lambda rng: ([np.repeat(np.arange(4.0), 20)], np.repeat(rng.normal(size=4), 20)),
    "duplicates that differ": lambda rng: ([np.repeat(np.arange(4.0), 20)], rng.normal(size=80)),
    "one input for all": lambda rng: ([np.append(np.ones(79), 2.0)], rng.normal(size=80)),
    "300 columns": lambda rng: (list(rng.normal(size=(300, 62))), rng.normal(size=62)),
    "huge": lambda rng: ([1e300 * rng.normal(size=30)], 1e100 * rng.normal(size=30)),
    "tiny": lambda rng: ([1e-300 * rng.normal(size=30)], 1e-100 * rng.normal(size=30)),
    "outlier": lambda rng: ([rng.normal(size=70)], np.append(rng.normal(size=69), 1e6)),
}
"""Columns and targets, in each of which something is to be expected least."""
every_odd_table = pytest.mark.parametrize("make", ODD_TABLES.values(), ids=ODD_TABLES)
