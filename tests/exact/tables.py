"""Small tables for the tests."""

import numpy as np

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


def numbers(n: int, d: int, seed: int = 0) -> Rows:
    columns = list(np.random.default_rng(seed).normal(size=(d, n)))
    return Columns.learn(columns)(columns)
