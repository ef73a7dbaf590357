"""The columns of a table that is one matrix of numbers, in which a category is several columns of dummies."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bochner.exact.columns import Category, Columns, ManyValues
from bochner.exact.rows import Layout, Rows
from bochner.system.saving import ModelFileError
from bochner.system.taking import named

REST = "rest"
"""The value of a category whose dummies are all zero."""


@dataclasses.dataclass(frozen=True)
class MatrixColumns:
    """The encoding of a matrix.

    Attributes:
        sources: the columns of the matrix that each column of the table is made of. One is a number; two or more are
            the dummies of a category, whose value is the place of the largest of them as text, or "rest" where all are
            zero. A number that is NaN is missing, and so is a category with a dummy that is.
        coded: those columns of the matrix that number the values of a category of many, each the last of its source,
            whose other columns are left aside.
        columns: the encoding of the table.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.matrix import MatrixColumns
        >>> X = np.array([[1.5, 1, 0], [2.0, 1, 0], [3.0, 0, 1], [4.0, 0, 1]])
        >>> columns = MatrixColumns.learn(X, [(0,), (1, 2)])
        >>> columns(np.array([[2.0, 0, 1], [9.0, 0, 0]])).codes.tolist()
        [[1], [2]]
        >>> MatrixColumns.from_json(columns.to_json(), n_columns=3)(X).numbers.shape
        (4, 4)
    """

    sources: tuple[tuple[int, ...], ...]
    columns: Columns
    coded: tuple[int, ...] = ()

    @classmethod
    def learn(
        cls,
        X: Float[np.ndarray, "n d"],
        sources: Sequence[Sequence[int]],
        coded: Sequence[int] = (),
    ) -> "MatrixColumns":
        """Learn from training rows."""
        kept = tuple(tuple(int(place) for place in source) for source in sources)
        of_many = [place for place, source in enumerate(kept) if source[-1] in coded]
        values = _values(np.asarray(X, np.float64), kept, coded)
        return cls(kept, Columns.learn(values, of_many), tuple(coded))

    def __call__(self, X: Float[np.ndarray, "n d"]) -> Rows:
        """Encode rows of the matrix."""
        X = np.asarray(X, np.float64)
        if not self.sources:  # the number of rows is not lost where no column says it
            empty = np.zeros((len(X), 0))
            return Rows(empty, empty, empty.astype(np.int64), self.columns([]).layout)
        return self.columns(_values(X, self.sources, self.coded))

    @property
    def layout(self) -> Layout:
        """The layout of the rows that it makes."""
        n_columns = 1 + max((place for source in self.sources for place in source), default=-1)
        return self(np.zeros((0, n_columns))).layout

    def to_json(self) -> dict[str, Any]:
        """Give what was learned as plain values."""
        stored = {
            "sources": [list(source) for source in self.sources],
            "columns": self.columns.to_json(),
        }
        return stored | ({"coded": list(self.coded)} if self.coded else {})

    @classmethod
    def from_json(cls, stored: Any, n_columns: int) -> "MatrixColumns":
        """Make the encoding of a matrix of so many columns from plain values, all of which are checked."""
        if isinstance(stored, dict):  # those without such columns lack it
            stored = {"coded": [], **stored}
        stored = named(stored, {"sources", "columns", "coded"}, "an encoding")
        sources, coded = stored["sources"], stored["coded"]
        if not isinstance(sources, list) or not all(
            isinstance(one, list) and one for one in sources
        ):
            raise ModelFileError("the sources of its columns are no lists of places.")
        places = [place for source in sources for place in source]
        if not all(type(place) is int and 0 <= place < n_columns for place in places):
            raise ModelFileError(f"the sources of its columns are not among {n_columns} columns.")
        if len(set(places)) < len(places):
            raise ModelFileError("two of its columns have the same source.")
        columns = Columns.from_json(stored["columns"])
        if len(columns.columns) != len(sources):
            raise ModelFileError(
                f"it has {len(sources)} sources for {len(columns.columns)} encoded columns."
            )
        of_many = [
            source[-1]
            for source, column in zip(sources, columns.columns, strict=True)
            if isinstance(column, ManyValues)
        ]
        if coded != of_many:
            raise ModelFileError("its columns of many values are not those that it says.")
        for source, column in zip(sources, columns.columns, strict=True):
            if source[-1] not in coded and (len(source) > 1) != isinstance(column, Category):
                raise ModelFileError("one of its columns is encoded as another type than it has.")
        return cls(tuple(map(tuple, sources)), columns, tuple(coded))


def _values(
    X: np.ndarray, sources: tuple[tuple[int, ...], ...], coded: Sequence[int]
) -> list[np.ndarray]:
    return [
        X[:, source[-1]]
        if len(source) == 1 or source[-1] in coded
        else _category(X[:, list(source)])
        for source in sources
    ]


def names_of_dummies(n: int) -> np.ndarray:
    """Give the values of a category of n dummies: their places, the rest, and a missing one."""
    return np.array([*map(str, range(n)), REST, None], dtype=object)


def _category(dummies: Float[np.ndarray, "n dummies"]) -> np.ndarray:
    names = names_of_dummies(dummies.shape[1])
    place = np.where(np.any(dummies != 0, axis=1), np.argmax(dummies, axis=1), len(names) - 2)
    return names[np.where(np.isnan(dummies).any(axis=1), len(names) - 1, place)]
