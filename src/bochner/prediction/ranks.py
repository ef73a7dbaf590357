"""The area under the receiver operating characteristic of a table that comes in parts."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

_MOST_VALUES = 2**16


@dataclasses.dataclass(frozen=True, eq=False)
class Ranked:
    """How many rows of a class, and how many others, have each value of its probability.

    Beyond 65,536 different values, neighbors that hold less than 1e-4 of the class and of the others are taken as one.
    Each time this moves the area by less than 1e-4. Where parts of a table come in the order of their values, all times
    together do; where they come in any other order, errors of either sign mostly cancel.

    Attributes:
        values: in ascending order.
        counts: of rows of the class, and of others.
    """

    values: Float[np.ndarray, " values"]
    counts: Int[np.ndarray, "2 values"]

    @classmethod
    def of(cls, own: np.ndarray, values: np.ndarray) -> "Ranked":
        """Count rows."""
        return _counted(values, np.stack([own, ~own]).astype(np.int64))

    def __add__(self, other: "Ranked") -> "Ranked":
        values = np.concatenate([self.values, other.values])
        return _counted(values, np.concatenate([self.counts, other.counts], axis=1))

    def area(self) -> float:
        """Compute the share of pairs in which the row of the class has more; NaN where there are no pairs."""
        own, others = self.counts
        n_pairs = int(own.sum()) * int(others.sum())
        below = np.cumsum(others) - others / 2
        return float(np.sum(own * below) / n_pairs) if n_pairs else float("nan")


def _counted(values: np.ndarray, counts: np.ndarray) -> Ranked:
    distinct, places = np.unique(values, return_inverse=True)
    total = np.stack([np.bincount(places, one, len(distinct)) for one in counts]).astype(np.int64)
    if len(distinct) > _MOST_VALUES:
        starts = _starts_of_cells(total)
        # The middle value stands for a cell, so that values which move time and again move both ways.
        ends = np.append(starts[1:], len(distinct))
        distinct, total = distinct[(starts + ends) // 2], np.add.reduceat(total, starts, axis=1)
    return Ranked(distinct, total)


def _starts_of_cells(counts: np.ndarray) -> np.ndarray:
    """Cut values into cells by how many rows of the class, and how many others, are below the middle of each.

    The two cuts together leave at most `_MOST_VALUES` cells. A cell of several values holds less than three parts in
    `n_parts` of either: one between the first and the last middle, and half of two values that hold less than two each.
    """
    n_parts = _MOST_VALUES // 2 - 1
    middles = np.cumsum(counts, axis=1) - counts / 2
    parts = np.floor(n_parts * middles / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    return np.flatnonzero(np.any(np.diff(parts, axis=1, prepend=-1) != 0, axis=0))


@dataclasses.dataclass(frozen=True, eq=False)
class RankedClasses:
    """Such counts for every class; those of parts of a table add up.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.ranks import RankedClasses
        >>> p = np.array([0.1, 0.4, 0.3, 0.8])
        >>> part = RankedClasses.of(np.array([0, 0, 1, 1]), np.column_stack([1 - p, p]))
        >>> part.auc(), (part + part).auc()
        (0.75, 0.75)
    """

    classes: tuple[Ranked, ...]

    @classmethod
    def of(
        cls, labels: Int[np.ndarray, " n"], probabilities: Float[np.ndarray, "n classes"]
    ) -> "RankedClasses":
        """Count rows."""
        return cls(tuple(Ranked.of(labels == k, one) for k, one in enumerate(probabilities.T)))

    def __add__(self, other: "RankedClasses") -> "RankedClasses":
        pairs = zip(self.classes, other.classes, strict=True)
        return RankedClasses(tuple(one + another for one, another in pairs))

    def auc(self) -> float:
        """Average the areas of the classes that some rows have and others have not; NaN where there are none."""
        areas = [one.area() for one in self.classes]
        known = [area for area in areas if not np.isnan(area)]
        return float(np.mean(known)) if known else float("nan")
