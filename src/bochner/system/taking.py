"""Values taken from the JSON of a file, each checked before it is used."""

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from bochner.system.saving import ModelFileError


def taken(
    values: Mapping[str, Any],
    name: str,
    kind: Any,
    holds: Callable[[Any], bool] = lambda value: True,
    what: str = "",
) -> Any:
    """Take a value of the right type for which something holds.

    Example:
        >>> from bochner.system.taking import taken
        >>> taken({"n": -1}, "n", int, lambda n: n > 0, "above 0")
        Traceback (most recent call last):
        bochner.system.saving.ModelFileError: 'n' must be above 0; got -1.
    """
    if name not in values:
        raise ModelFileError(f"it lacks {name!r}.")
    value = values[name]
    # A bool is an int to Python, and no number to us.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ModelFileError(f"{name!r} has the wrong type: {reprlib.repr(value)}.")
    if not holds(value):
        raise ModelFileError(f"{name!r} must be {what}; got {reprlib.repr(value)}.")
    return value


def named(values: Any, names: set[str], what: str) -> dict[str, Any]:
    """Take an object that has exactly these names.

    Example:
        >>> from bochner.system.taking import named
        >>> named({"a": 1, "c": 2}, {"a", "b"}, "a pair")
        Traceback (most recent call last):
        bochner.system.saving.ModelFileError: a pair lacks or adds 'b', 'c'.
    """
    if not isinstance(values, dict):
        raise ModelFileError(f"{what} has the wrong type: {reprlib.repr(values)}.")
    if values.keys() != names:
        raise ModelFileError(f"{what} lacks or adds {listed(values.keys() ^ names)}.")
    return values


def listed(names: Any) -> str:
    """Name the first few of many."""
    first = sorted(map(str, names))[:5]
    return ", ".join(reprlib.repr(name) for name in first) + (", …" if len(names) > 5 else "")
