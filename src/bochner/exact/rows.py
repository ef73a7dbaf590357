"""Rows of a table as kernels see them: standardized numbers, ranks and codes, and which column each came from."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which axis each feature belongs to. An axis has one lengthscale; a column has one axis, or two.

    The second is the indicator of a column that has missing values.

    Attributes:
        number_axes: the axis of each standardized number; a category has several numbers, one a value.
        rank_axes: the axis of each rank.
        code_axes: the axis of each code.
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


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Encoded rows of a table.

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

    numbers: Float[np.ndarray, "n numbers"]
    ranks: Float[np.ndarray, "n ranks"]
    codes: Int[np.ndarray, "n codes"]
    layout: Layout

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.numbers)

    def __getitem__(self, index: Any) -> "Rows":
        """Take some rows, by a slice or by an array."""
        return Rows(self.numbers[index], self.ranks[index], self.codes[index], self.layout)

    def of_columns(self, columns: Sequence[int] | None) -> "Rows":
        """Keep the features of some columns only; of all where None."""
        if columns is None:
            return self
        layout = self.layout
        kept = [axis for axis, column in enumerate(layout.columns) if column in columns]
        renamed = {axis: new for new, axis in enumerate(kept)}

        def chosen(axes: tuple[int, ...]) -> tuple[list[int], tuple[int, ...]]:
            places = [place for place, axis in enumerate(axes) if axis in renamed]
            return places, tuple(renamed[axes[place]] for place in places)

        numbers, number_axes = chosen(layout.number_axes)
        ranks, rank_axes = chosen(layout.rank_axes)
        codes, code_axes = chosen(layout.code_axes)
        of_axis = tuple(layout.columns[axis] for axis in kept)
        return Rows(
            self.numbers[:, numbers],
            self.ranks[:, ranks],
            self.codes[:, codes],
            Layout(number_axes, rank_axes, code_axes, of_axis),
        )

    def groups(self) -> Int[np.ndarray, " n"]:
        """Number the groups of rows that are equal in all columns."""
        if not self.layout.n_axes:
            return np.arange(len(self))  # equal rows that no column could tell apart
        together = np.hstack([self.numbers, self.ranks, self.codes])
        return np.unique(together, axis=0, return_inverse=True)[1].reshape(-1)
