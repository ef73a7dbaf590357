"""Writes a page to its file, whole or not at all."""

import os
import uuid
from pathlib import Path


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
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
