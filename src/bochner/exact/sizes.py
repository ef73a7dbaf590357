"""Which of many rows are used for what."""

import dataclasses

import numpy as np
from jaxtyping import Int


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How many rows are used for what.

    Attributes:
        learned_from: rows of the exact model that gives the parameters.
        landmarks: at most, for regression.
        landmarks_of_classes: at most, for classification, where each class has a factorization of its own.
    """

    learned_from: int = 1000
    landmarks: int = 2000
    landmarks_of_classes: int = 1500


def whole_groups(
    groups: Int[np.ndarray, " n"], n: int, seed: int
) -> tuple[Int[np.ndarray, " some"], Int[np.ndarray, " rest"]]:
    """Choose groups at random until they have n rows or a few more; give these rows, and the others in random order.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.sizes import whole_groups
        >>> chosen, others = whole_groups(np.array([0, 0, 1, 1, 2]), 3, seed=0)
        >>> len(chosen), len(others)
        (4, 1)
    """
    rng = np.random.default_rng(seed + 1)
    sizes = np.bincount(groups)
    order = rng.permutation(len(sizes))
    taken = np.zeros(len(sizes), bool)
    taken[order[np.cumsum(sizes[order]) - sizes[order] < n]] = True
    inside = taken[groups]
    return np.flatnonzero(inside), rng.permutation(np.flatnonzero(~inside))
