"""Cells that the notation of their column does not read: counted, named by row and value, and told."""

import warnings
from typing import Any

import numpy as np

from bochner.tables.casting import TableError, compute, shown, without_missing_words
from bochner.tables.notation import AbstractNotation

_NAMED = 3


class Unread:
    """The cells of one column that its notation does not read.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.notation import Numbers
        >>> from bochner.tables.unread import Unread
        >>> cells = Unread("age", Numbers(lenient=True))
        >>> cells.read(pa.array(["34", "unknown", None]), first_row=0).to_pylist(), cells.named
        ([34.0, None, None], ["'unknown' in row 2"])
    """

    def __init__(self, name: str, notation: AbstractNotation):
        self.name, self.notation = name, notation
        self.n_cells, self.named = 0, list[str]()

    def read(self, texts: Any, first_row: int) -> Any:
        """Give the values of a batch; where the notation is not lenient a cell that it does not read is an error."""
        values = self.notation.read(texts)
        others = compute.and_(values.is_null(), without_missing_words(texts).is_valid())
        n_others = compute.sum(others).as_py() or 0
        if not n_others:
            return values
        self.n_cells += n_others
        for row in np.flatnonzero(others.to_numpy(zero_copy_only=False))[
            : _NAMED - len(self.named)
        ]:
            self.named.append(f"{shown(texts[int(row)])} in row {first_row + int(row) + 1}")
        if not self.notation.lenient:
            raise TableError(
                f"column {self.name!r}: expected {self.notation.expected}, written as at the fit; got {self.named[0]}. "
                "Correct it, or leave the cell empty where the value is not known."
            )
        return values

    def warn(self) -> None:
        """Tell of the cells, where there are any."""
        if self.n_cells:
            more = ", …" if self.n_cells > len(self.named) else ""
            cells = "1 cell is" if self.n_cells == 1 else f"{self.n_cells} cells are"
            kind = self.notation.expected.removeprefix("a ")
            warnings.warn(
                f"column {self.name!r}: {cells} not a {kind}, and taken as missing: {', '.join(self.named)}{more}.",
                UserWarning,
                stacklevel=3,
            )
