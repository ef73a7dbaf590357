"""Texts and numbers for reading; escaping is for the templates."""

import math
from typing import Any


def printable(text: Any) -> str:
    r"""Replace what cannot be printed, such as control characters, by spaces.

    Example:
        >>> from bochner.report.texts import printable
        >>> printable("two\nlines")
        'two lines'
    """
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


def number(value: Any, digits: int = 4) -> str:
    """Write a number for reading: so many significant digits, thousands apart, a dash for none.

    Example:
        >>> from bochner.report.texts import number
        >>> number(1234.5678), number(0.012345), number(12.0), number(None), number(3e-9)
        ('1,235', '0.01235', '12', '—', '3.000e-09')
    """
    if value is None or isinstance(value, str):
        return "—" if value is None else value
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if not -4 <= exponent <= 9:
        return f"{value:.{digits - 1}e}"
    text = f"{value:,.{max(digits - 1 - exponent, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """Write a share in percent.

    Example:
        >>> from bochner.report.texts import percent
        >>> percent(0.915)
        '91.5%'
    """
    return f"{100 * share:.1f}%"
