"""Densities of free shape as named arrays and JSON, and back; on the way back every value is checked."""

from typing import Any

import numpy as np

from bochner.exact.cells import Cells
from bochner.exact.densities import DensityPart
from bochner.exact.landmarks import Landmarks
from bochner.exact.logistic import Shapes
from bochner.exact.stored_arrays import StoredArrays, numbers_from
from bochner.system.saving import ModelFileError

FIELDS = {"name", "landmarks", "tails"}
"""Of the JSON, beside its kind."""

_MOST_CELLS = 1000
_LARGEST_EDGE, _LARGEST_WEIGHT, _LARGEST_DIRECTION = 1e150, 1e30, 1e6
_LEAST_TAIL = 1e-150


def density_to_stored(
    prefix: str, part: DensityPart, landmarks: int
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Give a density as arrays whose names begin with a prefix, and plain values.

    Example:
        >>> import numpy as np
        >>> from bochner.exact import Columns
        >>> from bochner.exact.cells import Cells
        >>> from bochner.exact.densities import DensityPart
        >>> from bochner.exact.kernels import RBF
        >>> from bochner.exact.landmarks import Landmarks
        >>> from bochner.exact.logistic import Shapes
        >>> from bochner.exact.stored_density import density_to_stored
        >>> x = np.array([0.0, 1.0])
        >>> landmarks = Landmarks.of(RBF(), np.zeros(2), Columns.learn([x])([x]))
        >>> shapes = Shapes.of(np.ones(2), amplitude=1.0, width=0.1)
        >>> part = DensityPart("density", landmarks, Cells(x[:1], (1.0, 1.0)), shapes, np.zeros((2, 1)))
        >>> arrays, stored = density_to_stored("model.0", part, landmarks=0)
        >>> sorted(arrays), stored["tails"]
        (['model.0.directions', 'model.0.edges', 'model.0.frequencies', 'model.0.weights'], [1.0, 1.0])
    """
    arrays = {
        f"{prefix}.edges": part.cells.edges,
        f"{prefix}.frequencies": part.shapes.frequencies,
        f"{prefix}.directions": part.shapes.directions,
        f"{prefix}.weights": part.weights,
    }
    described = {
        "kind": "density",
        "name": part.name,
        "landmarks": landmarks,
        "tails": [float(tail) for tail in part.cells.tails],
    }
    return {name: np.asarray(array, np.float64) for name, array in arrays.items()}, described


def density_from_stored(
    arrays: StoredArrays, prefix: str, name: str, tails: Any, landmarks: Landmarks
) -> DensityPart:
    """Make what `density_to_stored` took apart, or raise a `ModelFileError` that says what does not fit."""
    shape = arrays.shape(f"{prefix}.directions")
    n_directions, n_cells = shape if len(shape) == 2 else (0, 0)
    if not (1 <= n_directions <= n_cells and 2 <= n_cells <= _MOST_CELLS):
        raise ModelFileError("a density has no cells, too many, or more directions than cells.")
    edges = arrays.floats(f"{prefix}.edges", (n_cells - 1,), _LARGEST_EDGE)
    frequencies = arrays.floats(f"{prefix}.frequencies", (n_cells,), 1.0)
    if not np.all(np.diff(edges) > 0):
        raise ModelFileError("the edges of a density's cells do not increase.")
    if not (np.min(frequencies) > 0 and abs(np.sum(frequencies) - 1) < 1e-6):
        raise ModelFileError("a density's frequencies of cells are no shares of one.")
    low, high = numbers_from(tails, 2, _LEAST_TAIL, _LARGEST_EDGE, "tails of a density")
    directions = arrays.floats(f"{prefix}.directions", (n_directions, n_cells), _LARGEST_DIRECTION)
    size = (len(landmarks.rows), n_directions)
    return DensityPart(
        name,
        landmarks,
        Cells(edges, (float(low), float(high))),
        Shapes(frequencies, directions),
        arrays.floats(f"{prefix}.weights", size, _LARGEST_WEIGHT),
    )
