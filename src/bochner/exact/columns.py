"""What a table's columns become for kernels: learned on training rows, kept as plain values."""

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.rows import MOST_VALUES, Layout, Rows
from bochner.system.saving import ModelFileError
from bochner.system.taking import named, taken

_KNEE = 5.0
_MOST_KNOTS = 1024
_MOST_VALUES = 40
_MOST_ROUNDS = 100
LARGEST = 1e150
"""Size of the largest number, whose square does not overflow."""


@dataclasses.dataclass(frozen=True)
class Number:
    """A column of numbers: its ranks, its standardized values, and whether a value is missing.

    The rank of a value is its place in the empirical distribution function of the training rows, in the middle of
    equal ones, linear between them and going on linearly beyond the ends. Values are standardized by mean and deviation
    without what lies beyond five deviations, and there they grow by their logarithm only. A missing value is the
    training median, and has an indicator of its own if training rows had such.
    """

    knots: Float[np.ndarray, " knots"]
    ranks: Float[np.ndarray, " knots"]
    center: float
    deviation: float
    median: float
    share_missing: float

    @classmethod
    def learn(cls, values: Float[np.ndarray, " n"]) -> "Number":
        """Learn from training values, NaN where missing."""
        values = _not_too_large(values)
        present = values[np.isfinite(values)]
        if not present.size:
            return cls(np.zeros(1), np.full(1, 0.5), 0.0, 0.0, 0.0, float(values.size > 0))
        filled = np.where(np.isfinite(values), values, np.median(present))
        knots, counts = np.unique(filled, return_counts=True)
        ranks = (np.cumsum(counts) - counts / 2) / len(filled)
        if len(knots) > _MOST_KNOTS:
            wanted = np.linspace(ranks[0], ranks[-1], _MOST_KNOTS)
            kept = np.unique(np.clip(np.searchsorted(ranks, wanted), 0, len(knots) - 1))
            knots, ranks = knots[kept], ranks[kept]
        center, deviation = _moments_without_tails(filled)
        share = 1 - len(present) / len(values)
        return cls(knots, ranks, center, deviation, float(np.median(present)), share)

    @property
    def varies(self) -> bool:
        """Whether training values differ."""
        return self.deviation > 0

    def rank(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Give the rank of each value."""
        filled, (low, high) = self._filled(values), self.knots[[0, -1]]
        slope = (self.ranks[-1] - self.ranks[0]) / (high - low)
        beyond = np.minimum(filled - low, 0) + np.maximum(filled - high, 0)
        # A wild value is at most ten ranges away, where all correlation is long gone.
        return np.interp(filled, self.knots, self.ranks) + np.clip(slope * beyond, -10, 10)

    def standardize(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Give the standardized values."""
        with np.errstate(over="ignore"):
            scaled = (self._filled(values) - self.center) / self.deviation
        scaled = np.clip(scaled, -LARGEST, LARGEST)
        return bent(scaled)

    def _filled(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return np.where(np.isfinite(values), _not_too_large(values), self.median)


@dataclasses.dataclass(frozen=True)
class Category:
    """A column of text: a code for each value that training rows have twice or more, at most 40 of them.

    All others have one code, that of the rest. A value never seen is one of the rest too: far from all that was seen,
    so that what is said of it is wide.
    """

    values: tuple[str, ...]
    shares: tuple[float, ...]

    @classmethod
    def learn(cls, values: Sequence[Any]) -> "Category":
        """Learn from training values; None and NaN are a value of their own."""
        texts = _texts(values)
        found, counts = np.unique(texts, return_counts=True)
        order = np.lexsort((found, -counts))[:_MOST_VALUES]
        kept = sorted(str(found[i]) for i in order if counts[i] >= 2)
        shares = tuple(float(np.mean(texts == value)) for value in kept)
        return cls(tuple(kept), (*shares, max(0.0, 1 - sum(shares)) if kept else 1.0))

    @property
    def varies(self) -> bool:
        """Whether training rows have more than one code."""
        return sum(share > 1e-9 for share in self.shares) > 1

    def code(self, values: Sequence[Any]) -> Int[np.ndarray, " n"]:
        """Give the code of each value; the last one is that of the rest."""
        places = {value: place for place, value in enumerate(self.values)}
        rest = len(self.values)
        return np.array([places.get(text, rest) for text in _texts(values).tolist()], np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class ManyValues:
    """A column of text with many values, given by whole numbers: a code for each that training rows have.

    All others have one code, which no training row has: far from all that was seen. Its kernels know nothing of it but
    which rows have the same value, for indicators of so many values would be as many numbers a row.

    Attributes:
        values: that training rows have, in order.
    """

    values: Int[np.ndarray, " values"]

    @classmethod
    def learn(cls, values: Float[np.ndarray, " n"]) -> "ManyValues":
        """Learn from training values."""
        found = np.unique(_numbers_of_values(values))
        return cls(found[found >= 0])

    @property
    def varies(self) -> bool:
        """Whether training rows have more than one code."""
        return len(self.values) > 1

    def code(self, values: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Give the code of each value; the last one is that of values never seen, and of what is no number."""
        numbers = _numbers_of_values(values)
        place = np.searchsorted(self.values, numbers)
        known = np.append(self.values, MOST_VALUES + 1)[place] == numbers
        return np.where(known, place, len(self.values))


def _numbers_of_values(values: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Take whole numbers as such, and what is none as -1."""
    known = (values >= 0) & (values <= MOST_VALUES)
    return np.where(known, values, -1).astype(np.int64)


def _texts(values: Sequence[Any]) -> np.ndarray:
    missing = "\0missing"  # no text of a table
    return np.array([missing if _is_missing(v) else str(v) for v in values], dtype=object).astype(
        str
    )


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _not_too_large(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Keep numbers in a range in which squares do not overflow; infinite ones count as missing."""
    return np.where(np.isfinite(values), np.clip(values, -LARGEST, LARGEST), np.nan)


def bent(scaled: Any, xp: Any = np) -> Any:
    """Let numbers beyond five grow by their logarithm only, by NumPy or by JAX."""
    beyond = xp.maximum(xp.abs(scaled) - _KNEE, 0)
    return xp.clip(scaled, -_KNEE, _KNEE) + xp.sign(scaled) * xp.log1p(beyond)


def unbent(bent: Any, xp: Any = np) -> Any:
    """Undo `bent`, up to the largest numbers."""
    beyond = xp.clip(xp.abs(bent) - _KNEE, 0, np.log(LARGEST))
    return xp.clip(bent, -_KNEE, _KNEE) + xp.sign(bent) * xp.expm1(beyond)


def _moments_without_tails(values: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Mean and deviation once values beyond five deviations are drawn in; deviation zero where all are equal."""
    low, high = float(values.min()), float(values.max())
    if not high - low > 1e-10 * max(abs(low), abs(high)):
        return low, 0.0
    drawn_in = values
    for _ in range(_MOST_ROUNDS):
        mean, deviation = drawn_in.mean(), drawn_in.std()
        nearer = np.clip(values, mean - _KNEE * deviation, mean + _KNEE * deviation)
        if np.array_equal(nearer, drawn_in):
            break
        drawn_in = nearer
    return float(drawn_in.mean()), float(drawn_in.std())


@dataclasses.dataclass(frozen=True)
class Columns:
    """The encoding of a whole table, given as one array a column.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> size, color = np.array([1.0, 2.0, np.nan, 4.0]), np.array(["red", "blue", "red", "blue"])
        >>> columns = Columns.learn([size, color])
        >>> rows = columns([np.array([2.0, np.nan]), np.array(["red", None], dtype=object)])
        >>> rows.codes.tolist()  # whether the size is missing, and the color: None was never seen
        [[0, 1], [1, 2]]
        >>> Columns.from_json(columns.to_json())([size, color]).numbers.shape
        (4, 5)
    """

    columns: tuple[Number | Category | ManyValues, ...]

    @classmethod
    def learn(cls, values: Sequence[Any], of_many_values: Collection[int] = ()) -> "Columns":
        """Learn from training rows: numbers as arrays with NaN where missing, text as arrays of objects.

        Columns of many values, of which the places are given, are whole numbers.
        """
        learned: list[Number | Category | ManyValues] = []
        for place, column in enumerate(values):
            array = np.asarray(column)
            if place in of_many_values:
                learned.append(ManyValues.learn(array))
            elif array.dtype.kind in "buif":
                learned.append(Number.learn(array.astype(np.float64)))
            else:
                learned.append(Category.learn(array.tolist()))
        return cls(tuple(learned))

    def __call__(self, values: Sequence[Any]) -> Rows:
        """Encode rows that have the same columns, in the same order."""
        if len(values) != len(self.columns):
            raise ValueError(
                f"`values` must be the {len(self.columns)} columns seen in training; got {len(values)}."
            )
        n = len(values[0]) if len(values) else 0
        numbers, ranks, codes = [], [], []
        axes: tuple[list[int], list[int], list[int]] = ([], [], [])
        of_axis: list[int] = []

        def add(place: int, own: list[Any], rank: Any = None, code: Any = None) -> None:
            axis = len(of_axis)
            of_axis.append(place)
            numbers.extend(own)
            axes[0].extend([axis] * len(own))
            if rank is not None:
                ranks.append(rank)
                axes[1].append(axis)
            if code is not None:
                codes.append(code)
                axes[2].append(axis)

        for place, (column, array) in enumerate(zip(self.columns, values, strict=True)):
            if isinstance(column, Category):
                if column.varies:
                    code = column.code(array)
                    indicators = [
                        (code == value) - share for value, share in enumerate(column.shares)
                    ]
                    add(place, indicators, code=code)
                continue
            array = np.asarray(array, np.float64)
            if isinstance(column, ManyValues):
                if column.varies:
                    add(place, [], code=column.code(array))
                continue
            if 0 < column.share_missing < 1:
                missing = ~np.isfinite(array)
                add(place, [missing - column.share_missing], code=missing.astype(np.int64))
            if column.varies:
                add(place, [column.standardize(array)], rank=column.rank(array))
        layout = Layout(tuple(axes[0]), tuple(axes[1]), tuple(axes[2]), tuple(of_axis))
        return Rows(
            _side_by_side(numbers, n, np.float64),
            _side_by_side(ranks, n, np.float64),
            _side_by_side(codes, n, np.int64),
            layout,
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Give what was learned as plain values."""
        return [
            {
                name: np.asarray(value, np.float64).tolist()
                if isinstance(value, np.ndarray)
                else list(value)
                if isinstance(value, tuple)
                else value
                for name, value in dataclasses.asdict(column).items()
            }
            for column in self.columns
        ]

    @classmethod
    def from_json(cls, stored: Any) -> "Columns":
        """Make the encoding from plain values, all of which are checked."""
        if not isinstance(stored, list):
            raise ModelFileError("its encoded columns are no list.")
        return cls(
            tuple(
                _number_from(one)
                if not (isinstance(one, dict) and "values" in one)
                else _category_from(one)
                if "shares" in one
                else _many_values_from(one)
                for one in stored
            )
        )


def _category_from(stored: dict[str, Any]) -> Category:
    named(stored, {"values", "shares"}, "an encoded category")
    values = taken(
        stored, "values", list, lambda v: len(v) <= _MOST_VALUES, f"{_MOST_VALUES} at most"
    )
    if not all(isinstance(value, str) for value in values) or len(set(values)) < len(values):
        raise ModelFileError("the values of a category are not texts, each once.")
    shares = _vector(stored, "shares", len(values) + 1)
    if not (np.min(shares) >= 0 and np.max(shares) <= 1):
        raise ModelFileError("the shares of a category are not between 0 and 1.")
    return Category(tuple(values), tuple(shares.tolist()))


def _many_values_from(stored: dict[str, Any]) -> ManyValues:
    named(stored, {"values"}, "an encoded column of many values")
    size = len(taken(stored, "values", list, lambda v: len(v) <= MOST_VALUES, "not too many"))
    values = _vector(stored, "values", size)
    if np.any(values != np.round(values)) or np.any(np.diff(values, prepend=-1) <= 0):
        raise ModelFileError("the values of a column of many are no whole numbers in order.")
    if np.max(values, initial=0) > MOST_VALUES:
        raise ModelFileError("the values of a column of many are too large.")
    return ManyValues(values.astype(np.int64))


def _number_from(stored: Any) -> Number:
    named(stored, {field.name for field in dataclasses.fields(Number)}, "an encoded number")
    size = len(taken(stored, "knots", list, lambda v: 0 < len(v) <= _MOST_KNOTS, "not too many"))
    knots, ranks = _vector(stored, "knots", size), _vector(stored, "ranks", size)
    bounds = {
        "center": (-LARGEST, LARGEST),
        "deviation": (0.0, 2 * LARGEST),
        "median": (-LARGEST, LARGEST),
        "share_missing": (0.0, 1.0),
    }
    others = {
        name: float(taken(stored, name, (int, float), lambda v: low <= v <= high, "in range"))  # noqa: B023
        for name, (low, high) in bounds.items()
    }
    if np.max(np.abs(knots)) > LARGEST or np.min(ranks) < 0 or np.max(ranks) > 1:
        raise ModelFileError("the knots of a number are out of range.")
    with np.errstate(over="ignore", divide="ignore"):
        slopes = np.diff(ranks) / np.diff(knots)
    if not (
        np.all(np.diff(knots) > 0) and np.all(np.diff(ranks) >= 0) and np.isfinite(slopes).all()
    ):
        raise ModelFileError("the knots of a number do not increase.")
    if others["deviation"] > 0 and size < 2:
        raise ModelFileError("a number that varies has one knot only.")
    return Number(knots, ranks, **others)


def _vector(stored: dict[str, Any], name: str, size: int) -> Float[np.ndarray, " size"]:
    values = taken(stored, name, list, lambda v: len(v) == size, f"{size} numbers")
    if not all(type(value) in (int, float) and abs(value) < np.inf for value in values):
        raise ModelFileError(f"{name!r} holds what is no finite number.")
    return np.array(values, np.float64)


def _side_by_side(columns: list[Any], n: int, dtype: Any) -> np.ndarray:
    # By rows in memory, for products of matrices differ in their last bits by the order in memory.
    return (
        np.ascontiguousarray(np.column_stack(columns), dtype)
        if columns
        else np.zeros((n, 0), dtype)
    )
