"""MNIST8M-like images, made on the fly: image i is a deformed and shifted digit of MNIST.

Indexing and arithmetic are those of the infinite MNIST generator of Loosli, Canu and Bottou (2007), whose displacement
fields are not public in a compact form; here they are smoothed white noise from a fixed seed, and the tangents are
derivatives of the smoothed digit. So the images are like MNIST8M's, and never equal to them.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8
from scipy.ndimage import gaussian_filter

from bochner.datasets.dataset import Dataset
from bochner.datasets.digits import DIGIT_NAMES, N_PIXELS, PIXEL_NAMES, SIDE, load_mnist
from bochner.rows.table import Table

N_TEST = 10_000
N_DIGITS = 60_000
N_IMAGES = 8_110_000
"""Test images, training images, and 134 deformed versions of each training image."""

_PART = 10_000
_MAX_IMAGES_AT_ONCE = 1_000_000
_N_FIELDS = 1522
_FIELD_SMOOTHING = 5.0
_FIELD_SEED = 8_100_000
_TANGENT_SMOOTHING = 1.0
# Rows and columns by which the image moves, in the order of the original: up, down, left, right, the four diagonals
# (up and left, up and right, down and left, down and right), none.
_SHIFTS = np.array(
    [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0)], np.int32
)


def base_digit(index: Int[Array, " n"]) -> Int[Array, " n"]:
    """Give the row, test images first, of the digit that each image is made from.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.datasets.infinite_digits import base_digit
        >>> base_digit(jnp.array([9_999, 10_000, 69_999, 70_000, 130_000])).tolist()
        [9999, 10000, 69999, 10000, 10000]
    """
    return jnp.where(index < N_TEST, index, N_TEST + (index - N_TEST) % N_DIGITS)


def field_numbers(index: Int[Array, " n"]) -> tuple[Int[Array, " n"], Int[Array, " n"]]:
    """Give the numbers k1 and k2 of the displacement fields of each image.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.datasets.infinite_digits import field_numbers
        >>> [int(k[0]) for k in field_numbers(jnp.array([70_000]))]  # 131071 * 70000 overflows 32 bits twice
        [1010, 987]
    """
    unsigned = index.astype(jnp.uint32)
    k1 = (unsigned * jnp.uint32(131_071)) % jnp.uint32(_N_FIELDS - 1)
    k2 = (k1 + jnp.uint32(1) + jnp.uint32(2) * unsigned) % jnp.uint32(_N_FIELDS)
    return k1.astype(jnp.int32), k2.astype(jnp.int32)


class InfiniteDigits(eqx.Module):
    """The images by number, as a function that works inside compiled programs, on any device.

    Indexing with an array of numbers gives images as bytes, as indexing a matrix of images would.

    Attributes:
        digits: test images, then training images.
        labels: of the digits.
        fields: smooth displacements, of root mean square one pixel.
        smoothing: matrix that smooths a line of pixels.
        derivative: matrix that smooths and differentiates it.
    """

    digits: UInt8[Array, "digits pixels"]
    labels: Int[Array, " digits"]
    fields: Float[Array, "fields side side"]
    smoothing: Float[Array, "side side"]
    derivative: Float[Array, "side side"]
    shifts: Int[Array, "9 2"]

    @classmethod
    def of(cls, images: np.ndarray, labels: np.ndarray) -> "InfiniteDigits":
        """Build the generator from MNIST, training images first as `load` gives them."""
        order = np.concatenate([np.arange(N_DIGITS, N_DIGITS + N_TEST), np.arange(N_DIGITS)])
        smoothing, derivative = _smoothing_and_derivative()
        return cls(
            digits=jnp.asarray(images[order]),
            labels=jnp.asarray(labels[order], jnp.int32),
            fields=jnp.asarray(_displacement_fields()),
            smoothing=jnp.asarray(smoothing),
            derivative=jnp.asarray(derivative),
            shifts=jnp.asarray(_SHIFTS),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix of all images."""
        return N_IMAGES, N_PIXELS

    def __len__(self) -> int:
        return N_IMAGES

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        index = np.atleast_1d(np.arange(N_IMAGES)[rows])
        if len(index) > _MAX_IMAGES_AT_ONCE:
            raise ValueError(
                f"{len(index):,} images would fill {len(index) * N_PIXELS / 1e9:.1f} GB: ask for at most "
                f"{_MAX_IMAGES_AT_ONCE:,} at once, or train on `data.X.table()`, which makes them as they are needed."
            )
        parts = [index[start : start + _PART] for start in range(0, max(len(index), 1), _PART)]
        made = [np.asarray(_images(self, jnp.asarray(part))).astype(np.uint8) for part in parts]
        return np.concatenate(made)

    def __array__(self, *_, **__):
        return self[:]

    def label(self, index: Int[Array, " n"]) -> Int[Array, " n"]:
        """Give the classes of images."""
        return self.labels[base_digit(index)]

    def images(self, index: Int[Array, " n"]) -> Float[Array, "n pixels"]:
        """Make images, with whole numbers from 0 to 255 as pixels."""
        digit = self.digits[base_digit(index)].astype(jnp.float32).reshape(-1, SIDE, SIDE)
        k1, k2 = field_numbers(index)
        sign = jnp.where((k1 + k2) % 2 == 0, 1.0, -1.0)[:, None, None]
        with jax.default_matmul_precision("float32"):
            along_x = jnp.einsum("ij,njk,lk->nil", self.smoothing, digit, self.derivative)
            along_y = jnp.einsum("ij,njk,lk->nil", self.derivative, digit, self.smoothing)
        warped = digit + sign * (self.fields[k1] * along_x - self.fields[k2] * along_y)
        warped = jnp.floor(jnp.clip(warped, 0.0, 255.0))
        shifted = jax.vmap(_shift)(warped, self.shifts[k1 % len(_SHIFTS)])
        unchanged = (index < N_TEST + N_DIGITS)[:, None, None]
        return jnp.where(unchanged, digit, shifted).reshape(-1, N_PIXELS)

    def table(self) -> "DigitTable":
        """The 8.1 million training images as a table to train on, pixels from 0 to 1."""
        n = N_IMAGES - N_TEST
        # The base class holds what rows are made from; no image is stored.
        nothing = jnp.zeros((0, N_PIXELS))
        return DigitTable(nothing, jnp.zeros((0, 1), jnp.int32), jnp.zeros(0), self, n)


class DigitTable(Table):
    """A table whose rows are made inside the compiled step that asks for them; row r is image 10000 + r."""

    source: InfiniteDigits
    n_images: int = eqx.field(static=True)

    @property
    def n_rows(self) -> int:
        """The number of images."""
        return self.n_images

    @property
    def total_weight(self) -> float:
        """The same: each counts once."""
        return float(self.n_images)

    def rows(self, index: Int[Array, " batch"]) -> Table:
        """Make some rows."""
        numbers = N_TEST + index
        X = self.source.images(numbers) / 255.0
        return Table(X, self.source.label(numbers)[:, None], jnp.ones(index.shape))


def load_mnist8m(*, download: bool = False) -> Dataset:
    """Give the images by number: 10,000 test images, unchanged, then 8.1 million training images."""
    mnist = load_mnist(download=download)
    images = InfiniteDigits.of(mnist.X, mnist.y)
    numbers = np.arange(N_IMAGES, dtype=np.int32)
    digits = np.where(numbers < N_TEST, numbers, N_TEST + (numbers - N_TEST) % N_DIGITS)
    return Dataset(
        name="mnist8m",
        X=images,  # pyright: ignore[reportArgumentType] - indexed as a matrix is
        y=np.asarray(images.labels)[digits].astype(np.int64),
        feature_names=PIXEL_NAMES,
        class_names=DIGIT_NAMES,
        splits=(np.arange(N_TEST),),
    )


_images = eqx.filter_jit(InfiniteDigits.images)


def _shift(image: Float[Array, "side side"], by: Int[Array, "2"]) -> Float[Array, "side side"]:
    """Move an image by up to a pixel each way, filling with zeros."""
    return jax.lax.dynamic_slice(jnp.pad(image, 1), (1 - by[0], 1 - by[1]), (SIDE, SIDE))


def _displacement_fields() -> np.ndarray:
    noise = np.random.default_rng(_FIELD_SEED).normal(size=(_N_FIELDS, SIDE, SIDE))
    smooth = gaussian_filter(noise, _FIELD_SMOOTHING, axes=(1, 2), mode="wrap")
    return (smooth / math.sqrt(np.mean(smooth**2))).astype(np.float32)


def _smoothing_and_derivative() -> tuple[np.ndarray, np.ndarray]:
    """Matrices of a Gaussian filter and its derivative on a line of pixels, dark beyond its ends."""
    lines = np.eye(SIDE)
    smoothing = gaussian_filter(lines, _TANGENT_SMOOTHING, axes=0, mode="constant")
    derivative = gaussian_filter(lines, _TANGENT_SMOOTHING, order=1, axes=0, mode="constant")
    return smoothing.astype(np.float32), derivative.astype(np.float32)
