"""Matrices as named arrays of a file: columns of few values as small numbers, triangles without their zeros."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack

from bochner.system.saving import ModelFileError
from bochner.system.taking import listed, named

_MOST_VALUES = 256


def matrix_to_stored(
    name: str, matrix: Float[np.ndarray, "n p"]
) -> tuple[dict[str, np.ndarray], list[int]]:
    """Give a matrix as arrays, and how many values each column has; zero for those that are stored as they are.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.stored_arrays import matrix_to_stored
        >>> arrays, counts = matrix_to_stored("a", np.array([[0.5], [2.0], [0.5]] * 9))
        >>> counts, arrays["a.values"].tolist(), arrays["a.places"].shape, arrays["a"].shape
        ([2], [0.5, 2.0], (27, 1), (27, 0))
    """
    matrix = np.asarray(matrix, np.float64)
    plain, places, values, counts = [], [], [], []
    for column in matrix.T:
        found, place = np.unique(column, return_inverse=True)
        is_few = len(found) <= min(_MOST_VALUES, len(column) // 2)
        counts.append(len(found) if is_few else 0)
        if is_few:
            values.append(found)
            places.append(place.reshape(-1))
        else:
            plain.append(column)
    n = len(matrix)
    arrays = {
        name: _side_by_side(plain, n, np.float64),
        f"{name}.places": _side_by_side(places, n, np.uint8),
        f"{name}.values": np.concatenate([np.zeros(0), *values]),
    }
    return arrays, counts


class StoredArrays:
    """Arrays of a file, each checked when it is taken.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.stored_arrays import StoredArrays, matrix_to_stored
        >>> stored, counts = matrix_to_stored("a", np.eye(4))
        >>> arrays = StoredArrays(stored)
        >>> arrays.matrix("a", counts, n_rows=4, most=9.0).tolist() == np.eye(4).tolist()
        True
        >>> arrays.check_all_taken()
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._taken: set[str] = set()

    def shape(self, name: str) -> tuple[int, ...]:
        """Tell the shape of an array."""
        if not isinstance(self._arrays.get(name), np.ndarray):
            raise ModelFileError(f"it lacks {name!r}.")
        return self._arrays[name].shape

    def array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Take an array of this type and shape, as a copy by rows in memory."""
        if self.shape(name) != shape:
            raise ModelFileError(f"{name} has shape {self.shape(name)} where {shape} was expected.")
        array = self._arrays[name]
        if array.dtype != dtype:
            raise ModelFileError(f"{name} holds {array.dtype} where {np.dtype(dtype)} is expected.")
        self._taken.add(name)
        return np.array(array, dtype, order="C")

    def floats(
        self, name: str, shape: tuple[int, ...], most: float, dtype: Any = np.float64
    ) -> np.ndarray:
        """Take numbers whose size is at most as given, which NaN is not."""
        array = self.array(name, dtype, shape)
        if not np.all(np.abs(array) <= most):
            raise ModelFileError(f"{name} holds values that are not finite, or out of range.")
        return array

    def matrix(self, name: str, counts: Any, n_rows: int, most: float) -> np.ndarray:
        """Take what `matrix_to_stored` gave."""
        if not isinstance(counts, list) or not all(
            type(count) is int and 0 <= count <= _MOST_VALUES for count in counts
        ):
            raise ModelFileError(f"the columns of {name} have no counts of values.")
        n_few = sum(count > 0 for count in counts)
        plain = self.floats(name, (n_rows, len(counts) - n_few), most)
        places = self.array(f"{name}.places", np.uint8, (n_rows, n_few))
        values = self.floats(f"{name}.values", (sum(counts),), most)
        matrix = np.empty((n_rows, len(counts)))
        few, start, others = 0, 0, 0
        for column, count in enumerate(counts):
            if not count:
                matrix[:, column] = plain[:, others]
                others += 1
                continue
            if n_rows and int(places[:, few].max()) >= count:
                raise ModelFileError(f"{name}.places holds places of values that it has not.")
            matrix[:, column] = values[start + places[:, few].astype(np.int64)]
            few, start = few + 1, start + count
        return matrix

    def triangle(self, name: str, size: int, most: float) -> Float[np.ndarray, "m m"]:
        """Take the lower factor of a matrix that is the identity or larger, by columns in memory."""
        packed = self.floats(name, (size * (size + 1) // 2,), most, np.float32)
        lower = np.zeros((size, size), order="F")
        lower[np.tri(size, dtype=bool)] = packed
        if size:
            if not np.min(np.diag(lower)) >= 0.5:
                raise ModelFileError(f"{name} is no factor of a matrix that is large enough.")
            # The norm of the inverse of such a factor is at most one, and root of `size` in the norm of sums.
            norm = float(np.max(np.sum(np.abs(lower), axis=0)))
            reciprocal, _ = lapack.dtrcon(lower, norm="1", uplo="L")  # pyright: ignore[reportAttributeAccessIssue]
            if not reciprocal * norm * size**0.5 >= 0.5:
                raise ModelFileError(f"{name} is no factor of a matrix that is large enough.")
        return lower

    def check_all_taken(self) -> None:
        """Refuse arrays that nothing has taken."""
        others = self._arrays.keys() - self._taken
        if others:
            raise ModelFileError(f"it holds arrays that do not belong to it: {listed(others)}.")


def triangle_to_stored(lower: Float[np.ndarray, "m m"]) -> Float[np.ndarray, " entries"]:
    """Give the entries of a lower triangle row by row, in single precision.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.stored_arrays import triangle_to_stored
        >>> triangle_to_stored(np.array([[1.0, 0.0], [2.0, 3.0]])).tolist()
        [1.0, 2.0, 3.0]
    """
    return lower[np.tri(len(lower), dtype=bool)].astype(np.float32)


def numbers_from(values: Any, size: int, low: float, high: float, what: str) -> np.ndarray:
    """Take a list of so many numbers between bounds."""
    if not isinstance(values, list) or len(values) != size:
        raise ModelFileError(f"{what} are no list of {size} numbers.")
    if not all(type(value) in (int, float) and low <= value <= high for value in values):
        raise ModelFileError(f"{what} are not between {low:g} and {high:g}.")
    return np.array(values, np.float64)


def places_from(values: Any, n: int, what: str) -> tuple[int, ...]:
    """Take a list of whole numbers from zero to below n."""
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < n for v in values):
        raise ModelFileError(f"{what} are no list of places below {n}.")
    return tuple(values)


def object_of_kind(stored: Any, names: dict[str, set[str]], what: str) -> tuple[str, dict]:
    """Take an object whose "kind" is one of the known ones, with the names that belong to it."""
    kind = stored.get("kind") if isinstance(stored, dict) else None
    if not isinstance(kind, str) or kind not in names:
        raise ModelFileError(f"{what} is of no known kind.")
    return kind, named(stored, {"kind", *names[kind]}, what)


def _side_by_side(columns: list[np.ndarray], n: int, dtype: Any) -> np.ndarray:
    return np.stack(columns, axis=1).astype(dtype) if columns else np.zeros((n, 0), dtype)
