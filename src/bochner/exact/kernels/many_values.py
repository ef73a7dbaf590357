"""What covariances need to know of a category of many values: sums over equal values, and random signs of each."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.rows import MOST_VALUES


def sum_where_equal(G: Float[np.ndarray, "n n"], codes: Int[np.ndarray, " n"]) -> float:
    """Sum the entries of a matrix at pairs of rows that have the same code.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.kernels.many_values import sum_where_equal
        >>> float(sum_where_equal(np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]), np.array([0, 1, 0])))
        25.0
    """
    order = np.argsort(codes, kind="stable")
    _, starts, place = np.unique(codes[order], return_index=True, return_inverse=True)
    sums = np.add.reduceat(G[order], starts, axis=0)
    return float(sums[place, order].sum())


def draw_masks(rng: np.random.Generator, n: int) -> Int[np.ndarray, "1 n"]:
    """Draw which Walsh function each of n features has."""
    return rng.integers(0, MOST_VALUES + 1, size=(1, n), dtype=np.int32)


def walsh(codes: Any, masks: Any) -> Any:
    """Give the sign of each code in each feature: even or odd bits in common with a mask.

    For random masks the mean product of two codes' signs is one where they are equal, and else zero, and no table of
    all values is needed.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.kernels.many_values import walsh
        >>> walsh(np.array([0, 1, 3]), np.array([[1, 3]])).tolist()
        [[1, 1], [-1, -1], [-1, 1]]
    """
    bits = codes[:, None].astype(np.int32) & masks
    for step in (8, 4, 2, 1):
        bits = bits ^ (bits >> step)
    return 1 - 2 * (bits & 1)
