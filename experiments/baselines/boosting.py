"""What the boosted trees share: which rows are held out to choose the number of trees and to measure the noise."""

from collections.abc import Callable, Iterable

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


def chosen_depth(
    depths: Iterable[int],
    n_rows: int,
    seed: int,
    losses_by_tree: Callable[[int, np.ndarray, np.ndarray], list[float]],
) -> tuple[int, int]:
    """Give the depth whose best mean loss on held-out rows is lowest, and the mean number of trees that it takes.

    `losses_by_tree` fits trees of a depth to some rows, and gives the loss of the held-out ones after each tree.

    Example:
        >>> from experiments.baselines.boosting import chosen_depth
        >>> chosen_depth((2, 3), 100, 0, lambda depth, kept, held_out: [9.0, 8.0 - depth, 7.0])
        (3, 2)
    """
    found = []
    for depth in depths:
        curves = [losses_by_tree(depth, *part) for part in validation_parts(n_rows, seed)]
        n_trees = round(float(np.mean([1 + int(np.argmin(curve)) for curve in curves])))
        found.append((np.mean([min(curve) for curve in curves]), depth, n_trees))
    _, depth, n_trees = min(found)
    return depth, n_trees
