"""One finding of a report, and what several rules call chance or worth it."""

import dataclasses

STANDARD_ERRORS = 2.0
"""Deviations within this many standard errors count as chance."""
WORTHWHILE = 0.02
"""Gain in the log-likelihood of a row over a constant prediction, in nats, that is worth a model."""


@dataclasses.dataclass(frozen=True)
class Note:
    """One finding: what it is about, how it stands (`good`, `attention` or `info`), and a sentence or two.

    Example:
        >>> from bochner.report.note import Note
        >>> Note("Calibration", "good", "The intervals hold what they say.").verdict
        'good'
    """

    topic: str
    verdict: str
    text: str
