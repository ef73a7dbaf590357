"""Writes a page to its file, whole or not at all."""

from pathlib import Path

from bochner.system.saving import replace_file


def write_report(path: str | Path, page: str) -> None:
    """Write a page to a file, so that at any moment the path holds a whole page or the old one.

    Args:
        path: where to write; missing folders are made.
        page: the page, as `report_page` gives it.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from bochner.report import write_report
        >>> path = Path(tempfile.mkdtemp()) / "report.html"
        >>> write_report(path, "<!doctype html>")
        >>> path.read_text()
        '<!doctype html>'
    """
    replace_file(Path(path), page.encode())
