"""Points in time after which nothing dear is started."""

import math
import time

NEVER = math.inf
"""The deadline that does not come."""


def is_past(until: float) -> bool:
    """Tell whether a deadline, on the clock of `time.monotonic`, is reached.

    Example:
        >>> from bochner.exact.deadlines import NEVER, is_past
        >>> is_past(NEVER), is_past(0.0)
        (False, True)
    """
    return time.monotonic() >= until
