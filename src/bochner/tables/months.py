"""Names of months in several languages, as dates that people write have them."""

import re
from typing import Any

from bochner.tables.casting import compute

_MONTHS = {
    "January": "januar jänner jän janvier janv enero ene gennaio gen januari janeiro",
    "February": "februar février févr fév febrero febbraio februari fevereiro fev",
    "March": "märz mär mrz mars marzo marz maart mrt março",
    "April": "avril avr abril abr aprile",
    "May": "mai mayo maggio mag mei maio",
    "June": "juni juin junio giugno giu junho",
    "July": "juli juillet juil julio luglio lug julho",
    "August": "août aout agosto ago augustus",
    "September": "septembre sept septiembre setiembre settembre sett setembro set",
    "October": "oktober okt octobre octubre ottobre ott outubro out",
    "November": "novembre noviembre novembro",
    "December": "dezember dez décembre déc diciembre dic dicembre dezembro",
}
"""In German, French, Spanish, Italian, Dutch and Portuguese, where they are not as in English."""

_BESIDE = {
    r"^([0-9]{1,2})(?:\.|er|º) ?([^0-9 ])": r"\1 \2",  # 7. April, 1er avril
    r"(?i)(^[0-9]{1,2}|[^0-9 .]{3}\.?) del? ([^ ])": r"\1 \2",  # 7 de abril de 2023
    r"([^0-9 .-]{3})\.([ -])": r"\1\2",  # 7 avr. 2023
}


def with_english_months(texts: Any, *, short: bool) -> Any:
    """Write months in English, in three letters or in full, and leave away what other languages put beside them.

    Example:
        >>> import pyarrow as pa
        >>> from bochner.tables.months import with_english_months
        >>> texts = pa.array(["7. März 2023", "7 de abril de 2023", "1er déc. 2023", "7-Dez-23", "March 7, 2023"])
        >>> with_english_months(texts, short=True).to_pylist()
        ['7 Mar 2023', '7 Apr 2023', '1 Dec 2023', '7-Dec-23', 'March 7, 2023']
    """
    for pattern, replacement in _BESIDE.items():
        texts = compute.replace_substring_regex(texts, pattern, replacement)
    for month, names in _MONTHS.items():
        texts = compute.replace_substring_regex(
            texts, _pattern(names), rf"\1{month[:3] if short else month}\2"
        )
    return texts


def _pattern(names: str) -> str:
    # Not by \b, which takes letters with accents for the end of a word.
    each = "|".join(sorted(map(re.escape, names.replace(".", "").split()), key=len, reverse=True))
    return rf"(?i)(^|[0-9 -])(?:{each})([0-9 ,-]|$)"
