"""What a deep model sees of a category of many values: mean targets of each, shrunken, and never with a row's own.

A column of the matrix numbers the values. Of a training row the fraction of this number says which fold it is in, and
so without whose targets its mean is to be; rows that are new have none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

_OF_ONE = 16  # folds, in whose fractions single precision loses nothing
_LEAST = 1e-300
_HALF = np.uint64(32)
_ODD = np.uint64(0x9E3779B97F4A7C15)  # whose multiples modulo 2**64 are spread evenly

Effects = Mapping[int, Float[np.ndarray, "folds values"]]
"""By column, the mean of each value: of all rows first, then without those of each fold."""


def in_folds(
    X: Float[np.ndarray, "n d"], columns: Sequence[int], folds: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n d"]:
    """Mark training rows by their folds.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.effects import in_folds
        >>> in_folds(np.array([[7.0], [7.0]]), [0], np.array([0, 1])).tolist()
        [[7.0625], [7.125]]
    """
    if np.max(folds, initial=0) >= _OF_ONE - 1:
        raise ValueError(f"there may be {_OF_ONE - 1} folds; got {np.max(folds) + 1}.")
    X = X.copy()
    for place in columns:
        X[:, place] = np.floor(X[:, place]) + (1 + folds) / _OF_ONE
    return X


def folds_by_place(places: Int[np.ndarray, " n"], n_folds: int) -> Int[np.ndarray, " n"]:
    """Give each row a fold by its place in a table that is read by parts, as if at random.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.effects import folds_by_place
        >>> bool((folds_by_place(np.arange(9), 5)[4:] == folds_by_place(np.arange(4, 9), 5)).all())
        True
    """
    mixed = places.astype(np.uint64)
    for _ in range(2):
        mixed = (mixed ^ (mixed >> _HALF)) * _ODD
    return ((mixed >> _HALF) * np.uint64(n_folds) >> _HALF).astype(np.int64)


def learn_effects(
    X: Float[np.ndarray, "n d"],
    columns: Sequence[int],
    targets: Float[np.ndarray, "n targets"],
    weights: Float[np.ndarray, " n"],
) -> Effects:
    """Compute the means by value of each column, shrunken toward that of all as in a random-effects model.

    The variances of effects and of what is beside them are those of the analysis of variance. Of several targets it is
    the combination in which values differ most.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.effects import learn_effects
        >>> X, y = np.array([[0.0], [0], [1], [1]]), np.array([[1.0], [1.2], [-1.2], [-1.0]])
        >>> learn_effects(X, [0], y, np.ones(4))[0].round(2).tolist()
        [[1.1, -1.1]]
    """
    return {place: _effects(X[:, place], targets, weights) for place in columns}


def _effects(numbers, targets, weights) -> Float[np.ndarray, "folds values"]:
    values, folds = _parts(numbers)
    n_values, n_folds = int(values.max(initial=0)) + 1, int(folds.max(initial=0))
    targets = targets - np.average(targets, axis=0, weights=weights)
    shape = (n_folds + 1, n_values)
    places = np.ravel_multi_index((folds, values), shape)

    def sums(of: Any) -> np.ndarray:
        return np.bincount(places, of, minlength=shape[0] * shape[1]).reshape(shape)

    counts = sums(weights)
    totals = np.stack([sums(weights * own) for own in targets.T], axis=-1)
    # Of all rows, and of all but those of each fold.
    counts = np.concatenate([counts.sum(axis=0)[None], counts.sum(axis=0) - counts[1:]])
    totals = np.concatenate([totals.sum(axis=0)[None], totals.sum(axis=0) - totals[1:]])
    ratio = _ratio(totals[0], counts[0], targets, weights)
    average = totals.sum(axis=1) / np.maximum(counts.sum(axis=1), _LEAST)[:, None]
    means = totals - counts[..., None] * average[:, None]
    means /= np.maximum(counts + ratio, _LEAST)[..., None]
    if means.shape[2] == 1:
        return means[..., 0]
    direction = np.linalg.svd(means[0] * np.sqrt(counts[0])[:, None], full_matrices=False)[2][0]
    return means @ (direction * np.sign(direction[np.argmax(np.abs(direction))]))


def _ratio(totals, counts, targets, weights) -> float:
    """Estimate the variance beside effects over that of effects, which is so many rows' worth of the mean of all."""
    known = counts > 0
    n, k = counts.sum(), int(known.sum())
    between = float(np.sum(totals[known] ** 2 / counts[known][:, None]))
    within = float(np.sum(weights[:, None] * targets**2)) - between
    noise = within / max(n - k, 1e-9 * n) if n > k else np.inf
    spread = (between - noise * (k - 1)) / max(n - float(np.sum(counts**2)) / n, 1e-9)
    return noise / spread if spread > 0 else np.inf


def with_effects(X: Any, effects: Effects, xp: Any) -> Any:
    """Put means in the place of numbers of values, by NumPy or by JAX; zero where a value is not known.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.effects import with_effects
        >>> means = {0: np.array([[1.0, -1.0], [0.5, -0.5]])}
        >>> with_effects(np.array([[0.0], [1.0625], [9.0], [np.nan]]), means, np).tolist()
        [[1.0], [-0.5], [0.0], [0.0]]
    """
    if not effects:
        return X
    columns = [X[:, place] for place in range(X.shape[1])]
    for place, table in effects.items():
        numbers = columns[place]
        is_known = (numbers >= 0) & (numbers < table.shape[1])
        values, folds = _parts(xp.where(is_known, numbers, 0), xp)
        folds = xp.where(folds < len(table), folds, 0)
        columns[place] = xp.where(is_known, xp.asarray(table)[folds, values], 0.0).astype(X.dtype)
    return xp.stack(columns, axis=1)


def _parts(numbers: Any, xp: Any = np) -> tuple[Any, Any]:
    """Take numbers apart: the value, and one more than the fold, zero where there is none."""
    values = xp.floor(numbers)
    return values.astype(int), xp.round((numbers - values) * _OF_ONE).astype(int)
