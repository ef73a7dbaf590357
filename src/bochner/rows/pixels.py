"""Tables of images: pixels stay bytes on the device, a quarter of their size, and become numbers in the step."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped, UInt8

from bochner.rows.scaling import FEWEST_PIXELS
from bochner.rows.table import StepsInMemory, Table

_LARGEST = 255
_ROWS_LOOKED_AT = 4096


class PixelTable(Table):
    """A table whose inputs are bytes over 255; the rows of a step become float32 when they are gathered.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from bochner.rows.pixels import PixelTable
        >>> table = PixelTable(jnp.full((5, 64), 51, jnp.uint8), jnp.zeros((5, 1)), jnp.ones(5))
        >>> round(float(table.rows(jnp.arange(2)).X[0, 0]), 6)
        0.2
    """

    X: UInt8[Array, "n d_in"]
    Y: Shaped[Array, "n targets"]
    weights: Float[Array, " n"]

    def in_steps(self, batch_size: int, seed: tuple[int, ...]) -> StepsInMemory:
        """Cut the rows into training steps; steps of all rows have nothing to gather, and get numbers."""
        if batch_size < self.n_rows:
            return super().in_steps(batch_size, seed)
        return Table(_decoded(self.X), self.Y, self.weights).in_steps(batch_size, seed)

    def rows(self, index: Int[Array, " batch"]) -> Table:
        """Gather some rows."""
        return Table(_decoded(self.X[index]), self.Y[index], self.weights[index])


def table_for_batches(X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None) -> Table:
    """Move arrays to the device for steps that gather rows; pixels stay bytes where they are.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.pixels import table_for_batches
        >>> images, y = np.full((2, 64), 51 / 255), np.zeros((2, 1))
        >>> table_for_batches(images, y).X.dtype.name, table_for_batches(images / 2, y).X.dtype.name
        ('uint8', 'float32')
    """
    pixels = _bytes_of(X)
    if pixels is None:
        return Table.of(X, Y, weights)
    rest = Table.of(np.zeros((len(X), 0)), Y, weights)
    return PixelTable(jnp.asarray(pixels), rest.Y, rest.weights)


def _decoded(pixels: Array) -> Array:
    return pixels.astype(jnp.float32) / _LARGEST


def _bytes_of(X: np.ndarray) -> np.ndarray | None:
    """Give the bytes that X is made of, over 255; None where there are too few columns, or other numbers."""
    if X.shape[1] < FEWEST_PIXELS:
        return None
    pixels = np.empty(X.shape, np.uint8)
    for start in range(0, len(X), _ROWS_LOOKED_AT):
        part = np.asarray(X[start : start + _ROWS_LOOKED_AT], np.float32)
        whole = np.round(part * _LARGEST)
        if (
            whole.min() < 0
            or whole.max() > _LARGEST
            or np.any(whole / np.float32(_LARGEST) != part)
        ):
            return None
        pixels[start : start + len(part)] = whole
    return pixels
