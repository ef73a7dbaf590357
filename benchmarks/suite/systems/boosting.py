"""What boosted trees share: a search over settings on held-out rows, and the choice of a law by held-out density."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.systems import Clock

_ROWS_FOR_FOLDS = 2_000
_N_FOLDS = 5
_LEAST_DEVIATION = 1e-3  # of the residuals' own
# A search that has tried so many settings is done, whether or not more would have fitted in the time.
_ENOUGH_CHOICES = 4
_SHARE_OF_ONE_FIT = 0.95
_CHOICES_TO_PLAN = 8
_FASTEST_RATE = 0.3
_PILOT_TREES = 20
_TREES_AT_RATE_ONE, _MOST_TREES_AT_RATE_ONE, _PATIENCE_AT_RATE_ONE = 60, 250, 5


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A model at one stopping point, with what it says of the rows that it was stopped by.

    Attributes:
        loss: on the held-out rows.
        n_trees: where the loss was lowest.
        predicted: for the held-out rows.
    """

    loss: float
    n_trees: int
    predicted: np.ndarray


@dataclasses.dataclass(frozen=True)
class Found:
    """The best of the settings.

    Attributes:
        settings: their values.
        n_trees: mean over folds.
        rows: that were held out by some fold.
        predicted: for these rows, by models that had not seen them.
        loss: mean over these rows.
    """

    settings: Mapping[str, Any]
    n_trees: int
    rows: np.ndarray
    predicted: np.ndarray
    loss: float


@dataclasses.dataclass(frozen=True)
class Pace:
    """How trees are added: a slow rate where there is time for its many trees.

    Attributes:
        rate: of learning.
        is_tight: whether there was no time for a slower one.
    """

    rate: float
    is_tight: bool = False

    @property
    def most_trees(self) -> int:
        """After which no more are added."""
        return math.ceil(_MOST_TREES_AT_RATE_ONE / self.rate)

    @property
    def patience(self) -> int:
        """Trees without a gain on held-out rows that end a fit."""
        return math.ceil(_PATIENCE_AT_RATE_ONE / self.rate)

    @classmethod
    def in_time(
        cls,
        rows: TrainingRows,
        clock: Clock,
        share: float,
        fit: Callable[[int], object],
        *,
        slowest: float,
    ) -> "Pace":
        """Choose the rate, from `slowest` on, at which eight settings take a share of the time.

        `fit` adds so many trees, of which a few are timed.
        """
        started = clock.used()
        fit(_PILOT_TREES)
        seconds = (clock.used() - started) / _PILOT_TREES
        n_fits = _CHOICES_TO_PLAN * len(parts(rows)) + 1
        n_trees = share * clock.limit / n_fits / max(seconds, 1e-9)
        rate = _TREES_AT_RATE_ONE / n_trees
        return cls(float(np.clip(rate, slowest, _FASTEST_RATE)), is_tight=rate > slowest)


def parts(rows: TrainingRows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Give pairs of kept and held-out rows: five folds of a small table, a fifth of a large one."""
    if len(rows) <= _ROWS_FOR_FOLDS:
        return rows.folds(_N_FOLDS)
    return [rows.held_out(1 / _N_FOLDS)]


def must_end(clock: Clock) -> bool:
    """Whether a fit must take the trees that it has, as little time is left."""
    return clock.used() > _SHARE_OF_ONE_FIT * clock.limit


def search(
    rows: TrainingRows,
    clock: Clock,
    share: float,
    choices: Iterable[Mapping[str, Any]],
    fit: Callable[[Mapping[str, Any], np.ndarray, np.ndarray], Fitted],
    enough: int = _ENOUGH_CHOICES,
) -> Found:
    """Give the settings with the lowest loss on held-out rows, of those that fit in a share of the time.

    The settings come in an order that tries unlike ones first; the first are those that the package's users know. The
    record says "stopped" where fewer than `enough` came to their end.
    """
    best: Found | None = None
    started, tried = clock.used(), 0
    for settings in choices:
        one_more = (clock.used() - started) / max(tried, 1)
        if tried and clock.used() + one_more > share * clock.limit:
            break
        fits = [(held_out, fit(settings, kept, held_out)) for kept, held_out in parts(rows)]
        sizes = [len(held_out) for held_out, _ in fits]
        loss = float(np.average([one.loss for _, one in fits], weights=sizes))
        if best is None or loss < best.loss:
            best = Found(
                settings,
                max(round(float(np.mean([one.n_trees for _, one in fits]))), 1),
                np.concatenate([held_out for held_out, _ in fits]),
                np.concatenate([one.predicted for _, one in fits]),
                loss,
            )
        if must_end(clock):
            break
        tried += 1
    clock.stopped |= tried < enough
    assert best is not None  # as there is one choice at least
    return best


def log_density(residuals: np.ndarray, deviations: np.ndarray | float) -> float:
    """Compute the mean log density of residuals under Gaussians."""
    z = residuals / deviations
    return float(np.mean(-0.5 * z**2 - np.log(deviations) - 0.5 * np.log(2 * np.pi)))


def at_least(deviations: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Keep deviations from zero, as no residual of training rows says that there is no noise."""
    return np.maximum(deviations, _LEAST_DEVIATION * np.std(residuals) + np.finfo(float).tiny)
