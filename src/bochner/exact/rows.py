"""Rows of a table as kernels see them: standardized numbers, ranks and codes, and which column each came from."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

MOST_CODES = 64
"""Of one column, unless it is a category of many values."""
MOST_VALUES = 2**14 - 1
"""Of a category of many values, whose codes therefore have 14 bits."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which axis each feature belongs to. An axis has one lengthscale; a column has one axis, or two.

    The second is the indicator of a column that has missing values.

    Attributes:
        number_axes: the axis of each standardized number; a category has several numbers, one a value.
        rank_axes: the axis of each rank.
        code_axes: the axis of each code. A category of many values has a code alone, and no numbers.
        columns: the column of each axis, counted from zero.
    """

    number_axes: tuple[int, ...]
    rank_axes: tuple[int, ...]
    code_axes: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def n_axes(self) -> int:
        """Count the axes."""
        return len(self.columns)

    @property
    def of_many_values(self) -> tuple[int, ...]:
        """The places of codes of categories of many values."""
        numbers = {*self.number_axes}
        return tuple(place for place, axis in enumerate(self.code_axes) if axis not in numbers)

    @property
    def largest_codes(self) -> np.ndarray:
        """The largest code that each column of codes may have."""
        many = self.of_many_values
        places = range(len(self.code_axes))
        return np.array([MOST_VALUES if one in many else MOST_CODES - 1 for one in places], int)

    @property
    def type_of_codes(self) -> type[np.unsignedinteger]:
        """The type in which files hold codes."""
        return np.uint16 if self.of_many_values else np.uint8

    def of_columns(self, columns: Sequence[int | str]) -> tuple["Layout", list[np.ndarray]]:
        """Give the layout of some columns alone, and the places of their numbers, ranks and codes."""
        kept = [axis for axis, column in enumerate(self.columns) if column in columns]
        renamed = {axis: new for new, axis in enumerate(kept)}
        axes = (self.number_axes, self.rank_axes, self.code_axes)
        places = [[place for place, axis in enumerate(own) if axis in renamed] for own in axes]
        number_axes, rank_axes, code_axes = (
            tuple(renamed[own[place]] for place in found)
            for own, found in zip(axes, places, strict=True)
        )
        of_axis = tuple(self.columns[axis] for axis in kept)
        layout = Layout(number_axes, rank_axes, code_axes, of_axis)
        return layout, [np.array(found, np.int64) for found in places]


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Encoded rows of a table, in arrays of NumPy, or all of JAX.

    Attributes:
        numbers: standardized numbers, and categories as centered indicators, for smooth and linear kernels.
        ranks: positions of numbers in the training rows, in [0, 1] there, for rough kernels.
        codes: categories and indicators of missing values, as whole numbers.
        layout: the axis of each of these.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> rows = Columns.learn([np.array([3.0, 1.0, 2.0, 1.0])])([np.array([1.0, 3.0])])
        >>> rows.ranks.tolist(), len(rows[:1])
        ([[0.25], [0.875]], 1)
    """

    numbers: Float[Any, "n numbers"]
    ranks: Float[Any, "n ranks"]
    codes: Int[Any, "n codes"]
    layout: Layout

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.numbers)

    @property
    def xp(self) -> Any:
        """What computes with the arrays: NumPy, or that of JAX."""
        return self.numbers.__array_namespace__()

    def __getitem__(self, index: Any) -> "Rows":
        """Take some rows, by a slice or by an array."""
        return Rows(self.numbers[index], self.ranks[index], self.codes[index], self.layout)

    def of_columns(self, columns: Sequence[int | str] | None) -> "Rows":
        """Keep the features of some columns only; of all where None."""
        if columns is None:
            return self
        layout, (numbers, ranks, codes) = self.layout.of_columns(columns)
        return Rows(self.numbers[:, numbers], self.ranks[:, ranks], self.codes[:, codes], layout)

    @property
    def n_directions(self) -> int:
        """Count what a plane has a slope for: numbers, and values that rows have of categories of many."""
        many = [len(np.unique(self.codes[:, place])) for place in self.layout.of_many_values]
        return self.numbers.shape[1] + sum(many)

    def groups(self) -> Int[np.ndarray, " n"]:
        """Number the groups of rows that are equal in all columns."""
        if not self.layout.n_axes:
            return np.arange(len(self))  # equal rows that no column could tell apart
        together = np.hstack([self.numbers, self.ranks, self.codes])
        return np.unique(together, axis=0, return_inverse=True)[1].reshape(-1)
