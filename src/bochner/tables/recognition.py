"""Which columns of text hold numbers or dates that people wrote, and in which notation."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from bochner.tables.casting import compute, without_missing_words
from bochner.tables.notation import AbstractNotation, Moments, Numbers, parts_of_numbers
from bochner.tables.reading import Reading
from bochner.tables.unread import Unread

Batches = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Reads some columns of a table as text, from its start."""

_MOST_WRONG = 0.1
_STAND_INS = (
    "-", "--", "---", ".", "..", "k.a.", "k. a.", "n.a.", "n. a.", "n.d.", "n/d", "nd", "s/d", "none", "nil",
    "unknown", "unbekannt", "inconnu", "missing", "not available", "not applicable", "not known", "tbd", "na",
    "#div/0!", "#ref!", "#value!", "#wert!", "#num!", "#zahl!", "#name?", "#null!", "#nv", "#n/v", "#valeur!",
)  # fmt: skip
"""What people write where a value is not known, in small letters."""

_MARKS = ((".", ","), (".", ""), (".", " "), (".", "'"), (",", "."), (",", ""), (",", " "), (",", "'"))  # fmt: skip
_DATES = (
    "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d.%m.%Y", "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d",
    "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y",
    "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%y",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_FEWEST_DIFFERENT = 3
_LOOKED_AT, _TRIED = 100, 10


def recognized(
    batches: Batches, names: Sequence[str], asked: Reading, *, european: bool = False
) -> dict[str, AbstractNotation]:
    """Find the notations of those among some columns of text that hold numbers or dates, and warn of other cells.

    A column has a notation where it reads all cells but a tenth, words that stand for missing values not counted. Whole
    numbers without any mark are left as text: whoever hands in such numbers as text means names.

    Args:
        batches: reads the columns.
        names: of the columns.
        asked: what is known of notations.
        european: whether commas before decimals, and days before months, are more likely where both are possible.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.reading import Reading
        >>> from bochner.tables.recognition import recognized
        >>> batch = pa.record_batch({"price": ["1.234,56", "7,5"], "color": ["red", "blue"]})
        >>> found = recognized(lambda names: iter([batch.select(names)]), batch.schema.names, Reading())
        >>> found["price"].decimal, "color" in found
        (',', False)
    """
    columns = _seen(batches, names, asked)
    # What one column settles holds for the others, numbers and dates apart.
    likely: dict[type[AbstractNotation], bool] = {
        kind: _likely([column.settles(kind) for column in columns], european)
        for kind in (Numbers, Moments)
    }
    found = {}
    for column in columns:
        notation = column.notation(likely)
        if notation is None:
            column.warn_of_numbers()
        else:
            found[column.name] = notation
            column.warn_of_doubt(notation)
    _warn_of_others(batches, found)
    return found


def groups_alone(batches: Batches, names: Sequence[str]) -> dict[str, AbstractNotation]:
    """Find columns whose points all stand between groups of three digits, though they could stand before decimals.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.recognition import groups_alone
        >>> batch = pa.record_batch({"a": ["1.234", "12"], "b": ["1.234", "1.5"], "c": ["1", "2"]})
        >>> list(groups_alone(lambda names: iter([batch.select(names)]), batch.schema.names))
        ['a']
    """
    columns = _seen(batches, names, Reading(decimal=",", thousands="."))
    grouped = Numbers(lenient=False, decimal=",", thousands=".")
    found = [one for one in columns if one.candidates.get(grouped) == one.n_present > 0]
    found = [one for one in found if one.n_marked]
    for column in found:
        column.warn_of_doubt(grouped, [Numbers(lenient=False)])
    return {column.name: grouped for column in found}


def _seen(batches: Batches, names: Sequence[str], asked: Reading) -> list["_Column"]:
    columns = [_Column(name, asked) for name in names]
    for batch in batches(names) if names else ():
        for column in columns:
            column.add(batch.column(column.name))
        if not any(column.is_promising for column in columns):
            break
    return columns


class _Column:
    """Counts of the cells of one column of text, and of those that each notation reads."""

    def __init__(self, name: str, asked: Reading):
        self.name, self._asked = name, asked
        self.candidates: dict[AbstractNotation, int] = {}
        self.n_different = self.n_present = self.n_whole = self.n_marked = self.n_stand_ins = 0
        self.is_promising = True
        self._example: Any = None

    def add(self, texts: Any) -> None:
        """Count the cells of a batch."""
        counted = without_missing_words(texts).drop_null().value_counts()
        values, counts = counted.field("values"), counted.field("counts")
        if not self.is_promising or len(values) == 0:
            return
        parts = parts_of_numbers(values)
        stand_ins = compute.is_in(compute.utf8_lower(values), value_set=pa.array(_STAND_INS))
        if not self.n_present:
            meant = values.filter(compute.invert(stand_ins))
            self.n_different = len(meant)
            self.candidates = dict.fromkeys(self._possible(meant), 0)
        self.n_present += _total(counts, None)
        self.n_stand_ins += _total(counts, stand_ins)
        self.n_whole += _total(counts, _matches(values, "^(0|[1-9][0-9]*)$"))
        marked = _matches(parts["digits"], "[.,]")
        self.n_marked += _total(counts, marked)
        if self._example is None and self.n_marked:
            self._example = values.filter(marked)[0]
        for notation in self.candidates:
            read = (
                notation.of_parts(parts) if isinstance(notation, Numbers) else notation.read(values)
            )
            self.candidates[notation] += _total(counts, read.is_valid())
        self.is_promising = 2 * self._most >= self.n_present - self.n_stand_ins

    def _possible(self, values: Any) -> list[AbstractNotation]:
        """Give the notations of numbers with the unit of the first values, and those of dates that read them."""
        values = values.slice(0, _LOOKED_AT)
        if 2 * _n_true(_matches(values, "[0-9]")) < len(values):
            return []
        marks = [
            (decimal, thousands)
            for decimal, thousands in _MARKS
            if self._asked.decimal in (None, decimal) and self._asked.thousands in (None, thousands)
        ]
        unit = _unit_of(parts_of_numbers(values)["unit"])
        numbers = [Numbers(False, decimal, thousands, unit) for decimal, thousands in marks]
        patterns = [f"{date}{time}" for date in _DATES for time in _TIMES]
        if self._asked.date_format is not None:
            patterns = [self._asked.date_format]
        elif 2 * _n_true(_matches(values, "[0-9].*[-/., ].*[0-9]")) < len(values):
            patterns = []
        dates = [one for one in (Moments(False, own) for own in patterns) if _may_fit(one, values)]
        return [*numbers, *(one for one in dates if 2 * one.read(values).null_count <= len(values))]

    def settles(self, kind: type[AbstractNotation]) -> bool | None:
        """Whether all notations of a kind that read most cells are European, or all are not; None where both are."""
        best = [one for one in self._best if isinstance(one, kind)]
        if any(isinstance(one, Moments) and one.pattern[:2] not in ("%d", "%m") for one in best):
            return None
        is_european = {_is_european(one) for one in best}
        if len(is_european) != 1 or (kind is Numbers and not self.n_marked):
            return None
        return is_european.pop()

    def notation(self, likely: dict[type[AbstractNotation], bool]) -> AbstractNotation | None:
        """Give the notation to read the column by, if there is one; `likely` tells which kinds are European."""
        n_wrong = self.n_present - self._most
        n_others = n_wrong - self.n_stand_ins
        n_meant = self.n_present - self.n_stand_ins
        if (
            not self.is_promising
            or self._most < 2
            or (n_wrong and self.n_different < _FEWEST_DIFFERENT)
            or 2 * self.n_stand_ins > self.n_present
            or n_others > _MOST_WRONG * n_meant
        ):
            return None
        best = self._best
        if isinstance(best[0], Numbers) and self.n_whole == self.n_present:
            return None
        chosen = [one for one in best if _is_european(one) == likely[type(one)]] or best
        return dataclasses.replace(chosen[0], lenient=n_wrong > 0)

    @property
    def _most(self) -> int:
        return max(self.candidates.values(), default=0)

    @property
    def _best(self) -> list[AbstractNotation]:
        return [one for one, n in self.candidates.items() if n == self._most > 0]

    def warn_of_numbers(self) -> None:
        """Warn where a good part of a column that stays text are numbers or dates."""
        if self.is_promising and self.n_present > self._most > self.n_whole / 2:
            _warn(
                f"column {self.name!r} is taken as text: {self.n_present - self._most} of its {self.n_present} cells "
                f"cannot be read as {self._best[0].expected}. If they mean that nothing is known there, name them: "
                "`--na WORD`, in Python `open_table(path, na=[...])`."
            )

    def warn_of_doubt(
        self, notation: AbstractNotation, others: Sequence[AbstractNotation] | None = None
    ) -> None:
        """Warn where cells could be read in another way."""
        for other in self._best if others is None else others:
            if isinstance(notation, Moments) and isinstance(other, Moments):
                # Months in full and in short are the same months.
                if other.pattern.replace("%B", "%b") != notation.pattern.replace("%B", "%b"):
                    _warn(
                        f"column {self.name!r}: its dates are read by {notation.pattern}, but could be by "
                        f"{other.pattern}. `--date-format` settles it, in Python `open_table(path, date_format=...)`."
                    )
                    return
            elif isinstance(notation, Numbers) and isinstance(other, Numbers):
                if self._example is None or other.decimal == notation.decimal:
                    continue
                one = pa.array([self._example.as_py()])
                _warn(
                    f"column {self.name!r}: {self._example.as_py()!r} is read as {notation.read(one)[0].as_py():.15g}, "
                    f"but could be {other.read(one)[0].as_py():.15g}. `--decimal` settles it, in Python "
                    "`open_table(path, decimal=...)`."
                )
                return


def _warn_of_others(batches: Batches, found: dict[str, AbstractNotation]) -> None:
    """Warn of cells that their column's notation does not read, and that count as missing."""
    cells = [Unread(name, notation) for name, notation in found.items() if notation.lenient]
    first_row = 0
    for batch in batches([one.name for one in cells]) if cells else ():
        for one in cells:
            one.read(batch.column(one.name), first_row)
        first_row += batch.num_rows
    for one in cells:
        one.warn()


def _likely(settled: Sequence[bool | None], otherwise: bool) -> bool:
    """Take the side of most columns that settle it."""
    n_european, n_others = settled.count(True), settled.count(False)
    return otherwise if n_european == n_others else n_european > n_others


def _unit_of(units: Any) -> str:
    """Give the currency or percent sign that numbers have; a percent sign only where most have it."""
    counted = units.drop_null().value_counts()
    found = dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))
    bare = found.pop("", 0)
    unit = max(found, key=found.__getitem__, default="")
    return "" if unit == "%" and found[unit] < bare else unit


def _may_fit(moments: Moments, values: Any) -> bool:
    """Whether a pattern may fit any of the first values."""
    found = moments.parsed(moments.in_english(values.slice(0, _TRIED)))
    return found.null_count < len(found)


def _is_european(notation: AbstractNotation) -> bool:
    if isinstance(notation, Numbers):
        return notation.decimal == ","
    assert isinstance(notation, Moments)
    return notation.pattern.startswith("%d")


def _total(counts: Any, chosen: Any) -> int:
    """Sum counts where something holds."""
    return compute.sum(counts if chosen is None else counts.filter(chosen)).as_py() or 0


def _n_true(chosen: Any) -> int:
    return compute.sum(chosen).as_py() or 0


def _matches(values: Any, pattern: str) -> Any:
    return compute.match_substring_regex(values, pattern).fill_null(False)


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=4)
