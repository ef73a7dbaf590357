"""One class for each kind of input column: what is learned of it, and its encoding as numbers."""

import abc
import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from sklearn.impute import SimpleImputer

from bochner.tables.casting import Kind, compute
from bochner.tables.category import Category
from bochner.tables.column import AbstractColumn, check_finite, truth

_HOUR, _DAY = 3_600_000_000, 86_400_000_000  # microseconds
_WHEN_PARTS = ("time of day", "day of week", "day of year")


@dataclasses.dataclass(frozen=True)
class Imputation:
    """Puts medians in the place of missing values, and tells where it did if the sample had such."""

    medians: tuple[float, ...]
    has_indicator: bool

    @classmethod
    def learn(cls, matrix: np.ndarray) -> "Imputation":
        """Learn from a matrix in which NaN is missing, in whole rows."""
        with np.errstate(over="ignore"):
            imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(matrix)
        medians = np.asarray(imputer.statistics_)
        if not np.all(np.isfinite(medians)):  # the mean of two middle values can overflow
            medians = np.nanquantile(matrix, 0.5, axis=0, method="lower")
        return cls(tuple(medians.tolist()), bool(np.isnan(matrix[:, 0]).any()))

    @classmethod
    def from_json(cls, stored: dict[str, Any], n_medians: int) -> "Imputation":
        """Check and take the plain values."""
        medians, has_indicator = stored["medians"], stored["has_indicator"]
        if not isinstance(medians, list) or len(medians) != n_medians:
            raise ValueError(f"`medians` must be a list of {n_medians} numbers; got {medians!r}.")
        for median in medians:
            if type(median) not in (int, float) or not _is_finite(median):
                raise ValueError(f"a median must be a finite number; got {median!r}.")
        return cls(tuple(map(float, medians)), truth(has_indicator, "has_indicator"))

    def __call__(self, matrix: np.ndarray) -> np.ndarray:
        """Fill the matrix, and add the indicator."""
        with np.errstate(over="ignore"):  # in a sum by which scikit-learn looks for infinite values
            filled = np.asarray(self._imputer.transform(matrix))
        if not self.has_indicator:
            return filled
        # One for the whole column; scikit-learn's would be one for each of its parts.
        return np.column_stack([filled, np.isnan(matrix[:, 0])])

    def to_json(self) -> dict[str, Any]:
        """Give the plain values."""
        return {"medians": list(self.medians), "has_indicator": self.has_indicator}

    def indicator_name(self, name: str) -> list[str]:
        """The name of the indicator's column, where there is one."""
        return [f"{name} is missing"] if self.has_indicator else []

    @functools.cached_property
    def _imputer(self) -> SimpleImputer:
        # Fitted on its own result, so that plain numbers are all there is to store. Not by the median, which for
        # the largest numbers overflows even where all are the same.
        return SimpleImputer(strategy="most_frequent").fit(np.array([self.medians]))


@dataclasses.dataclass(frozen=True)
class AbstractMeasure(AbstractColumn):
    """A column that is one number a row, with missing ones imputed."""

    name: str
    imputation: Imputation
    unit: ClassVar[str] = ""

    @classmethod
    @abc.abstractmethod
    def measure(cls, values: Any) -> np.ndarray:
        """Give the values as a matrix of one column, NaN where missing."""

    @classmethod
    def learn(cls, name: str, values: pa.ChunkedArray) -> "AbstractMeasure":  # noqa: D102
        return cls(name, Imputation.learn(cls.measure(values)))

    @property
    def knows_missing(self) -> bool:  # noqa: D102
        return self.imputation.has_indicator

    @property
    def feature_names(self) -> list[str]:  # noqa: D102
        return [f"{self.name}{self.unit}", *self.imputation.indicator_name(self.name)]

    def encode(self, values: Any) -> np.ndarray:  # noqa: D102
        return self.imputation(self.measure(values))

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return self.imputation.to_json()

    @classmethod
    def from_json(cls, name: str, stored: dict[str, Any]) -> "AbstractMeasure":  # noqa: D102
        return cls(name, Imputation.from_json(stored, 1))


class Number(AbstractMeasure):
    """A column of numbers, as they are."""

    kind = Kind.NUMBER

    @classmethod
    def learn(cls, name: str, values: pa.ChunkedArray) -> "AbstractMeasure":  # noqa: D102
        check_finite(values, f"column {name!r}", 0)
        return super().learn(name, values)

    @classmethod
    def measure(cls, values: Any) -> np.ndarray:  # noqa: D102
        return _floats(values)


class Boolean(AbstractMeasure):
    """A column of truth values, as 0 and 1."""

    kind = Kind.BOOLEAN

    @classmethod
    def measure(cls, values: Any) -> np.ndarray:  # noqa: D102
        return _floats(values)


class Time(AbstractMeasure):
    """A column of times of day, in hours since midnight."""

    kind = Kind.TIME
    unit = ": hours"

    @classmethod
    def measure(cls, values: Any) -> np.ndarray:  # noqa: D102
        return _floats(values.cast(pa.int64())) / _HOUR


class Duration(AbstractMeasure):
    """A column of durations, in days."""

    kind = Kind.DURATION
    unit = ": days"

    @classmethod
    def measure(cls, values: Any) -> np.ndarray:  # noqa: D102
        return _floats(values.cast(pa.int64())) / _DAY


@dataclasses.dataclass(frozen=True)
class Moment(AbstractColumn):
    """A column of dates or time stamps: days since 1970 in UTC, and the parts of the calendar that vary.

    The parts are the time of day in hours, the day of the week (Monday is 0) and the day of the year (from 1).
    """

    name: str
    parts: tuple[str, ...]
    imputation: Imputation
    kind: ClassVar[Kind] = Kind.MOMENT

    @classmethod
    def learn(cls, name: str, values: pa.ChunkedArray) -> "Moment":  # noqa: D102
        matrix = _calendar(values)
        present = matrix[~np.isnan(matrix[:, 0])]
        varies = [len(np.unique(column)) > 1 for column in present.T]
        parts = [part for part, kept in zip(_WHEN_PARTS, varies[1:], strict=True) if kept]
        kept = [True, *varies[1:]]
        return cls(name, tuple(parts), Imputation.learn(matrix[:, kept]))

    @property
    def knows_missing(self) -> bool:  # noqa: D102
        return self.imputation.has_indicator

    @property
    def feature_names(self) -> list[str]:  # noqa: D102
        names = [f"{self.name}: {part}" for part in ("days", *self.parts)]
        return [*names, *self.imputation.indicator_name(self.name)]

    def encode(self, values: Any) -> np.ndarray:  # noqa: D102
        kept = [True, *(part in self.parts for part in _WHEN_PARTS)]
        return self.imputation(_calendar(values)[:, kept])

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"parts": list(self.parts), **self.imputation.to_json()}

    @classmethod
    def from_json(cls, name: str, stored: dict[str, Any]) -> "Moment":  # noqa: D102
        parts = stored["parts"]
        if not isinstance(parts, list) or parts != [part for part in _WHEN_PARTS if part in parts]:
            raise ValueError(
                f"`parts` must be some of {list(_WHEN_PARTS)}, in this order; got {parts!r}."
            )
        return cls(name, tuple(parts), Imputation.from_json(stored, 1 + len(parts)))


COLUMNS: dict[str, type[AbstractColumn]] = {
    "number": Number,
    "boolean": Boolean,
    "category": Category,
    "moment": Moment,
    "time": Time,
    "duration": Duration,
}
"""The kinds of columns, by the name used in model files."""


def _floats(values: Any) -> np.ndarray:
    """One column of float64, NaN where missing."""
    numbers = values.cast(pa.float64(), safe=False).fill_null(math.nan)
    return np.asarray(numbers.to_numpy(), np.float64).reshape(-1, 1)


def _calendar(moments: Any) -> np.ndarray:
    """Days since 1970, hours since midnight, day of the week and of the year; NaN where missing."""
    parts = [compute.day_of_week(moments), compute.day_of_year(moments)]
    micros = moments.cast(pa.int64())
    missing = _floats(micros)
    whole = np.asarray(micros.fill_null(0).to_numpy())
    hours = np.where(np.isnan(missing[:, 0]), np.nan, whole % _DAY / _HOUR)
    return np.column_stack([missing / _DAY, hours, *(_floats(part) for part in parts)])


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False
