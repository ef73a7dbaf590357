"""Which rows are left out together: whole groups, or all that are later than others."""

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int, Shaped

from bochner.exact.folds import folds_of_groups
from bochner.exact.sizes import whole_groups

Numbers = Int[np.ndarray, " some"]

_ENOUGH_GROUPS = 20
"""Groups to judge by, where they are not more than this share of the rows."""
_MOST_HELD_OUT = 1 / 3


@dataclasses.dataclass(frozen=True, eq=False)
class AbstractSplit(abc.ABC):
    """A value for each row that says which rows must not judge which.

    Attributes:
        values: one for each row.
        name: of the column that holds them, where they come from a table.
    """

    values: Shaped[np.ndarray, " n"]
    name: str | None = None
    option: ClassVar[str]

    def __getitem__(self, chosen: Any) -> Any:
        return dataclasses.replace(self, values=self.values[chosen])

    def check(self) -> None:
        """Refuse values of which there is but one."""
        if len(np.unique(self.values)) < 2:
            raise ValueError(f"`{self.option}` must hold {self._needed}; got one value only.")

    @property
    @abc.abstractmethod
    def _needed(self) -> str:
        """What it takes to leave rows out, for messages."""

    @property
    @abc.abstractmethod
    def in_words(self) -> str:
        """Say how rows are left out."""

    @abc.abstractmethod
    def held_out(self, n_rows: int, seed: int) -> Numbers:
        """Choose about so many rows to judge by."""

    @abc.abstractmethod
    def groups(self, alike: Numbers, judged: Numbers) -> Numbers:
        """Number the rows so that those of one number leave together.

        Args:
            alike: numbers of rows that are equal.
            judged: the rows to judge by.
        """

    def enough(self, n_rows: int) -> int:
        """Say how many rows it takes to judge by, where so many would be enough if they left one by one."""
        return n_rows

    def independent(self, judged: Numbers) -> int:
        """Count what is known of the judged rows apart from each other: rows, unless there is reason to say less."""
        return len(judged)

    @abc.abstractmethod
    def folds(self, n_folds: int, seed: int) -> list[tuple[Numbers, Numbers]]:
        """Give rows to learn from and rows to test on, so many times."""

    def _of_column(self) -> str:
        return "" if self.name is None else f" of {self.name!r}"


class ByGroups(AbstractSplit):
    """Rows of the same value, such as a patient, are left out together.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.splits import ByGroups
        >>> patients = ByGroups(np.array(["a", "a", "b", "c", "b"]))
        >>> [test.tolist() for _, test in patients.folds(3, seed=0)]
        [[0, 1], [2, 4], [3]]
    """

    option = "groups"

    @property
    def _needed(self) -> str:
        return "two groups or more, as whole ones are left out"

    @property
    def in_words(self) -> str:  # noqa: D102
        return f"whole groups{self._of_column()} left out"

    @property
    def _numbers(self) -> Numbers:
        return np.unique(self.values, return_inverse=True)[1]

    def held_out(self, n_rows, seed):  # noqa: D102
        return whole_groups(self._numbers, n_rows, seed)[0]

    def enough(self, n_rows):
        """Say how many rows it takes to judge by: more, where so many were few groups; a third of all at most."""
        n = len(self.values)
        of_groups = _ENOUGH_GROUPS * n / (self._numbers.max() + 1)
        return round(max(n_rows, min(of_groups, _MOST_HELD_OUT * n)))

    def groups(self, alike, judged):  # noqa: D102
        return self._numbers

    def independent(self, judged):  # noqa: D102
        return len(np.unique(self._numbers[judged]))

    def folds(self, n_folds, seed):  # noqa: D102
        fold = folds_of_groups(self._numbers, n_folds, seed)
        return [
            (np.flatnonzero(fold != k), np.flatnonzero(fold == k))
            for k in range(int(fold.max()) + 1)
        ]


class ByTime(AbstractSplit):
    """Later rows judge what was learned from earlier ones; rows of one moment stay together.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.splits import ByTime
        >>> years = ByTime(np.array([2003.0, 2001.0, 2002.0, 2003.0]))
        >>> years.held_out(1, seed=0).tolist()
        [0, 3]
        >>> [(train.tolist(), test.tolist()) for train, test in years.folds(2, seed=0)]
        [([1], [2]), ([1, 2], [0, 3])]
    """

    option = "time"

    @property
    def _needed(self) -> str:
        return "two moments or more, as later rows judge earlier ones"

    @property
    def in_words(self) -> str:  # noqa: D102
        return f"later rows{self._of_column()} left out"

    def held_out(self, n_rows, seed):  # noqa: D102
        moments, counts = np.unique(self.values, return_counts=True)
        later = np.cumsum(counts[::-1])[:-1]  # rows of the last moment, of the last two, and so on
        n_moments = int(np.argmin(np.abs(later - n_rows))) + 1
        return np.flatnonzero(self.values >= moments[-n_moments])

    def groups(self, alike, judged):  # noqa: D102
        numbers = alike.copy()
        numbers[judged] = numbers.max(initial=0) + 1
        return np.unique(numbers, return_inverse=True)[1]

    def folds(self, n_folds, seed):  # noqa: D102
        moments, counts = np.unique(self.values, return_counts=True)
        # The stretch of a moment is that of the middle one of its rows.
        middle = (np.cumsum(counts) - counts / 2) / len(self.values)
        stretch = np.unique((middle * (n_folds + 1)).astype(int), return_inverse=True)[1]
        of_rows = stretch[np.searchsorted(moments, self.values)]
        return [
            (np.flatnonzero(of_rows < k), np.flatnonzero(of_rows == k))
            for k in range(1, int(of_rows.max()) + 1)
        ]


def folds_at_random(
    labels: Shaped[np.ndarray, " n"], n_folds: int, seed: int
) -> list[tuple[Numbers, Numbers]]:
    """Give rows to learn from and rows to test on, so many times, with about the same labels in each.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.splits import folds_at_random
        >>> labels = np.array(["a", "b"] * 3)
        >>> [sorted(labels[test].tolist()) for _, test in folds_at_random(labels, 3, seed=0)]
        [['a', 'b'], ['a', 'b'], ['a', 'b']]
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), int)
    fold[order] = np.arange(len(labels)) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def split_of(groups: Any, time: Any, n_rows: int) -> AbstractSplit | None:
    """Read what a user says of groups or of time.

    Example:
        >>> from bochner.fitting.splits import split_of
        >>> split_of(None, ["2024-01-01", "2024-02-01"], 2).in_words
        'later rows left out'
    """
    if groups is not None and time is not None:
        raise ValueError("give `groups` or `time`, not both: each says which rows leave together.")
    given = groups if time is None else time
    if given is None:
        return None
    option = "groups" if time is None else "time"
    values = np.asarray(given)
    if values.shape != (n_rows,):
        raise ValueError(
            f"`{option}` must have one entry for each of the {n_rows} rows; got shape {values.shape}."
        )
    return ByGroups(values) if time is None else ByTime(_moments(values))


def _moments(values: np.ndarray) -> np.ndarray:
    """Give moments as numbers that have their order."""
    if values.dtype.kind not in "iufbM":
        try:
            values = values.astype("datetime64[ns]")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`time` must hold numbers or dates; got {values.tolist()[0]!r}."
            ) from error
    missing = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if missing.any():
        raise ValueError(
            f"`time` must be known for each row; it is missing in row {int(np.argmax(missing))}."
        )
    return values
