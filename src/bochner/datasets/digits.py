"""MNIST, from its gzipped IDX files."""

import gzip

import numpy as np

from bochner.datasets.dataset import Dataset
from bochner.datasets.files import checked_path

SIDE = 28
N_PIXELS = SIDE * SIDE
PIXEL_NAMES = tuple(f"pixel_{i // SIDE}_{i % SIDE}" for i in range(N_PIXELS))
DIGIT_NAMES = tuple(str(digit) for digit in range(10))


def load_mnist(*, download: bool = False) -> Dataset:
    """Read the 60,000 training images and then the 10,000 test images, which are the one split."""
    images, labels = [], []
    for part in ("train", "t10k"):
        images.append(
            read_idx(f"{part}-images-idx3-ubyte.gz", 2051, download).reshape(-1, N_PIXELS)
        )
        labels.append(read_idx(f"{part}-labels-idx1-ubyte.gz", 2049, download))
    n_train, n_test = len(labels[0]), len(labels[1])
    return Dataset(
        name="mnist",
        X=np.concatenate(images),
        y=np.concatenate(labels).astype(np.int64),
        feature_names=PIXEL_NAMES,
        class_names=DIGIT_NAMES,
        splits=(np.arange(n_train, n_train + n_test),),
    )


def read_idx(filename: str, magic: int, download: bool = False) -> np.ndarray:
    """Read a gzipped IDX file: magic number, sizes, then bytes, all big-endian."""
    content = gzip.decompress(checked_path(filename, download=download).read_bytes())
    n_axes = 3 if magic == 2051 else 1
    header = np.frombuffer(content, ">i4", count=1 + n_axes)
    if header[0] != magic:
        raise ValueError(
            f"{filename} starts with {header[0]}, not {magic}: it is no such IDX file."
        )
    values = np.frombuffer(content, np.uint8, offset=4 * (1 + n_axes))
    return values.reshape(tuple(header[1:]))
