"""Checked rows on their way to training: inputs, targets and weights side by side."""

import dataclasses
import hashlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Shaped


@dataclasses.dataclass(frozen=True)
class Rows:
    """Inputs, targets (numbers, or numbers of classes) and weights of some rows.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.rows import Rows
        >>> len(Rows(np.zeros((3, 2)), np.zeros((3, 1)), np.ones(3))[:2])
        2
    """

    X: Float[np.ndarray, "n d_in"]
    Y: Shaped[np.ndarray, "n targets"]
    weights: Float[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, chosen: slice | np.ndarray) -> "Rows":
        return Rows(self.X[chosen], self.Y[chosen], self.weights[chosen])

    def target(self, number: int) -> "Rows":
        """The same rows with one of their targets."""
        return Rows(self.X, self.Y[:, [number]], self.weights)

    def digest(self) -> str:
        """A checksum of the contents."""
        digest = hashlib.sha256()
        for array in (self.X, self.Y, self.weights):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def joined(parts: Sequence[Rows]) -> Rows | None:
    """Put rows together; None where there are none."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    columns = ((part.X, part.Y, part.weights) for part in parts)
    return Rows(*(np.concatenate(column) for column in zip(*columns, strict=True)))
