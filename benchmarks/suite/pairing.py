"""Two systems on the same test rows: the difference of their log-likelihoods, and how sure it is."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping

import numpy as np

from benchmarks.suite import tables
from benchmarks.suite.records import Key, Record
from benchmarks.suite.work import unpacked

_CLEAR = 2.0  # standard errors


@dataclasses.dataclass(frozen=True)
class Difference:
    """By how much one system's mean log-likelihood is above another's.

    Attributes:
        value: mean over splits.
        error: its standard error; a row that is a test row of several splits counts once, with its mean.
    """

    value: float
    error: float

    @property
    def verdict(self) -> str:
        """Say `win`, `loss`, or, within two standard errors, `tie`."""
        if abs(self.value) <= _CLEAR * self.error:
            return "tie"
        return "win" if self.value > 0 else "loss"


def is_whole(record: Record | None) -> bool:
    """Whether a record has scores of a system that ended by itself."""
    return record is not None and "scores" in record and not record["stopped"]


def common_splits(
    records: Mapping[Key, Record], systems: Iterable[str], name: str
) -> tuple[int, ...]:
    """Give the splits of a table for which all of some systems have whole records."""
    return tuple(
        split
        for split in tables.splits_of(name)
        if all(is_whole(records.get((system, name, split))) for system in systems)
    )


def difference(
    one: Mapping[int, Record], other: Mapping[int, Record], name: str
) -> Difference | None:
    """Compare the records of two systems on the splits of a table that both have, if any.

    Args:
        one: records by split.
        other: records by split.
        name: of the table.
    """
    sums: dict[int, list[float]] = {}
    means = []
    for split in sorted(set(one) & set(other)):
        first, second = (unpacked(records[split]["densities"]) for records in (one, other))
        found = first - second
        means.append(
            one[split]["scores"]["log_likelihood"] - other[split]["scores"]["log_likelihood"]
        )
        for row, value in zip(_test_rows(name, split, len(found)), found, strict=True):
            sums.setdefault(int(row), []).append(float(value))
    if not means:
        return None
    of_rows = np.array([np.mean(values) for values in sums.values()])
    deviation = of_rows.std(ddof=1) if len(of_rows) > 1 else np.inf
    return Difference(float(np.mean(means)), float(deviation / np.sqrt(len(of_rows))))


@functools.lru_cache(maxsize=4096)
def _test_rows(name: str, split: int, n_densities: int) -> tuple[int, ...]:
    """Number the test rows of a split of random tenths, so that a row is known again in another split."""
    n = tables.n_rows(name)
    rows = np.random.default_rng(split).permutation(n)[: n // 10]
    if name in tables.RANDOM and len(rows) == n_densities:
        return tuple(rows.tolist())
    # Published splits and whole groups: rows of different splits are taken for different ones.
    return tuple(range(split * n, split * n + n_densities))
