"""Which members a fit has where nobody names any: by the size of the table, the cheapest first."""

from typing import Any

from bochner.fitting.kinds import Constant, Exact, Landmarks, Linear
from bochner.fitting.settings import Deep
from bochner.members.training import Training
from bochner.rows.scaling import like_pixels

MOST_EXACT = 2_000
"""Rows up to which inference is exact."""

_FEWEST_FOR_DEEP = 2_000
_MOST_AXES = 300
_MOST_FOR_LANDMARKS = 300_000

Named = tuple[tuple[str, Any], ...]


def simple_members() -> Named:
    """The members that others must be better than."""
    return ("constant", Constant()), ("linear", Linear())


def auto_members(training: Training) -> Named:
    """Choose kinds of members for a table.

    Models in the space of rows first, as they take seconds; deep ones where there are rows enough for what they find
    beyond. Pixels have too many columns for a lengthscale each.
    """
    n = len(training.rows)
    found = list(simple_members())
    images = like_pixels(training.rows.X) and training.task.classification
    few_axes = training.encoded.layout.n_axes <= _MOST_AXES
    if few_axes and not images:
        if n <= MOST_EXACT:
            found.append(("exact", Exact()))
        elif n <= _MOST_FOR_LANDMARKS:
            found.append(("landmarks", Landmarks()))
    if n >= _FEWEST_FOR_DEEP or len(found) == 2:
        found.append(("deep", Deep()))
    return tuple(found)
