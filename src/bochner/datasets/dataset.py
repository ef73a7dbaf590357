"""A data set: a table with its target, and the test rows of its folds and splits."""

import dataclasses

import numpy as np

from bochner.rows.scaling import TargetScaling


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A table with its target, and the test rows of its folds and splits.

    Attributes:
        name: name of the data set.
        X: inputs, raw; those of `mnist8m` are made when they are asked for, `X[rows]`.
        y: targets, or indices of classes.
        feature_names: names of the inputs.
        target_name: name of the target; empty for classification.
        class_names: names of the classes; empty for regression.
        folds: test rows of the paper's folds, about sqrt(n) rows each.
        splits: test rows of the standard 90/10 splits, or of the one split that is in use.
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

    def split(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Give the parts of a standard split; where there is none, of a random tenth as test rows, by its seed."""
        if self.splits:
            return self.part(self.splits[number])
        order = np.random.default_rng(number).permutation(len(self.y))
        return self.part(order[: len(order) // 10])

    def block(
        self, number: int, n_blocks: int = 10
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Give the parts of one stretch of the rows in their order as test rows: for recordings in time.

        Rows next to each other in time are nearly the same, so a random split tests on what was trained on.
        """
        if not 0 <= number < n_blocks:
            raise ValueError(f"there are {n_blocks} blocks, from 0 on; got {number}.")
        return self.part(np.array_split(np.arange(len(self.y)), n_blocks)[number])

    def fold(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Give the parts of one of the paper's folds, scaled as there.

        Inputs, and the targets of regression, are standardized by mean and sample standard deviation of the training
        part; a constant column is only centered.
        """
        if not 0 <= number < len(self.folds):
            raise ValueError(f"{self.name} has {len(self.folds)} folds, from 0 on; got {number}.")
        X, y, X_test, y_test = self.part(self.folds[number])
        X, X_test = _standardized(X, X_test)
        if not self.is_classification:
            y, y_test = _standardized(y, y_test)
        return X, y, X_test, y_test


def _standardized(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns = train.reshape(len(train), -1)
    scaling = TargetScaling.standard(columns)
    scaled = scaling(columns), scaling(test.reshape(len(test), -1))
    return scaled[0].reshape(train.shape), scaled[1].reshape(test.shape)
