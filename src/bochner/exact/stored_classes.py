"""The plain values of a model of classes as JSON, and back."""

from typing import Any

import numpy as np
from jaxtyping import Float

from bochner.exact.classes import ClassPart
from bochner.exact.stored_arrays import numbers_from
from bochner.exact.stored_values import number_from
from bochner.system.saving import ModelFileError
from bochner.system.taking import taken

FIELDS_OF_CLASSES = {"name", "of", "functions", "offsets", "frequencies", "temperature", "strength"}
ADDED_LATER = {"strength": None}
"""What files of the same format may lack, with what its absence says."""


def values_to_json(part: ClassPart) -> dict[str, Any]:
    """Give frequencies, temperature and strength."""
    return {
        "frequencies": part.frequencies.tolist(),
        "temperature": float(part.temperature),
        "strength": None if part.strength is None else float(part.strength),
    }


def values_from_json(
    stored: dict[str, Any],
) -> tuple[Float[np.ndarray, " classes"], float, float | None]:
    """Take frequencies, temperature and strength, all of which are checked."""
    found = taken(stored, "frequencies", list, lambda v: len(v) >= 2, "two or more")
    frequencies = numbers_from(found, len(found), 0.0, 1.0, "frequencies of classes")
    if abs(np.sum(frequencies) - 1) > 1e-6:
        raise ModelFileError("its frequencies of classes do not add up to one.")
    temperature = number_from(stored, "temperature", 0.01, 100.0)
    if stored["strength"] is None:
        return frequencies, temperature, None
    return frequencies, temperature, number_from(stored, "strength", 1e-6, 1e3)
