"""Progress of commands that read a table in one pass."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from bochner.system.terminal import PlainConsole

_SECONDS_BETWEEN_LINES = 5.0


def counted(batches: Iterable[tuple[Any, Any]], quiet: bool) -> Iterator[tuple[Any, Any]]:
    """Hand batches on, and say every few seconds how many rows went by.

    Example:
        >>> from bochner.cli.progress import counted
        >>> list(counted([([1, 2], None)], quiet=True))
        [([1, 2], None)]
    """
    console, n_rows, started = PlainConsole(stderr=True), 0, time.monotonic()
    last = started
    for first, second in batches:
        yield first, second
        n_rows += len(first)
        now = time.monotonic()
        if not quiet and now - last > _SECONDS_BETWEEN_LINES:
            last = now
            console.print(f"{n_rows:,} rows, {n_rows / (now - started):,.0f} a second", style="dim")
