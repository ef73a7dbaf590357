"""Text, numbers and tables as HTML; everything that comes from data is escaped here."""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any


def printable(text: Any) -> str:
    r"""Replace what cannot be printed, such as control characters, by spaces.

    Example:
        >>> from bochner.report.markup import printable
        >>> printable("two\nlines")
        'two lines'
    """
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


def escaped(text: Any) -> str:
    """Make any text harmless in HTML.

    Example:
        >>> from bochner.report.markup import escaped
        >>> escaped("<script>")
        '&lt;script&gt;'
    """
    return html.escape(printable(text))


def number(value: Any, digits: int = 4) -> str:
    """Write a number for reading: so many significant digits, thousands apart, a dash for none.

    Example:
        >>> from bochner.report.markup import number
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
        >>> from bochner.report.markup import percent
        >>> percent(0.915)
        '91.5%'
    """
    return f"{100 * share:.1f}%"


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    label: str,
    caption: str = "",
    text_columns: Iterable[int] = (0,),
    kind: str = "",
) -> str:
    """Build a table that scrolls within itself where the screen is narrow; cells must be escaped already.

    Args:
        head: titles of the columns.
        rows: cells; the first one of each row is its header.
        label: what the table shows, for those who cannot see it.
        caption: a line to show above the table.
        text_columns: columns of text; the others hold numbers and are aligned to the right.
        kind: class of the table, for the style.

    Example:
        >>> from bochner.report.markup import table
        >>> '<th scope="row">age</th>' in table(["input", "mean"], [["age", "48"]], label="Inputs")
        True
    """
    texts = set(text_columns)
    aligned = ["" if column in texts else ' class="number"' for column in range(len(head))]
    titles = "".join(
        f'<th scope="col"{style}>{title}</th>' for title, style in zip(head, aligned, strict=True)
    )
    lines = [
        f'<tr><th scope="row"{aligned[0]}>{row[0]}</th>'
        + "".join(
            f"<td{style}>{cell}</td>" for cell, style in zip(row[1:], aligned[1:], strict=True)
        )
        + "</tr>"
        for row in rows
    ]
    # The caption stays in sight when the table scrolls. What scrolls must be reachable by keyboard.
    return (
        (f'<p class="remark">{caption}</p>' if caption else "")
        + f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">'
        f'<table class="{kind}" aria-label="{label}"><thead><tr>{titles}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def section(name: str, title: str, content: str) -> str:
    """Build a section of the page with its heading; the content must be escaped already.

    Example:
        >>> from bochner.report.markup import section
        >>> section("data", "Data", "<p>No rows.</p>")[:22]
        '<section id="data" ari'
    """
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>\n'
        f"{content}</section>"
    )
