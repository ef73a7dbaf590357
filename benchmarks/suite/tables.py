"""The tables of the suite by name: where they are read, how many splits each has, and which rows of a split are tests.

To add a table, add a line: `_PARQUET` for one with `target` and `task` in its schema's metadata, `_ARRAYS` for one that
`bochner.datasets` loads, `_NOT_RANDOM` for one whose test rows are no random tenth.
"""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

_PARQUET = {
    "abalone": 4177, "adult": 32561, "airfoil": 1503, "autompg": 392, "autoPrice": 159, "banana": 5300, "bike": 17379,
    "chess": 3196, "cholesterol": 303, "contraceptive": 1473, "elevators": 16599, "german": 1000, "heart": 270,
    "hypothyroid": 3772, "ionosphere": 351, "keggdirected": 48827, "led7digit": 500, "machine": 209,
    "mammographic": 830, "optdigits": 5620, "page-blocks": 5472, "parkinsons": 5875, "pbc": 418, "pendulum": 630,
    "phoneme": 5404, "pumadyn32nm": 8192, "ring": 7400, "segment": 2310, "sensory": 576, "servo": 167,
    "sml": 4137, "sonar": 208, "stock": 536, "tae": 151, "titanic": 2201, "vehicle": 846, "wdbc": 569,
}  # fmt: skip
"""Rows of each Parquet file in the folder `suite` of the data."""

_ARRAYS = {
    "airline_nyc2013": 273853, "boston": 506, "concrete": 1030, "credit": 1000, "eeg": 14980, "energy": 768,
    "kin40k": 40000, "mnist": 70000, "powerplant": 9568, "protein": 45730, "spam": 4601, "wine_red": 1599, "yacht": 308,
}  # fmt: skip
"""Rows of each data set that `bochner.datasets` loads."""

# The first ten of the standard splits were looked at while the method was explored; protein has only five.
_UNSEEN = range(10, 15)
_STANDARD = {
    **dict.fromkeys(("boston", "concrete", "energy", "powerplant", "wine_red", "yacht"), _UNSEEN),
    "protein": range(5),
    "mnist": range(1),
    "airline_nyc2013": range(1),
}
ALL_STANDARD = {name: range(20) for name, splits in _STANDARD.items() if splits == _UNSEEN}
"""Tables with twenty standard splits, of which ours runs all."""

_WITHIN_TWO_MINUTES = 15_000
_SECONDS, _MORE_SECONDS = 120.0, 300.0


@dataclasses.dataclass(frozen=True)
class Table:
    """A table with its target.

    Attributes:
        rows: all columns, text as text, missing values missing.
        target: name of the target's column.
        classification: whether the target names classes.
        splits: test rows of its published splits, if any.
    """

    rows: pa.Table
    target: str
    classification: bool
    splits: tuple[np.ndarray, ...] = ()


@dataclasses.dataclass(frozen=True)
class Groups:
    """Rows that may not be split between training and held-out rows.

    Attributes:
        of_rows: the number of each row's group.
        in_time: whether groups follow each other in time, so that later ones are held out to judge earlier ones.
    """

    of_rows: np.ndarray
    in_time: bool


@dataclasses.dataclass(frozen=True)
class _NotRandom:
    """Test rows that keep together what belongs together.

    Attributes:
        source: the table that it is made of.
        n_splits: how many splits there are.
        groups: gives the groups of all rows.
        test_groups: gives the groups that are tests in a split.
        dropped: columns that name the groups, and say nothing of new ones.
    """

    source: str
    n_splits: int
    groups: Callable[[pa.Table], Groups]
    test_groups: Callable[[int, np.ndarray], np.ndarray]
    dropped: tuple[str, ...] = ()


def _stretches(rows: pa.Table) -> Groups:
    return Groups(np.arange(rows.num_rows) * 20 // rows.num_rows, in_time=True)


def _subjects(rows: pa.Table) -> Groups:
    return Groups(np.unique(rows["x0"].to_numpy(), return_inverse=True)[1], in_time=False)


def _months(rows: pa.Table) -> Groups:
    return Groups(rows["month"].to_numpy().astype(int), in_time=True)


def _random_tenth(split: int, groups: np.ndarray) -> np.ndarray:
    order = np.random.default_rng(split).permutation(groups)
    return order[: max(len(groups) // 10, 1)]


_NOT_RANDOM = {
    # Two neighboring stretches of twenty.
    "eeg in time": _NotRandom(
        "eeg", 5, _stretches, lambda split, groups: groups[[4 * split, 4 * split + 1]]
    ),
    "parkinsons by subject": _NotRandom("parkinsons", 5, _subjects, _random_tenth, ("x0",)),
    "flights by month": _NotRandom(
        "airline_nyc2013", 1, _months, lambda _, groups: np.sort(groups)[-2:]
    ),
}

NAMES = tuple(
    sorted({**_PARQUET, **_ARRAYS}, key=lambda name: {**_PARQUET, **_ARRAYS}[name])
) + tuple(_NOT_RANDOM)
"""All tables, the smallest first, those without random test rows last."""


RANDOM = frozenset(name for name in NAMES if name not in _NOT_RANDOM and name not in _STANDARD)
"""Tables whose test rows are random tenths."""


def source_of(name: str) -> str:
    """Give the table that another one is made of, else its own name.

    Example:
        >>> from benchmarks.suite.tables import source_of
        >>> source_of("eeg in time"), source_of("yacht")
        ('eeg', 'yacht')
    """
    return _NOT_RANDOM[name].source if name in _NOT_RANDOM else name


def n_rows(name: str) -> int:
    """Give the number of rows of a table without reading it."""
    return {**_PARQUET, **_ARRAYS}[source_of(name)]


def splits_of(name: str) -> tuple[int, ...]:
    """Give the splits that all systems run: fewer, the more rows there are.

    Example:
        >>> from benchmarks.suite.tables import splits_of
        >>> splits_of("servo"), splits_of("yacht"), splits_of("bike")
        ((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (10, 11, 12, 13, 14), (0,))
    """
    if name in _NOT_RANDOM:
        return tuple(range(_NOT_RANDOM[name].n_splits))
    if name in _STANDARD:
        return tuple(_STANDARD[name])
    n = n_rows(name)
    return tuple(range(10 if n < 500 else 5 if n < 5_000 else 2 if n <= 15_000 else 1))


def seconds_of(name: str) -> float:
    """Give the processor seconds that a fit may take."""
    return _SECONDS if n_rows(name) <= _WITHIN_TWO_MINUTES else _MORE_SECONDS


def load(name: str) -> Table:
    """Read a table from the folder in `BOCHNER_DATA`."""
    source = source_of(name)
    table = _parquet(source) if source in _PARQUET else _arrays(source)
    if table.rows.num_rows != n_rows(name):
        raise ValueError(
            f"{source} must have {n_rows(name):,} rows; the file has {table.rows.num_rows:,}."
        )
    return table


def _parquet(name: str) -> Table:
    folder = os.environ.get("BOCHNER_DATA")
    if not folder:
        raise FileNotFoundError(
            f"BOCHNER_DATA is not set; it must name the folder that holds suite/{name}.parquet."
        )
    rows = parquet.read_table(Path(folder) / "suite" / f"{name}.parquet")
    told = {key.decode(): value.decode() for key, value in rows.schema.metadata.items()}
    return Table(
        rows.replace_schema_metadata(None), told["target"], told["task"] == "classification"
    )


def _arrays(name: str) -> Table:
    from bochner import datasets  # not at the top: it brings JAX, which rivals do without

    data = datasets.load(name)
    target = data.target_name or "class"
    columns = dict(zip(data.feature_names, np.asarray(data.X).T, strict=True))
    rows = pa.table({**columns, target: data.y})
    return Table(rows, target, data.is_classification, data.splits)


@dataclasses.dataclass(frozen=True)
class Split:
    """Which rows of a table train and which test.

    Attributes:
        training: numbers of rows.
        test: numbers of rows.
        groups: of the training rows, where these may not be torn apart.
        dropped: columns to leave out.
    """

    training: np.ndarray
    test: np.ndarray
    groups: Groups | None = None
    dropped: tuple[str, ...] = ()


def _random_test_rows(n: int, number: int) -> np.ndarray:
    return np.random.default_rng(number).permutation(n)[: n // 10]


def split(name: str, number: int, table: Table) -> Split:
    """Give the training and test rows of a split: a random tenth by its seed, a published split, or whole groups."""
    n = table.rows.num_rows
    if name not in _NOT_RANDOM:
        test = table.splits[number] if table.splits else _random_test_rows(n, number)
        return Split(np.setdiff1d(np.arange(n), test), test)
    rule = _NOT_RANDOM[name]
    groups = rule.groups(table.rows)
    tests = rule.test_groups(number, np.unique(groups.of_rows))
    tested = np.isin(groups.of_rows, tests)
    training = np.flatnonzero(~tested)
    kept = Groups(groups.of_rows[training], groups.in_time)
    return Split(training, np.flatnonzero(tested), kept, rule.dropped)
