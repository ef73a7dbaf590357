"""Folds of rows in which groups stay together."""

import numpy as np
from jaxtyping import Int


def folds_of_groups(
    groups: Int[np.ndarray, " n"], n_folds: int, seed: int
) -> Int[np.ndarray, " n"]:
    """Give each row a fold, all rows of a group the same, folds of about equal size.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.folds import folds_of_groups
        >>> folds = folds_of_groups(np.array([0, 0, 1, 2, 3, 4]), 2, seed=0)
        >>> bool(folds[0] == folds[1]), np.bincount(folds).tolist()
        (True, [3, 3])
    """
    sizes = np.bincount(groups)
    n_folds = max(1, min(n_folds, len(sizes)))
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    loads, fold_of_group = np.zeros(n_folds, np.int64), np.zeros(len(sizes), np.int64)
    for group in order:
        fold = int(np.argmin(loads))
        fold_of_group[group] = fold
        loads[fold] += sizes[group]
    return fold_of_group[groups]
