"""The columns of a table as its user calls them, and which encoded columns each has become."""

import dataclasses
import difflib
from collections.abc import Mapping

_MOST_LISTED = 20


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Input columns by place and by name.

    Attributes:
        places: numbers of the encoded columns of each input column; a date has become several.
        names: of the input columns; none where a matrix has no names.
        parts: the same for names of parts of columns, such as "day: time of day".

    Example:
        >>> from bochner.exact.kernels.inputs import Inputs
        >>> inputs = Inputs(((0,), (1, 2)), ("price", "day"), {"day: days": 1})
        >>> inputs.numbers("day"), inputs.numbers(0), inputs.numbers("day: days")
        ((1, 2), (0,), (1,))
        >>> inputs.numbers("days")
        Traceback (most recent call last):
        ValueError: there is no column 'days' for the kernel. Did you mean 'day'? The columns are 'price', 'day'.
    """

    places: tuple[tuple[int, ...], ...]
    names: tuple[str, ...] = ()
    parts: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def numbers(self, column: int | str) -> tuple[int, ...]:
        """Find the encoded columns of an input column."""
        found: tuple[int, ...] = ()
        if isinstance(column, int):
            found = self.places[column] if column < len(self.places) else ()
        elif column in self.names:
            found = self.places[self.names.index(column)]
        elif column in self.parts:
            found = (self.parts[column],)
        if not found:
            raise ValueError(f"there is no column {column!r} for the kernel. {self._hint(column)}")
        return found

    def _hint(self, column: int | str) -> str:
        if not self.names:
            return f"The columns have no names, but places from 0 to {len(self.places) - 1}."
        near = difflib.get_close_matches(str(column), [*self.names, *self.parts], n=1)
        listed = ", ".join(map(repr, self.names[:_MOST_LISTED]))
        more = len(self.names) - _MOST_LISTED
        guess = f"Did you mean {near[0]!r}? " if near else ""
        return f"{guess}The columns are {listed}" + (f" and {more} more." if more > 0 else ".")
