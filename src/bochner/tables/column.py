"""What every kind of input column offers: learned from a sample, applied to batches, stored as plain values."""

import abc
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from bochner.tables.casting import Kind, TableError, compute, convert, without_missing_words


class AbstractColumn(abc.ABC):
    """An input column with what was learned of it."""

    kind: ClassVar[Kind]
    name: str

    @classmethod
    @abc.abstractmethod
    def learn(cls, name: str, values: pa.ChunkedArray) -> "AbstractColumn | None":
        """Learn from a sample of values of the kind's type; None where the column is of no use."""

    @property
    @abc.abstractmethod
    def feature_names(self) -> list[str]:
        """The names of the encoded columns."""

    @property
    @abc.abstractmethod
    def knows_missing(self) -> bool:
        """Whether the sample had missing values, so that the encoding tells them."""

    @abc.abstractmethod
    def encode(self, values: Any) -> np.ndarray:
        """Encode values of the kind's type as a finite matrix, one column a feature."""

    @abc.abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Give what was learned as plain values."""

    @classmethod
    @abc.abstractmethod
    def from_json(cls, name: str, stored: dict[str, Any]) -> "AbstractColumn":
        """Make the column from plain values; `ValueError` where they are not such."""

    def __call__(self, values: Any, row: int = 0) -> np.ndarray:
        """Encode values of any type that can be read as the kind of the column, after `row` rows."""
        place = f"column {self.name!r}"
        values = convert(values, self.kind.value, place=place, first_row=row)
        if self.kind is Kind.NUMBER:
            check_finite(values, place, row)
        return self.encode(values)

    def missing(self, values: Any) -> np.ndarray:
        """Tell which values are missing."""
        values = convert(values, self.kind.value, place=f"column {self.name!r}")
        if self.kind is Kind.TEXT:
            values = without_missing_words(values)
        found = compute.is_null(values, nan_is_null=True)
        return np.asarray(
            found.to_numpy(zero_copy_only=False)
            if isinstance(found, pa.Array)
            else found.to_numpy()
        )


def check_finite(numbers: Any, place: str, row: int) -> None:
    """Refuse infinite numbers, of which the message names the first."""
    infinite = compute.is_inf(numbers)
    if compute.any(infinite).as_py():
        n, first = compute.sum(infinite).as_py(), compute.index(infinite, True).as_py()
        raise TableError(
            f"{place} holds {n} infinite numbers, the first in row {row + first + 1}. Correct them, or leave the cells "
            "empty."
        )


def truth(value: Any, name: str) -> bool:
    """Take a stored truth value."""
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be true or false; got {value!r}.")
    return value
