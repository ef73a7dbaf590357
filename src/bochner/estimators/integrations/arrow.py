"""A model file as a function of Arrow tables, for Ray Data, Dask, Spark and all that maps batches of rows."""

import dataclasses
import functools
import os
from collections.abc import Collection, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from bochner.estimators import load
from bochner.estimators.predicted_columns import Columns, columns_of_classes, columns_of_numbers
from bochner.fitting.sources import encoded_batches
from bochner.tables.source import TableError

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclasses.dataclass(frozen=True)
class Predictor:
    """Predictions of a model file for Arrow tables or record batches, row by row in their order.

    The file is opened once in each process, whatever the number of predictors and batches. A predictor that is sent to
    another process takes its settings along and opens the file there, so the path must lead to it on every machine.

    Attributes:
        path: of the model file.
        coverage: of the interval, or of the set of classes where the model is calibrated.
        quantiles: levels of further columns of a model of numbers.
        keep: names of columns of the rows to copy, such as a key.

    Example:
        >>> import os, pyarrow as pa, tempfile
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.estimators.integrations.arrow import Predictor
        >>> table = pa.table({"id": [7, 8, 9], "size": [1.0, 2.0, 3.0], "price": [1.1, 1.9, 3.1]})
        >>> path = os.path.join(tempfile.mkdtemp(), "flats.bochner")
        >>> DeepGPRegressor(Linear()).fit(table, "price", ignore=["id"]).save(path)
        >>> Predictor(path, keep=["id"])(table).column_names
        ['id', 'mean', 'std', 'lower', 'upper']
    """

    path: str | Path
    coverage: float = 0.9
    quantiles: Sequence[float] = ()
    keep: Sequence[str] = ()

    def __post_init__(self):
        if not 0 < self.coverage < 1:
            raise ValueError(
                f"`coverage` must lie strictly between 0 and 1; got {self.coverage!r}."
            )
        _check_list("quantiles", self.quantiles, Real, "numbers such as [0.1, 0.9]")
        if not all(0 < level < 1 for level in self.quantiles):
            raise ValueError(
                f"`quantiles` must lie strictly between 0 and 1; got {self.quantiles!r}."
            )
        _check_distinct("quantiles", [f"q{level:g}" for level in self.quantiles])
        _check_list("keep", self.keep, str, "names of columns such as ['id']")
        _check_distinct("keep", list(self.keep))
        if hasattr(self._model, "classes_"):
            if len(self.quantiles):
                raise ValueError(f"`quantiles` are of numbers; {self.path} predicts classes.")
        elif self._model.n_targets_ > 1:
            raise ValueError(
                f"{self.path} has {self._model.n_targets_} targets; a predictor is for one. Predict with "
                "`bochner.load(path)`."
            )
        twice = set(self.keep) & {field.name for field in self.schema}
        if twice:
            raise ValueError(
                f"`keep` names {min(twice)!r}, which is a column of the predictions. Rename it in the rows."
            )

    def __reduce__(self):
        # By its settings, so that the file is opened where it arrives.
        return Predictor, (self.path, self.coverage, self.quantiles, self.keep)

    @property
    def _model(self) -> Any:
        stat = os.stat(self.path)
        return _opened(os.fspath(self.path), stat.st_mtime_ns, stat.st_size)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of predictions, without those that are kept."""
        model = self._model
        if not hasattr(model, "classes_"):
            names = ["mean", "std", "lower", "upper", *(f"q{q:g}" for q in self.quantiles)]
            return pa.schema([(name, pa.float64()) for name in names])
        labels = model.classes_.tolist()
        fields = [("class", pa.array(labels).type)]
        fields += [(f"probability_{label}", pa.float64()) for label in labels]
        if model.fitted_.calibration is not None:
            fields.append(("set", pa.string()))
        return pa.schema(fields)

    def __call__(self, rows: Rows) -> Rows:
        """Predict.

        Args:
            rows: a table with the columns of the fit, or a batch of one, also of no rows; other columns do not matter.

        Returns:
            A table, or a batch, of as many rows.
        """
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        missing = [name for name in self.keep if name not in table.schema.names]
        if missing:
            raise TableError(
                f"there is no column {missing[0]!r} to keep. The columns are "
                f"{', '.join(map(repr, table.schema.names))}."
            )
        kept = table.select(list(self.keep))
        parts = [self._predicted(X) for X, _ in self._encoded(table)]
        predicted = pa.concat_tables(parts) if parts else self.schema.empty_table()
        columns = [*kept.columns, *predicted.columns]
        found = pa.table(columns, schema=pa.schema([*kept.schema, *predicted.schema]))
        if isinstance(rows, pa.Table):
            return found
        return pa.RecordBatch.from_struct_array(found.to_struct_array().combine_chunks())

    def _encoded(self, table: pa.Table) -> Any:
        if table.num_rows == 0:  # whose columns often have no type
            return ()
        return encoded_batches(self._model.fitted_.reader, table, gaps=True)

    def _predicted(self, X: Any) -> pa.Table:
        model = self._model
        found: Columns = (
            columns_of_classes(model, X, self.coverage)
            if hasattr(model, "classes_")
            else columns_of_numbers(model, X, self.coverage, self.quantiles)
        )
        return pa.table(found).cast(self.schema)


def _check_list(name: str, values: Any, kind: Any, wanted: str) -> None:
    if isinstance(values, str) or not isinstance(values, Collection):
        raise TypeError(f"`{name}` must be a list of {wanted}; got {values!r}.")
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"`{name}` must be a list of {wanted}; got {value!r} in it.")


def _check_distinct(name: str, columns: Sequence[str]) -> None:
    twice = [column for i, column in enumerate(columns) if column in columns[:i]]
    if twice:
        raise ValueError(f"`{name}` would give two columns {twice[0]!r}. Leave out one of them.")


@functools.lru_cache(maxsize=8)
def _opened(path: str, modified: int, size: int) -> Any:
    """Open a model file once in a process, and anew when another one has taken its place."""
    return load(path)
