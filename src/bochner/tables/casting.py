"""What kind of values a column holds, and conversion to the type that a reader asks for."""

import enum
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.types as is_

MISSING_WORDS = (
    "", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
"""What counts as a missing value in text files."""

_WITH_ZONE = r"[0-9](Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_DATE_ALONE = r"^[^ T]*$"
# Arrow makes most of its functions at run time, out of sight of type checkers.
compute: Any = pyarrow.compute
_REMEDY = "Correct it, or leave the cell empty where the value is not known."


class TableError(ValueError):
    """A table that cannot be read or used: the message says where, what is wrong, and what to do.

    Example:
        >>> from bochner.tables.source import TableError, open_table
        >>> try:
        ...     open_table("no-such-file.csv")
        ... except TableError as error:
        ...     print(error)
        no-such-file.csv: there is no such file. Check the path.
    """


class Kind(enum.Enum):
    """The kinds of values that a column can hold, each with the Arrow type it is converted to."""

    NUMBER = pa.float64()
    BOOLEAN = pa.bool_()
    TEXT = pa.string()
    MOMENT = pa.timestamp("us")
    TIME = pa.time64("us")
    DURATION = pa.duration("us")
    NOTHING = pa.null()


def find_kind(type: pa.DataType) -> Kind | None:  # noqa: A002
    """Find the kind of values of an Arrow type; None where it is not supported, as lists are not.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.casting import find_kind
        >>> find_kind(pa.uint8()).name, find_kind(pa.date32()).name, find_kind(pa.list_(pa.int8()))
        ('NUMBER', 'MOMENT', None)
    """
    if isinstance(type, pa.BaseExtensionType):
        return find_kind(type.storage_type)
    if is_.is_run_end_encoded(type):
        return find_kind(type.value_type)
    if is_.is_dictionary(type):  # categories, whatever they are written with
        return Kind.TEXT if find_kind(type.value_type) else None
    for kind, tests in _TESTS.items():
        if any(test(type) for test in tests):
            return kind
    return None


_TESTS = {
    Kind.NUMBER: (is_.is_integer, is_.is_floating, is_.is_decimal),
    Kind.BOOLEAN: (is_.is_boolean,),
    Kind.TEXT: (
        is_.is_string, is_.is_large_string, is_.is_string_view,
        is_.is_binary, is_.is_large_binary, is_.is_binary_view, is_.is_fixed_size_binary,
    ),
    Kind.MOMENT: (is_.is_date, is_.is_timestamp),
    Kind.TIME: (is_.is_time,),
    Kind.DURATION: (is_.is_duration,),
    Kind.NOTHING: (is_.is_null,),
}  # fmt: skip


def convert(
    values: Any,
    type: pa.DataType,  # noqa: A002
    *,
    place: str,
    first_row: int = 0,
) -> Any:
    """Convert an Arrow array, or raise a `TableError` that names the place, the row and the value.

    Text becomes numbers, truth values or moments where it reads as such; anything becomes text. Numbers are never
    taken for moments, nor moments for numbers.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.casting import convert
        >>> convert(pa.array(["1.5", " 2", "?"]), pa.float64(), place="column 'a'").to_pylist()
        [1.5, 2.0, None]
    """
    if values.type == type:
        return values
    try:
        values = _decoded(values)
        return _cast(values, type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        row = _first_wrong(values, type)
        if row is None:
            raise TableError(f"{place}: {values.type} cannot be read as {type}.") from error
        raise TableError(
            f"{place}, row {first_row + row + 1}: expected {_describe(type)}; got {shown(values[row])}. {_REMEDY}"
        ) from error


def shown(value: Any) -> str:
    """Give a value for a message, cut short where it is long."""
    try:
        text = repr(value.as_py())
    except (ValueError, OverflowError):  # moments beyond Python's years
        return f"a {value.type} out of range"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _describe(type: pa.DataType) -> str:  # noqa: A002
    words = {
        Kind.NUMBER: "a number",
        Kind.BOOLEAN: "true or false",
        Kind.TEXT: "text in UTF-8",
        Kind.MOMENT: "a date or time stamp",
        Kind.TIME: "a time of day",
        Kind.DURATION: "a duration",
    }
    kind = find_kind(type)
    return words[kind] if kind in words else str(type)


def _decoded(values: Any) -> Any:
    """Undo the ways of storing values that the casts do not know."""
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.cast(values.type.storage_type)
    if is_.is_run_end_encoded(values.type):
        values = compute.run_end_decode(values)
    if is_.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if find_kind(values.type) is Kind.TEXT and values.type != pa.string():
        values = values.cast(pa.string())
    return values


def _cast(values: Any, type: pa.DataType) -> Any:  # noqa: A002
    source, target = find_kind(values.type), find_kind(type)
    if values.type == type:
        return values
    if source is Kind.TEXT and target is not Kind.TEXT:
        values = without_missing_words(values)
        if target is Kind.MOMENT:
            values, source = _moments(values), Kind.MOMENT
        elif target is Kind.TIME:  # Arrow has no such cast, but parses moments
            at_start = compute.binary_join_element_wise("1970-01-01", values, " ")
            values, source = _moments(at_start).cast(pa.time64("us")), Kind.TIME
    numeric = {source, target} <= {Kind.NUMBER, Kind.BOOLEAN}
    if not (source is target or numeric or Kind.TEXT in (source, target) or source is Kind.NOTHING):
        raise pa.ArrowInvalid(f"no conversion from {values.type} to {type}")
    exact = target is Kind.NUMBER and not is_.is_floating(type)
    options = compute.CastOptions(
        type,
        allow_int_overflow=not exact,
        allow_float_truncate=not exact,
        allow_decimal_truncate=not exact,
        allow_time_truncate=True,
    )
    return compute.cast(values, options=options)


def without_missing_words(texts: Any) -> Any:
    """Trim texts, and take the words for missing values as such.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.casting import without_missing_words
        >>> without_missing_words(pa.array([" a", "?", "", None])).to_pylist()
        ['a', None, None, None]
    """
    texts = compute.utf8_trim_whitespace(texts)
    missing = compute.is_in(texts, value_set=pa.array(MISSING_WORDS))
    return compute.if_else(missing, pa.scalar(None, pa.string()), texts)


def _moments(texts: Any) -> Any:
    """Parse moments with and without a time zone, to the microsecond, in UTC."""
    nothing = pa.scalar(None, pa.string())
    # Arrow refuses digits beyond the unit, and nanoseconds do not reach the year 9999.
    texts = compute.replace_substring_regex(texts, r"(\.[0-9]{6})[0-9]{1,3}", r"\1")
    zoned = compute.and_not(
        compute.match_substring_regex(texts, _WITH_ZONE),
        compute.match_substring_regex(texts, _DATE_ALONE),
    )
    parsed = compute.if_else(zoned, texts, nothing).cast(pa.timestamp("us", "UTC"))
    local = compute.if_else(zoned, nothing, texts).cast(pa.timestamp("us"))
    return compute.coalesce(parsed.cast(pa.timestamp("us")), local)


def _first_wrong(values: Any, type: pa.DataType) -> int | None:  # noqa: A002
    """Find the first value that cannot be converted, by halving."""
    first, last = 0, len(values)
    while last - first > 1:
        middle = (first + last) // 2
        if _fits(values.slice(first, middle - first), type):
            first = middle
        else:
            last = middle
    return first if last > first and not _fits(values.slice(first, 1), type) else None


def _fits(values: Any, type: pa.DataType) -> bool:  # noqa: A002
    try:
        _cast(values, type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True
