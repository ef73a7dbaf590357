"""The columns of a table as a fitted estimator knows them: where each is in its matrix, and which values it has."""

import dataclasses

import numpy as np
from jaxtyping import Float, Shaped

from bochner.members.fitted import Fitted
from bochner.tables.columns import AbstractColumn, AbstractMeasure, Boolean, Category, Moment

ANOTHER = "another"
"""The value of a category that is none of those with a column of their own."""

_ENDS = (0.01, 0.99)
_DAY = 86_400_000_000  # microseconds


@dataclasses.dataclass(frozen=True)
class TableColumn:
    """A column of the table that a user knows.

    Attributes:
        name: of the column.
        places: of the columns of the matrix that it has become.
        encoding: how; None where it went in as the number that it is.

    Example:
        >>> import numpy as np
        >>> from bochner.explaining.columns import TableColumn
        >>> from bochner.tables.columns import Category
        >>> color = Category("color", ("blue", "red"), has_rest=False, has_indicator=False)
        >>> column = TableColumn("color", (1, 2), color)
        >>> column.values(np.array([[5.0, 0, 1], [6.0, 1, 0]])).tolist()
        ['red', 'blue']
        >>> values, encoded = column.grid(np.zeros((9, 3)), 50)
        >>> values.tolist(), encoded.tolist()
        (['blue', 'red'], [[1.0, 0.0], [0.0, 1.0]])
    """

    name: str
    places: tuple[int, ...]
    encoding: AbstractColumn | None = None

    @property
    def unit(self) -> str:
        """What its numbers count, where that is not for the user to know."""
        return self.encoding.unit if isinstance(self.encoding, AbstractMeasure) else ""

    @property
    def is_category(self) -> bool:
        """Whether its values have no order."""
        return isinstance(self.encoding, Category | Boolean)

    def of(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n places"]:
        """Take its part of the matrix."""
        return X[:, list(self.places)]

    def put(self, X: Float[np.ndarray, "n d"], own: Float[np.ndarray, "n places"]) -> np.ndarray:
        """Give the matrix with another part of this column."""
        changed = X.copy()
        changed[:, list(self.places)] = own
        return changed

    def values(self, X: Float[np.ndarray, "n d"]) -> Shaped[np.ndarray, " n"]:
        """Give the value of each row: a number, a moment, or a text or truth value, which are objects.

        Missing values are NaN, NaT, and None.
        """
        return self._decoded(self.of(X))

    def grid(
        self, X: Float[np.ndarray, "n d"], n_points: int
    ) -> tuple[Shaped[np.ndarray, " points"], Float[np.ndarray, "points places"]]:
        """Give values of the column as they are and as encoded, by which its effect can be told.

        They are all values that a category had at the fit; those of the rows, where there are no more than points; and
        else numbers at equal distances between the first and the last hundredth of the rows. Missing ones are left
        out, but for categories.
        """
        if isinstance(self.encoding, Category):
            own = self.encoding.each()
            return self._decoded(own), own
        own = self.of(X)
        present = own[~self._missing(own)]
        known = np.unique(present, axis=0)
        if len(known) > n_points and isinstance(self.encoding, Moment):
            # Days go with the parts of the calendar that they have had.
            known = known[np.linspace(0, len(known) - 1, n_points).round().astype(int)]
        elif len(known) > n_points:
            known = np.repeat(known[:1], n_points, axis=0)
            low, high = np.quantile(present[:, 0], _ENDS)
            known[:, 0] = np.linspace(low, high, n_points)
        return self._decoded(known), known

    @property
    def _has_indicator(self) -> bool:
        has = isinstance(self.encoding, AbstractMeasure | Moment)
        return has and self.encoding.imputation.has_indicator  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]

    def _missing(self, own: np.ndarray) -> np.ndarray:
        """Tell where numbers and moments are missing."""
        return own[:, -1] > 0 if self._has_indicator else np.isnan(own[:, 0])

    def _decoded(self, own: np.ndarray) -> np.ndarray:
        if isinstance(self.encoding, Category):
            if self.encoding.others:
                known = [*self.encoding.values, *self.encoding.others, ANOTHER, None]
                place = np.where(np.isnan(own[:, -1]), len(known) - 1, own[:, -1])
                return np.array(known, dtype=object)[place.astype(np.int64)]
            names = [*self.encoding.values, *[ANOTHER] * self.encoding.has_rest]
            names += [None] * self.encoding.has_indicator
            place = np.where(own.any(axis=1), own.argmax(axis=1), len(names))
            return np.array([*names, ANOTHER], dtype=object)[place]
        missing = self._missing(own)
        if isinstance(self.encoding, Moment):
            moments = (own[:, 0] * _DAY).round().astype(np.int64).astype("datetime64[us]")
            return np.where(missing, np.datetime64("NaT", "us"), moments)
        if isinstance(self.encoding, Boolean):
            truths = (own[:, 0] > 0).astype(object)
            truths[missing] = None
            return truths
        return np.where(missing, np.nan, own[:, 0])


def table_columns(fitted: Fitted) -> list[TableColumn]:
    """Give the columns of the table that a fit has learned from.

    Example:
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.explaining.columns import table_columns
        >>> model = DeepGPRegressor(Linear()).fit([[0.0, 1], [1, 1], [2, 0], [4, 3]], [0, 1, 2, 4])
        >>> [column.name for column in table_columns(model.fitted_)]
        ['column 0', 'column 1']
    """
    if fitted.encoder is None:
        names = _distinct(fitted.column_names)
        return [TableColumn(name, (place,)) for place, name in enumerate(names)]
    pairs = zip(fitted.encoder.columns, fitted.encoder.sources_by_column, strict=True)
    return [
        TableColumn(column.name, tuple(place for source in sources for place in source), column)
        for column, sources in pairs
        if sources
    ]


def _distinct(names: list[str]) -> list[str]:
    """Tell columns of the same name apart by their places."""
    return [
        f"{name} ({place})" if names.count(name) > 1 else name for place, name in enumerate(names)
    ]


def moment_in_words(value: np.datetime64) -> str | None:
    """Write a moment as its date, and its time where it has one; None where it is not known.

    Example:
        >>> import numpy as np
        >>> from bochner.explaining import moment_in_words
        >>> moment_in_words(np.datetime64("2023-12-31T00:00:00.000000"))
        '2023-12-31'
        >>> moment_in_words(np.datetime64("2023-12-31T09:30"))
        '2023-12-31 09:30:00'
    """
    text = str(value.astype("datetime64[s]")).replace("T00:00:00", "").replace("T", " ")
    return None if text == "NaT" else text
