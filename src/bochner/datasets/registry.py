"""The data sets by name, what their target is, and how they are split."""

import dataclasses
import difflib
import gzip

import numpy as np

from bochner.datasets.files import checked_path

_TARGETS = {
    "boston": "MEDV",
    "concrete": "compressive_strength_MPa",
    "energy": "heating_load",
    "kin40k": "distance",
    "powerplant": "PE",
    "protein": "RMSD",
    "wine_red": "quality",
    "yacht": "residuary_resistance",
}
_CLASSES = {"credit": 2, "eeg": 2, "spam": 2}


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A table with its target, and the test rows of its folds and splits.

    Attributes:
        name: name of the data set.
        X: inputs, raw.
        y: targets, or indices of classes.
        feature_names: names of the inputs.
        target_name: name of the target; empty for classification.
        class_names: names of the classes; empty for regression.
        folds: test rows of the paper's folds, about sqrt(n) rows each.
        splits: test rows of the standard 90/10 splits.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    feature_names: tuple[str, ...]
    target_name: str = ""
    class_names: tuple[str, ...] = ()
    folds: tuple[np.ndarray, ...] = ()
    splits: tuple[np.ndarray, ...] = ()

    @property
    def is_classification(self) -> bool:
        """Whether y holds classes."""
        return bool(self.class_names)

    def part(self, test_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Give training inputs, training targets, test inputs, test targets for some test rows."""
        kept = np.ones(len(self.y), bool)
        kept[test_rows] = False
        return self.X[kept], self.y[kept], self.X[test_rows], self.y[test_rows]


def names() -> list[str]:
    """List the names that `load` knows.

    Example:
        >>> from bochner import datasets
        >>> "powerplant" in datasets.names()
        True
    """
    return sorted([*_TARGETS, *_CLASSES, "mnist"])


def load(name: str) -> Dataset:
    """Load a data set from the folder in the environment variable `BOCHNER_DATA`.

    Example:
        >>> from bochner import datasets
        >>> datasets.load("power-plant")
        Traceback (most recent call last):
        ValueError: there is no data set 'power-plant'. Did you mean 'powerplant'? `bochner.datasets.names()` lists all.
    """
    if name not in names():
        nearest = difflib.get_close_matches(str(name).lower(), names(), n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(
            f"there is no data set {name!r}.{hint} `bochner.datasets.names()` lists all."
        )
    return _load_mnist() if name == "mnist" else _load_table(name)


def _load_table(name: str) -> Dataset:
    with np.load(checked_path(f"{name}.npz"), allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    X, y = arrays["X"], arrays["y"]
    target = str(arrays.get("target_name", ""))
    expected = _TARGETS.get(name, "")
    if target != expected:
        raise ValueError(f"the target of {name} must be {expected}; the file says {target!r}.")
    classes = tuple(str(c) for c in arrays.get("class_names", ()))
    if len(classes) != _CLASSES.get(name, 0) or len(X) != len(y):
        raise ValueError(
            f"{name}.npz does not hold what it should: {len(classes)} classes, {len(y)} rows."
        )
    folds = [arrays[key] for key in sorted(arrays) if key.startswith("test_idx_fold")]
    return Dataset(
        name=name,
        X=X.astype(np.float64),
        y=y,
        feature_names=tuple(str(feature) for feature in arrays["feature_names"]),
        target_name="" if classes else target,
        class_names=classes,
        folds=tuple(folds),
        splits=_standard_splits(name),
    )


def _standard_splits(name: str) -> tuple[np.ndarray, ...]:
    with np.load(checked_path("standard_splits.npz"), allow_pickle=False) as file:
        count = sum(key.startswith(f"{name}_test_") for key in file.files)
        return tuple(file[f"{name}_test_{k}"] for k in range(count))


def _load_mnist() -> Dataset:
    images, labels = [], []
    for part in ("train", "t10k"):
        images.append(_read_idx(f"{part}-images-idx3-ubyte.gz", magic=2051).reshape(-1, 784))
        labels.append(_read_idx(f"{part}-labels-idx1-ubyte.gz", magic=2049))
    n_train, n_test = len(labels[0]), len(labels[1])
    return Dataset(
        name="mnist",
        X=np.concatenate(images),
        y=np.concatenate(labels).astype(np.int64),
        feature_names=tuple(f"pixel_{i // 28}_{i % 28}" for i in range(784)),
        class_names=tuple(str(digit) for digit in range(10)),
        splits=(np.arange(n_train, n_train + n_test),),
    )


def _read_idx(filename: str, magic: int) -> np.ndarray:
    """Read a gzipped IDX file: magic number, sizes, then bytes, all big-endian."""
    content = gzip.decompress(checked_path(filename).read_bytes())
    n_axes = 3 if magic == 2051 else 1
    header = np.frombuffer(content, ">i4", count=1 + n_axes)
    if header[0] != magic:
        raise ValueError(
            f"{filename} starts with {header[0]}, not {magic}: it is no such IDX file."
        )
    values = np.frombuffer(content, np.uint8, offset=4 * (1 + n_axes))
    return values.reshape(tuple(header[1:]))
