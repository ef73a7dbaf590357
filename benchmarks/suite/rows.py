"""Training rows as systems take them: a table, a frame with categories, or a matrix of standardized numbers."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.util import hash_pandas_object
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.suite.tables import Groups, Split, Table

_MOST_CATEGORIES = 40


@dataclasses.dataclass(frozen=True)
class TrainingRows:
    """The training part of a split.

    Attributes:
        inputs: the columns to learn from.
        y: targets, or indices into `classes`.
        target: name of the target's column.
        classes: values of the target that are classes; None for regression.
        groups: rows that belong together, where there are such.
        seed: of everything random.
    """

    inputs: pa.Table
    y: np.ndarray
    target: str
    classes: np.ndarray | None
    groups: Groups | None
    seed: int

    @property
    def table(self) -> pa.Table:
        """The columns to learn from with the target, as a user has them."""
        values = self.y if self.classes is None else self.classes[self.y]
        return self.inputs.append_column(self.target, pa.array(values))

    def __len__(self) -> int:
        return len(self.y)

    def folds(self, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Give pairs of kept and held-out rows: random folds, or whole groups, in time in their order."""
        if self.groups is None:
            order = np.random.default_rng(self.seed).permutation(len(self))
            parts = np.array_split(order, n_folds)
        else:
            names = np.unique(self.groups.of_rows)
            if not self.groups.in_time:
                names = np.random.default_rng(self.seed).permutation(names)
            of_rows = self.groups.of_rows
            parts = [
                np.flatnonzero(np.isin(of_rows, some)) for some in np.array_split(names, n_folds)
            ]
        everything = np.arange(len(self))
        return [(np.setdiff1d(everything, part), np.sort(part)) for part in parts]

    def held_out(self, share: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
        """Give kept and held-out rows once: a random share, or whole groups, in time the last ones."""
        return self.folds(round(1 / share))[-1]

    @functools.cached_property
    def frame(self) -> "Frame":
        """The inputs with text as categories."""
        return Frame.learn(self.inputs)

    @functools.cached_property
    def matrix(self) -> "Matrix":
        """The inputs as numbers: one-hot, imputed by the median with an indicator, standardized."""
        return Matrix.learn(self.inputs)


@dataclasses.dataclass(frozen=True)
class Frame:
    """A frame with text as categories, and the way to make such of further rows.

    Attributes:
        rows: the training rows.
        categories: the values of each text column.
    """

    rows: pd.DataFrame
    categories: dict[str, pd.CategoricalDtype]

    @classmethod
    def learn(cls, inputs: pa.Table) -> "Frame":
        """Note the categories of training rows."""
        frame = _plain(inputs)
        categories = {
            name: pd.CategoricalDtype(sorted(frame[name].dropna().unique()))
            for name in frame.columns
            if frame[name].dtype == object
        }
        return cls(frame.astype(categories), categories)

    def __call__(self, inputs: pa.Table) -> pd.DataFrame:
        """Give further rows; values that training rows lack are missing."""
        frame = _plain(inputs)
        for name, kind in self.categories.items():
            frame[name] = frame[name].where(frame[name].isin(list(kind.categories)))
        return frame.astype(self.categories)


@dataclasses.dataclass(frozen=True)
class Matrix:
    """A matrix of standardized numbers, and the way to make such of further rows.

    Attributes:
        X: the training rows.
        encode: makes a matrix of a table.
    """

    X: np.ndarray
    encode: Callable[[pa.Table], np.ndarray]

    @classmethod
    def learn(cls, inputs: pa.Table) -> "Matrix":
        """Learn the encoding of training rows."""
        frame = _plain(inputs)
        text = [name for name in frame.columns if frame[name].dtype == object]
        numbers = [name for name in frame.columns if name not in text]
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=_MOST_CATEGORIES,
            sparse_output=False,
            drop="if_binary",
        )
        filled = SimpleImputer(strategy="constant", fill_value="(missing)")
        columns = ColumnTransformer(
            [
                ("numbers", SimpleImputer(strategy="median", add_indicator=True), numbers),
                ("text", make_pipeline(filled, one_hot), text),
            ]
        )
        pipeline = make_pipeline(columns, StandardScaler())
        X = pipeline.fit_transform(frame)
        return cls(
            np.asarray(X, float), lambda table: np.asarray(pipeline.transform(_plain(table)))
        )

    def __call__(self, inputs: pa.Table) -> np.ndarray:
        """Give further rows."""
        return self.encode(inputs)


def _plain(inputs: pa.Table) -> pd.DataFrame:
    """Give columns of Python strings or of floating-point numbers, whatever pandas makes of the types."""
    columns = {}
    for name in inputs.column_names:
        column = inputs[name]
        if pa.types.is_null(column.type):
            continue
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            columns[name] = pd.Series(np.array(column.to_pylist(), object), dtype=object)
        else:
            columns[name] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return pd.DataFrame(columns)


@dataclasses.dataclass(frozen=True)
class Parts:
    """Both parts of a split.

    Attributes:
        training: what a system learns from.
        inputs: of the test rows.
        y: targets or indices of classes of the test rows.
        numbers: of the test rows in the whole table.
        repeated: whether a test row stands in the training part, target included.
    """

    training: TrainingRows
    inputs: pa.Table
    y: np.ndarray
    numbers: np.ndarray
    repeated: np.ndarray


def parts_of(table: Table, split: Split, seed: int) -> Parts:
    """Separate training and test rows; test rows of classes that no training row has are left out."""
    rows = table.rows.drop_columns(list(split.dropped))
    inputs = rows.drop_columns([table.target])
    values = rows[table.target].to_numpy(zero_copy_only=False)
    test = split.test
    if table.classification:
        classes, y_training = np.unique(values[split.training], return_inverse=True)
        test = test[np.isin(values[test], classes)]
        y_test = np.searchsorted(classes, values[test])
    else:
        classes = None
        y_training, y_test = (values[part].astype(float) for part in (split.training, test))
    training = TrainingRows(
        inputs.take(split.training), y_training, table.target, classes, split.groups, seed
    )
    repeated = _repeated(rows.take(split.training), rows.take(test))
    return Parts(training, inputs.take(test), y_test, test, repeated)


def _repeated(training: pa.Table, test: pa.Table) -> np.ndarray:
    """Mark rows of one table that stand in another, all columns alike."""
    codes = [_codes(table) for table in (training, test)]
    return codes[1].isin(codes[0]).to_numpy()


def _codes(table: pa.Table) -> pd.Series:
    frame = _plain(table)
    text = [name for name in frame.columns if frame[name].dtype == object]
    filled = frame.assign(**{name: frame[name].fillna("(missing)") for name in text})
    return hash_pandas_object(filled, index=False)  # pyright: ignore[reportCallIssue]
