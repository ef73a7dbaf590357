"""How people write numbers and dates in the cells of a column, and what such cells mean."""

import abc
import dataclasses
import re
from typing import Any, ClassVar

import pyarrow as pa

from bochner.tables.casting import compute, without_missing_words
from bochner.tables.months import with_english_months

SEPARATORS_OF_THOUSANDS = ("", ",", ".", " ", "'")
_PERCENT = "%"
_CURRENCY = r"(?:[A-Z]{0,2}\$|€|£|¥|₹|₽|₩|₺|฿|EUR|USD|GBP|CHF|JPY|CAD|AUD|SEK|NOK|DKK|PLN|CZK|HUF|Fr\.|kr\.?|zł|Kč|Ft)"
_SPACES = "[ \u00a0\u202f\u2009]"
_NUMBER = (
    rf"^(?P<sign>[-+]?){_SPACES}*(?P<before>{_CURRENCY})?{_SPACES}*(?P<sign_inside>[-+]?)"
    r"(?P<digits>[.,]?[0-9](?:[0-9.,' ]*[0-9])?[.,]?)(?P<exponent>(?:[eE][-+]?[0-9]{1,3})?)"
    rf"{_SPACES}*(?P<after>{_CURRENCY}|%)?$"
)


_PARTS = ("sign", "before", "sign_inside", "digits", "exponent", "after")
_ALIKE = {r"^\((.*)\)$": r"-\1", "[\u2212\u2013]": "-", "\u2019": "'", _SPACES: " "}
"""Brackets of accountants and typographers' signs, and what stands for them."""


@dataclasses.dataclass(frozen=True)
class AbstractNotation(abc.ABC):
    """A way to write the values of a column as text.

    Attributes:
        lenient: whether cells that are written otherwise count as missing; without it they are an error.
    """

    lenient: bool
    name: ClassVar[str]
    type: ClassVar[pa.DataType]
    expected: ClassVar[str]

    @abc.abstractmethod
    def read(self, texts: Any) -> Any:
        """Give the values of texts; null where they are missing or written otherwise."""

    def to_json(self) -> dict[str, Any]:
        """Give the plain values."""
        return {"kind": self.name, **dataclasses.asdict(self)}


@dataclasses.dataclass(frozen=True)
class Numbers(AbstractNotation):
    """Numbers with their marks, the currency or percent sign that all share left away: `12 %` is 12.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.notation import Numbers
        >>> texts = pa.array(["1.234,56", "-7 ", "(3,5)", "1,5", "unknown"])
        >>> Numbers(False, decimal=",", thousands=".").read(texts).to_pylist()
        [1234.56, -7.0, -3.5, 1.5, None]

    Attributes:
        decimal: mark before the decimals.
        thousands: mark between groups of three digits; empty where there is none.
        unit: the sign left away.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    name: ClassVar[str] = "numbers"
    type: ClassVar[pa.DataType] = pa.float64()
    expected: ClassVar[str] = "a number"

    def __post_init__(self):
        if self.decimal not in (".", ","):
            raise ValueError(f"`decimal` must be a point or a comma; got {self.decimal!r}.")
        if self.thousands not in SEPARATORS_OF_THOUSANDS or self.thousands == self.decimal:
            raise ValueError(
                "`thousands` must be a comma, a point, a space, an apostrophe or nothing, and not the mark before "
                f"decimals; got {self.thousands!r}."
            )
        if not isinstance(self.unit, str) or len(self.unit) > 10:
            raise ValueError(f"`unit` must be a sign; got {self.unit!r}.")

    def read(self, texts: Any) -> Any:  # noqa: D102
        return self.of_parts(parts_of_numbers(without_missing_words(texts)))

    def of_parts(self, parts: Any) -> Any:
        """Give the numbers that texts mean, from their parts."""
        digits = parts["digits"]
        written = compute.match_substring_regex(digits, self._pattern)
        has_unit = compute.equal(parts["unit"], self.unit)
        if self.unit == _PERCENT:
            bare = compute.match_substring_regex(digits, r"^0+$")
        else:
            bare = compute.equal(parts["unit"], "")
        written = compute.and_(written, compute.or_(has_unit, bare))
        if self.thousands:
            digits = compute.replace_substring(digits, self.thousands, "")
        if self.decimal != ".":
            digits = compute.replace_substring(digits, self.decimal, ".")
        whole = compute.binary_join_element_wise(parts["sign"], digits, parts["exponent"], "")
        return compute.if_else(written, whole, pa.scalar(None, pa.string())).cast(pa.float64())

    @property
    def _pattern(self) -> str:
        decimals = rf"(?:\{self.decimal}[0-9]*)?"
        plain = rf"(?:0|[1-9][0-9]*){decimals}|\{self.decimal}[0-9]+"
        if not self.thousands:
            return f"^(?:{plain})$"
        # In India the groups before the last one have two digits.
        group = "[0-9]{2,3}" if self.thousands == "," else "[0-9]{3}"
        mark = rf"\{self.thousands}" if self.thousands == "." else self.thousands
        return rf"^(?:{plain}|[1-9][0-9]{{0,2}}(?:{mark}{group})*{mark}[0-9]{{3}}{decimals})$"


@dataclasses.dataclass(frozen=True)
class Moments(AbstractNotation):
    """Dates and time stamps written by a pattern of `strftime`; names of months may be in other languages.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.notation import Moments
        >>> texts = pa.array(["31.12.2023", "1.2.2024", "31.02.2024"])
        >>> [str(moment)[:10] for moment in Moments(False, "%d.%m.%Y").read(texts).to_pylist()]
        ['2023-12-31', '2024-02-01', 'None']

    Attributes:
        pattern: such as `%d.%m.%Y %H:%M`.
    """

    pattern: str = "%Y-%m-%d"
    name: ClassVar[str] = "moments"
    type: ClassVar[pa.DataType] = pa.timestamp("us")
    expected: ClassVar[str] = "a date or time stamp"

    def __post_init__(self):
        if (
            "%" not in self.pattern
            or len(self.pattern) > 100
            or not _reads_what_it_writes(self.pattern)
        ):
            raise ValueError(
                f"a format of dates must be a pattern such as '%d.%m.%Y'; got {self.pattern!r}."
            )

    def read(self, texts: Any) -> Any:  # noqa: D102
        texts = self.in_english(without_missing_words(texts))
        moments = self.parsed(texts)
        # The parser lets dates through that do not exist, as the 31st of February, and years of two digits.
        again = compute.strftime(moments, format=self.pattern)
        same = compute.equal(_padded(again), _padded(texts))
        if self.pattern.endswith("%y"):  # 1.2.3 is a version
            same = compute.and_(same, compute.match_substring_regex(texts, "[0-9]{2}$"))
        nothing = pa.scalar(None, moments.type)
        return compute.if_else(same, moments, nothing).cast(pa.timestamp("us"))

    def in_english(self, texts: Any) -> Any:
        """Write names of months as the pattern has them."""
        if not {"%b", "%B"} & {*re.findall("%.", self.pattern)}:
            return texts
        return with_english_months(texts, short="%b" in self.pattern)

    def parsed(self, texts: Any) -> Any:
        """Parse texts in English, by a look that lets more through than it should."""
        return compute.strptime(texts, format=self.pattern, unit="s", error_is_null=True)


NOTATIONS: dict[str, type[AbstractNotation]] = {"numbers": Numbers, "moments": Moments}
"""The kinds of notations, by the name used in model files."""


def notation_from_json(stored: Any) -> AbstractNotation:
    """Make a notation from plain values; `ValueError` where they are not such."""
    if not isinstance(stored, dict) or stored.get("kind") not in ("numbers", "moments"):
        raise ValueError(f"a notation must have a kind, one of {', '.join(NOTATIONS)}.")
    kind = NOTATIONS[stored["kind"]]
    rest = {name: value for name, value in stored.items() if name != "kind"}
    if rest.keys() != {field.name for field in dataclasses.fields(kind)}:
        raise ValueError(f"a notation of {kind.name} lacks or adds fields.")
    if not isinstance(rest["lenient"], bool):
        raise ValueError("`lenient` of a notation must be true or false.")
    if not all(isinstance(value, str) for name, value in rest.items() if name != "lenient"):
        raise ValueError("the marks of a notation must be texts.")
    return kind(**rest)


def parts_of_numbers(texts: Any) -> dict[str, Any]:
    """Take trimmed texts apart: `sign`, `digits` with their marks, `exponent`, `unit`; null where no number is.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.notation import parts_of_numbers
        >>> parts = parts_of_numbers(pa.array(["-1'200.5 EUR"]))
        >>> {name: values[0].as_py() for name, values in parts.items()}
        {'sign': '-', 'digits': "1'200.5", 'exponent': '', 'unit': 'EUR'}
    """
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    for pattern, replacement in _ALIKE.items():
        texts = compute.replace_substring_regex(texts, pattern, replacement)
    found = compute.extract_regex(texts, _NUMBER)
    part = {name: compute.struct_field(found, name) for name in _PARTS}
    twice = [
        compute.and_(compute.not_equal(part[one], ""), compute.not_equal(part[other], ""))
        for one, other in (("sign", "sign_inside"), ("before", "after"))
    ]
    wrong, nothing = compute.or_(*twice), pa.scalar(None, pa.string())
    sign = compute.binary_join_element_wise(part["sign"], part["sign_inside"], "")
    return {
        "sign": compute.replace_substring(sign, "+", ""),
        "digits": compute.if_else(wrong, nothing, part["digits"]),
        "exponent": part["exponent"],
        "unit": compute.binary_join_element_wise(part["before"], part["after"], ""),
    }


def _reads_what_it_writes(pattern: str) -> bool:
    moment = pa.array([1_000_000_000], pa.timestamp("s"))
    try:
        texts = compute.strftime(moment, format=pattern)
        return compute.strptime(texts, format=pattern, unit="s", error_is_null=True)[0].is_valid
    except pa.ArrowInvalid:
        return False


def _padded(texts: Any) -> Any:
    """Write numbers of one digit with two, and letters small."""
    return compute.utf8_lower(compute.replace_substring_regex(texts, r"\b([0-9])\b", r"0\1"))
