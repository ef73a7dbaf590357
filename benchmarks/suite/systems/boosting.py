"""What boosted trees share: a search over settings on held-out rows, and the choice of a law by held-out density."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.systems import Clock

_ROWS_FOR_FOLDS = 2_000
_N_FOLDS = 5
_LEAST_DEVIATION = 1e-3  # of the residuals' own


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


def parts(rows: TrainingRows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Give pairs of kept and held-out rows: five folds of a small table, a fifth of a large one."""
    if len(rows) <= _ROWS_FOR_FOLDS:
        return rows.folds(_N_FOLDS)
    return [rows.held_out(1 / _N_FOLDS)]


def search(
    rows: TrainingRows,
    clock: Clock,
    share: float,
    choices: Iterable[Mapping[str, Any]],
    fit: Callable[[Mapping[str, Any], np.ndarray, np.ndarray], Fitted],
) -> Found:
    """Give the settings with the lowest loss on held-out rows, as far as a share of the time goes.

    The settings come in an order that tries unlike ones first; the first are those that the package's users know.
    """
    best: Found | None = None
    for settings in choices:
        if best is not None and clock.is_over(share):
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
    assert best is not None  # as there is one choice at least
    return best


def log_density(residuals: np.ndarray, deviations: np.ndarray | float) -> float:
    """Compute the mean log density of residuals under Gaussians."""
    z = residuals / deviations
    return float(np.mean(-0.5 * z**2 - np.log(deviations) - 0.5 * np.log(2 * np.pi)))


def at_least(deviations: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Keep deviations from zero, as no residual of training rows says that there is no noise."""
    return np.maximum(deviations, _LEAST_DEVIATION * np.std(residuals) + np.finfo(float).tiny)
