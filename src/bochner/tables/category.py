"""Input columns of text and categories: indicators of frequent values, and numbers of all where they are many."""

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from bochner.tables.casting import Kind, compute, without_missing_words
from bochner.tables.column import AbstractColumn, truth

MOST_CATEGORIES = 25
"""Of a category, that have a column of their own or share the last one."""
MOST_NUMBERED = 10_000
"""Of a category, that have a number beside them."""
_IDENTIFIER_SHARE = 0.9


@dataclasses.dataclass(frozen=True)
class Category(AbstractColumn):
    """A column of text or categories, one-hot: frequent values, the rest as one, missing as its own.

    A value not seen at fit counts as one of the rest, and as none of all where there is no rest. Where there is, a
    further column numbers all values, for members that give each an effect: first those with columns of their own,
    then the others, and last the rarest together with values never seen, and missing ones.

    Attributes:
        name: of the column.
        values: those with a column of their own.
        has_rest: whether there are more.
        has_indicator: whether the sample had missing values.
        others: further values that have a number; none in files from before there were such.
    """

    name: str
    values: tuple[str, ...]
    has_rest: bool
    has_indicator: bool
    others: tuple[str, ...] = ()
    kind: ClassVar[Kind] = Kind.TEXT

    @classmethod
    def learn(cls, name: str, values: pa.ChunkedArray) -> "Category | None":  # noqa: D102
        values = without_missing_words(values)
        present = values.drop_null()
        n_distinct = len(present.unique())
        if n_distinct > MOST_CATEGORIES and n_distinct > _IDENTIFIER_SHARE * len(present):
            return None
        frequent, others = _frequent(present)
        return cls(name, frequent, bool(others), values.null_count > 0, others)

    @property
    def knows_missing(self) -> bool:  # noqa: D102
        return self.has_indicator

    @property
    def feature_names(self) -> list[str]:  # noqa: D102
        names = [f"{self.name}={value}" for value in self.values]
        rest = [f"{self.name} is another"] if self.has_rest else []
        missing = [f"{self.name} is missing"] if self.has_indicator else []
        return [*names, *rest, *missing, *([f"{self.name}: number"] if self.others else [])]

    def encode(self, values: Any) -> np.ndarray:  # noqa: D102
        values = without_missing_words(values)
        # Not OneHotEncoder, which looks up text by Python's dictionaries; through Arrow it takes a quarter of the time.
        found = compute.index_in(values, value_set=self._value_set)
        n_known = len(self.values) + len(self.others)
        number = found.fill_null(n_known).to_numpy()
        width = len(self.values) + self.has_rest + self.has_indicator
        nowhere = len(self.values) if self.has_rest else width  # one column more, left out below
        place = np.where(number < len(self.values), number, nowhere)
        if self.has_indicator:
            is_missing = np.asarray(values.is_null())
            place = np.where(is_missing, width - 1, place)
            number = np.where(is_missing, n_known + 1, number)
        encoded = np.zeros((len(values), width + 1))
        encoded[np.arange(len(values)), place] = 1.0
        if self.others:
            encoded[:, width] = number
        return encoded[:, : len(self.feature_names)]

    def each(self) -> np.ndarray:
        """Encode each value that has a column of its own, one that has none, and a missing one."""
        names = [*self.values, *["\0another"] * self.has_rest, *[None] * self.has_indicator]
        return self.encode(pa.array(names, pa.string()))

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {
            "values": list(self.values),
            "has_rest": self.has_rest,
            "has_indicator": self.has_indicator,
            **({"others": list(self.others)} if self.others else {}),
        }

    @classmethod
    def from_json(cls, name: str, stored: dict[str, Any]) -> "Category":  # noqa: D102
        values, others = stored["values"], stored.get("others", [])
        for own, most in ((values, MOST_CATEGORIES), (others, MOST_NUMBERED)):
            if not isinstance(own, list) or not all(_is_text(value) for value in own):
                raise ValueError(f"`values` of column {name!r} must be a list of texts.")
            if len(own) > most:
                raise ValueError(f"`values` of column {name!r} must be at most {most} texts.")
        if len({*values, *others}) < len(values) + len(others):
            raise ValueError(f"`values` of column {name!r} must be different texts.")
        has_rest = truth(stored["has_rest"], "has_rest")
        if others and not has_rest:
            raise ValueError(f"`others` of column {name!r} are there without a rest.")
        has_indicator = truth(stored["has_indicator"], "has_indicator")
        return cls(name, tuple(values), has_rest, has_indicator, tuple(others))

    @functools.cached_property
    def _value_set(self) -> pa.Array:
        return pa.array([*self.values, *self.others], pa.string())


def _frequent(present: pa.ChunkedArray) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The values with a column of their own, in order, and others, the most frequent first."""
    counted = present.value_counts()
    values, counts = counted.field("values").to_pylist(), counted.field("counts").to_pylist()
    n_frequent = len(values) if len(values) <= MOST_CATEGORIES else MOST_CATEGORIES - 1
    by_count = sorted(zip(counts, values, strict=True), key=lambda one: (-one[0], one[1]))
    ranked = [value for _, value in by_count]
    others = ranked[n_frequent : n_frequent + MOST_NUMBERED]
    return tuple(sorted(ranked[:n_frequent])), tuple(others)


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:  # half of a surrogate pair, which Arrow cannot hold
        return False
