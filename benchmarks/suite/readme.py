"""The summary in the project's README, between two marks, so that it says what the records say."""

from collections.abc import Sequence
from pathlib import Path

_BEGIN = "<!-- From the records, by `python -m benchmarks suite --report`: -->\n"
_END = "<!-- to here. -->\n"
README = Path(__file__).resolve().parents[2] / "README.md"


def updated(text: str, lines: Sequence[str]) -> str:
    """Put lines in the place of those between the marks.

    Example:
        >>> from benchmarks.suite import readme
        >>> text = readme._BEGIN + "old\\n" + readme._END
        >>> readme.updated(text, ["new"]).splitlines()[1]
        'new'
    """
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"the README lacks one of the marks {_BEGIN!r} and {_END!r}.")
    body = "\n".join(lines).rstrip()
    return f"{before}{begin}{body}\n{end}{after}"


def write(lines: Sequence[str], path: Path = README) -> None:
    """Update the README."""
    path.write_text(updated(path.read_text(encoding="utf-8"), lines), encoding="utf-8")
