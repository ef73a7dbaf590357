"""What the boosted trees share: which rows are held out to choose the number of trees and to measure the noise."""

import numpy as np

_ROWS_FOR_CROSS_VALIDATION = 10_000
_N_FOLDS = 5
_HELD_OUT_SHARE = 0.1


def validation_parts(n_rows: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Give pairs of rows to learn from and rows to hold out: five folds of a small table, a tenth of a large one.

    Example:
        >>> from experiments.baselines.boosting import validation_parts
        >>> [len(held_out) for _, held_out in validation_parts(100, seed=0)]
        [20, 20, 20, 20, 20]
        >>> [len(held_out) for _, held_out in validation_parts(50_000, seed=0)]
        [5000]
    """
    order = np.random.default_rng(seed).permutation(n_rows)
    if n_rows <= _ROWS_FOR_CROSS_VALIDATION:
        parts = np.array_split(order, _N_FOLDS)
    else:
        parts = [order[: int(_HELD_OUT_SHARE * n_rows)]]
    return [(np.setdiff1d(order, part), part) for part in parts]
