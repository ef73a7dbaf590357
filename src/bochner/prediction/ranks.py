"""The area under the receiver operating characteristic of a table that comes in parts."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

_MOST_VALUES = 2**16


@dataclasses.dataclass(frozen=True, eq=False)
class Ranked:
    """How many rows of a class, and how many others, have each value of its probability.

    Beyond 65,536 different values, neighbors are taken as one: the area then is off by 1e-4 at most.

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
    while len(distinct) > _MOST_VALUES:
        starts = np.arange(0, len(distinct), 2)
        distinct, total = distinct[starts], np.add.reduceat(total, starts, axis=1)
    return Ranked(distinct, total)


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
