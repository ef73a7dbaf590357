"""How the text of a table is to be read: what a user says of it, and what was recognized in its columns."""

import codecs
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bochner.tables.notation import AbstractNotation, Moments, Numbers, notation_from_json

OPTIONS = ("sep", "encoding", "decimal", "thousands", "date_format", "na")
"""What a user can say."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """How the text of a table is written; what is None is found in the table.

    Example:
        >>> from bochner.tables.reading import Reading
        >>> reading = Reading(decimal=",", na=("unknown",))
        >>> reading.to_json()
        {'decimal': ',', 'na': ['unknown']}
        >>> Reading.from_json(reading.to_json()) == reading
        True

    Attributes:
        sep: what separates the fields of a CSV file.
        encoding: of its text, by Python's names.
        decimal: mark before the decimals of numbers.
        thousands: mark between groups of their digits.
        date_format: pattern of dates, as of `strftime`.
        na: texts that mean that a value is missing, beside those that always do.
        columns: notations of columns of text that hold numbers or dates, by name.
    """

    sep: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    date_format: str | None = None
    na: tuple[str, ...] = ()
    columns: Mapping[str, AbstractNotation] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        _check_texts({name: getattr(self, name) for name in OPTIONS})
        if self.sep is not None and (len(self.sep.encode()) != 1 or self.sep in '"\n\r'):
            raise ValueError(f"`sep` must be one character, such as ';'; got {self.sep!r}.")
        if self.encoding is not None:
            _check_encoding(self.encoding)
        Numbers(False, self.decimal or _other(self.thousands), self.thousands or "")
        if self.date_format is not None:
            Moments(False, self.date_format)

    def for_columns(self, names: Sequence[str]) -> "Reading":
        """Give the same with the notations of some columns alone."""
        chosen = {name: self.columns[name] for name in names if name in self.columns}
        return dataclasses.replace(self, columns=chosen)

    def to_json(self) -> dict[str, Any]:
        """Give what is not left to be found, as plain values."""
        said = {name: getattr(self, name) for name in OPTIONS if getattr(self, name)}
        if self.na:
            said["na"] = list(self.na)
        columns = {name: notation.to_json() for name, notation in self.columns.items()}
        return said | ({"columns": columns} if columns else {})

    @classmethod
    def from_json(cls, stored: Any) -> "Reading":
        """Make it from plain values; `ValueError` where they are not what `to_json` gives."""
        if not isinstance(stored, dict) or not stored.keys() <= {*OPTIONS, "columns"}:
            raise ValueError("how a table is read must be an object of known options.")
        columns, words = stored.get("columns", {}), stored.get("na", [])
        if not isinstance(columns, dict) or not isinstance(words, list):
            raise ValueError("`columns` of a reading must be an object, and `na` a list.")
        _check_texts({name: value for name, value in stored.items() if name != "columns"})
        found = {name: notation_from_json(notation) for name, notation in columns.items()}
        return cls(**{**stored, "na": tuple(words), "columns": found})


def _check_texts(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        texts = value if name == "na" else [value]
        if not all(isinstance(text, str) or (text is None and name != "na") for text in texts):
            raise ValueError(f"`{name}` must be text; got {value!r}.")


def _other(thousands: str | None) -> str:
    return "," if thousands == "." else "."


def _check_encoding(encoding: str) -> None:
    try:
        text = codecs.lookup(encoding)._is_text_encoding
    except (LookupError, ValueError):
        text = False
    if not text:
        raise ValueError(
            f"`encoding` must be one that Python knows, such as utf-8 or latin-1; got {encoding!r}."
        )
