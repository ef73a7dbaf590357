"""The encoding of a table's input columns as a matrix of numbers: learned once, stored, applied later."""

import dataclasses
import functools
import shlex
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bochner.tables.casting import Kind, TableError, convert, find_kind
from bochner.tables.columns import COLUMNS, AbstractColumn, Category
from bochner.tables.reading import Reading
from bochner.tables.targets import find_task, target_values

__all__ = ["Encoder", "find_task", "target_values"]

_BY_KIND = {column.kind: column for column in COLUMNS.values()}
_FEWEST_COUNTED = 20
_NAMES = {column: name for name, column in COLUMNS.items()}


@dataclasses.dataclass(frozen=True)
class Encoder:
    """Turns the rows of a table into a finite matrix of numbers.

    Numbers stay numbers, truth values become 0 and 1, text and categories are one-hot, dates become days and the parts
    of the calendar. Missing numbers become the median, and where the sample had missing values a further column tells
    which they are.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.encoding import Encoder
        >>> sample = pa.table({"age": [30, None, 50], "color": ["red", "blue", "red"]})
        >>> encoder = Encoder.learn(sample)
        >>> encoder.feature_names
        ['age', 'age is missing', 'color=blue', 'color=red']
        >>> encoder(pa.table({"color": ["red", "green"], "age": [None, 20]})).tolist()
        [[40.0, 1.0, 0.0, 1.0], [20.0, 0.0, 0.0, 0.0]]
        >>> Encoder.from_json(encoder.to_json()) == encoder
        True
    """

    columns: tuple[AbstractColumn, ...]
    dropped: tuple[str, ...] = ()
    reading: Reading = dataclasses.field(default_factory=Reading)

    @classmethod
    def learn(cls, sample: pa.Table, reading: Reading = Reading()) -> "Encoder":  # noqa: B008
        """Learn from a uniform sample of rows that has the input columns alone; `reading` says how it was read."""
        kinds = {field.name: find_kind(field.type) for field in sample.schema}
        unsupported = [field for field in sample.schema if kinds[field.name] is None]
        if unsupported:
            told = ", ".join(f"{field.name!r} ({field.type})" for field in unsupported)
            remedy = _ignored([field.name for field in unsupported])
            raise TableError(
                f"columns of these types cannot be used: {told}. Leave them out{remedy}."
            )
        if sample.num_rows == 0:
            raise TableError("the table has no rows. Check how it was read or filtered.")
        columns, empty, identifiers, constant, counts = [], [], [], [], []
        for name, kind in kinds.items():
            if kind is None or kind is Kind.NOTHING:
                empty.append(name)
                continue
            values = convert(sample.column(name), kind.value, place=f"column {name!r}")
            column = _BY_KIND[kind].learn(name, values)
            if column is None:
                identifiers.append(name)
                continue
            columns.append(column)
            if sample.num_rows > 1 and values.null_count == 0 and len(values.unique()) == 1:
                constant.append(name)
            if _counts_rows(values):
                counts.append(name)
        _warn(constant, "have one value in all rows, so that nothing can be learned from them")
        _warn(
            counts, f"count the rows. Where they measure nothing, leave them out{_ignored(counts)}"
        )
        _warn(identifiers, "are not used: nearly each row has its own text there")
        _warn(empty, "are not used: all values are missing")
        if not columns:
            raise TableError(
                f"no column is left to learn from (of {sample.num_columns}). Add columns with numbers, dates or "
                "categories."
            )
        return cls(tuple(columns), tuple(identifiers + empty), reading)

    def __call__(self, batch: pa.RecordBatch | pa.Table, row: int = 0) -> np.ndarray:
        """Encode rows; columns are found by name, in any order, and others are ignored.

        `row` is the number of rows before the batch, for messages.
        """
        known = set(batch.schema.names)  # made anew at each look
        missing = [name for name in self.input_names if name not in known]
        if missing:
            raise TableError(
                f"missing columns: {', '.join(map(repr, missing))}. The model was fitted with them; add them to the "
                "table, empty where nothing is known."
            )
        if batch.num_rows == 0:  # scikit-learn's parts refuse this
            return np.empty((0, len(self.feature_names)))
        return np.column_stack([column(batch.column(column.name), row) for column in self.columns])

    def gaps(self, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Tell encoded values that are missing where the sample lacked none, and rows that hold nothing at all.

        Example:
            >>> import pyarrow as pa
            >>> from bochner.tables.encoding import Encoder
            >>> encoder = Encoder.learn(pa.table({"a": [1.0, 3.0], "b": [None, 2.0]}))
            >>> encoder.feature_names
            ['a', 'b', 'b is missing']
            >>> gaps, is_empty = encoder.gaps(pa.record_batch({"a": pa.array([None, 5.0]), "b": [None, None]}))
            >>> gaps.tolist(), is_empty.tolist()
            ([[True, False, False], [False, False, False]], [True, False])
        """
        missing = [column.missing(batch.column(column.name)) for column in self.columns]
        gaps = [
            np.repeat((found & (not column.knows_missing))[:, None], len(column.feature_names), 1)
            for column, found in zip(self.columns, missing, strict=True)
        ]
        return np.concatenate(gaps, axis=1), np.all(missing, axis=0)

    @functools.cached_property
    def input_names(self) -> list[str]:
        """The columns that are needed."""
        return [column.name for column in self.columns]

    @functools.cached_property
    def types(self) -> dict[str, pa.DataType]:
        """The types to read the columns with, for `open_table`."""
        return {column.name: column.kind.value for column in self.columns}

    @functools.cached_property
    def feature_names(self) -> list[str]:
        """The names of the encoded columns."""
        return [name for column in self.columns for name in column.feature_names]

    @functools.cached_property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """The places of encoded columns that belong together: all dummies of a category, any other alone.

        Example:
            >>> import pyarrow as pa
            >>> from bochner.tables.encoding import Encoder
            >>> Encoder.learn(pa.table({"age": [30, 50], "color": ["red", "blue"]})).sources
            ((0,), (1, 2))
        """
        return tuple(places for own in self.sources_by_column for places in own)

    @functools.cached_property
    def coded(self) -> tuple[int, ...]:
        """The places of encoded columns that number the values of a category of many.

        Example:
            >>> import pyarrow as pa
            >>> from bochner.tables.encoding import Encoder
            >>> cities = pa.table({"age": range(60), "city": [f"city {i % 30}" for i in range(60)]})
            >>> encoder = Encoder.learn(cities)
            >>> [encoder.feature_names[place] for place in encoder.coded]
            ['city: number']
        """
        found = zip(self.columns, self.sources_by_column, strict=True)
        return tuple(own[0][-1] for one, own in found if isinstance(one, Category) and one.others)

    @functools.cached_property
    def sources_by_column(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The sources that each input column has become."""
        found, start = [], 0
        for column in self.columns:
            places = range(start, start + len(column.feature_names))
            own = [tuple(places)] if isinstance(column, Category) else [(p,) for p in places]
            found.append(tuple(one for one in own if one))
            start = places.stop
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Give all that was learned as plain values."""
        columns = [
            {"kind": _NAMES[type(column)], "name": column.name, **column.to_json()}
            for column in self.columns
        ]
        reading = self.reading.to_json()
        stored = {"columns": columns, "dropped": list(self.dropped)}
        return stored | ({"reading": reading} if reading else {})

    @classmethod
    def from_json(cls, stored: Any) -> "Encoder":
        """Make an encoder from plain values; `ValueError` where they are not what `to_json` gives."""
        try:
            if isinstance(stored, dict):  # files before there were notations lack it
                stored = {"reading": {}, **stored}
            _check_keys(stored, ["columns", "dropped", "reading"])
            if not isinstance(stored["columns"], list) or not stored["columns"]:
                raise ValueError("`columns` must be a list that is not empty.")
            if not isinstance(stored["dropped"], list):
                raise ValueError("`dropped` must be a list.")
            columns = tuple(_column_from_json(column) for column in stored["columns"])
            names = [column.name for column in columns] + stored["dropped"]
            _check_names(names)
            reading = Reading.from_json(stored["reading"])
        except ValueError as error:
            raise ValueError(f"the stored encoding of columns is damaged: {error}") from error
        return cls(columns, tuple(stored["dropped"]), reading)


def _column_from_json(stored: Any) -> AbstractColumn:
    if not isinstance(stored, dict) or not isinstance(stored.get("kind"), str):
        raise ValueError(f"a column must have a kind; got {_short(stored)}.")
    column = COLUMNS.get(stored["kind"])
    if column is None:
        raise ValueError(f"the kind of a column must be one of {', '.join(COLUMNS)}.")
    rest = {key: value for key, value in stored.items() if key not in ("kind", "name")}
    _check_names([stored.get("name")])
    try:
        made = column.from_json(stored["name"], rest)
    except KeyError as error:
        raise ValueError(f"column {stored['name']!r} lacks {error}.") from error
    _check_keys(rest, list(made.to_json()))
    return made


def _check_keys(stored: Any, keys: Sequence[str]) -> None:
    if not isinstance(stored, dict) or set(stored) != set(keys):
        raise ValueError(f"expected an object with {', '.join(keys)}; got {_short(stored)}.")


def _check_names(names: list[Any]) -> None:
    if not all(isinstance(name, str) for name in names):
        raise ValueError("the names of columns must be texts.")
    if len(set(names)) < len(names):
        raise ValueError("the names of columns must differ.")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _counts_rows(values: Any) -> bool:
    """Whether the values of a column are 0, 1, 2, ... or 1, 2, 3, ..."""
    n = len(values)
    if n < _FEWEST_COUNTED or values.type != pa.float64() or values.null_count:
        return False
    numbers = np.asarray(values.to_numpy())
    return numbers[0] in (0, 1) and bool(np.all(numbers == np.arange(n) + numbers[0]))


def _ignored(names: list[str]) -> str:
    return f": `{' '.join(f'--ignore {shlex.quote(name)}' for name in names)}`"


def _warn(names: list[str], what: str) -> None:
    if names:
        warnings.warn(
            f"The columns {', '.join(map(repr, names))} {what}.", UserWarning, stacklevel=3
        )
