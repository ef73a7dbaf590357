"""Metrics of a table that comes in parts: sums that add up, so that no part is needed twice."""

import dataclasses
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

from bochner.prediction import metrics
from bochner.prediction.ranks import RankedClasses


class AbstractScores:
    """Sums over rows; two of them add up to those of all their rows."""

    def __add__(self, other: Self) -> Self:
        if type(self) is not type(other):
            return NotImplemented
        values = {name: value + getattr(other, name) for name, value in vars(self).items()}
        return type(self)(**values)


@dataclasses.dataclass(frozen=True)
class Spread:
    """How far values of each target are from their mean, in squares, without loss of digits where that is large.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.scores import Spread
        >>> parts = [Spread.of(1e9 + np.array([[0.0], [1.0]])), Spread.of(1e9 + np.array([[5.0]]))]
        >>> (parts[0] + parts[1]).squares.tolist()  # of 0, 1 and 5 about 2
        [14.0]
    """

    n_rows: int
    mean: Float[np.ndarray, " targets"]
    squares: Float[np.ndarray, " targets"]

    @classmethod
    def of(cls, y: Float[np.ndarray, "n targets"]) -> "Spread":
        """Compute it of some rows."""
        if len(y) == 0:
            return cls(0, np.zeros(y.shape[1]), np.zeros(y.shape[1]))
        # From the first row on, so that the mean of equal values is that value and squares are zero.
        mean = y[0] + (y - y[:1]).mean(axis=0)
        return cls(len(y), mean, np.sum((y - mean[None]) ** 2, axis=0))

    def __add__(self, other: "Spread") -> "Spread":
        n = self.n_rows + other.n_rows
        share = other.n_rows / max(n, 1)
        apart = other.mean - self.mean
        squares = self.squares + other.squares + self.n_rows * share * apart**2
        return Spread(n, self.mean + share * apart, squares)


@dataclasses.dataclass(frozen=True)
class RegressionScores(AbstractScores):
    """What regression metrics are made of.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.scores import RegressionScores
        >>> y, draws = np.array([[0.0], [1.0]]), np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
        >>> one = RegressionScores.of(y, y + 3, np.zeros(2), draws, low=y - 1, high=y + 1)
        >>> (one + one).metrics()["rmse"], (one + one).n_rows
        (3.0, 4)
    """

    n_rows: int
    squared_error: Float[np.ndarray, " targets"]
    absolute_error: float
    spread: Spread
    log_prob: float
    crps: float
    covered: float

    @classmethod
    def of(
        cls,
        y: Float[np.ndarray, "n targets"],
        mean: Float[np.ndarray, "n targets"],
        log_prob: Float[np.ndarray, " n"],
        samples: Float[np.ndarray, "n targets draws"],
        *,
        low: Float[np.ndarray, "n targets"],
        high: Float[np.ndarray, "n targets"],
    ) -> "RegressionScores":
        """Sum over some rows."""
        n = len(y)
        if n == 0:
            return cls(0, np.zeros(y.shape[1]), 0.0, Spread.of(y), 0.0, 0.0, 0.0)
        return cls(
            n_rows=n,
            squared_error=np.sum((y - mean) ** 2, axis=0),
            absolute_error=n * metrics.mae(y, mean),
            spread=Spread.of(y),
            log_prob=-n * metrics.mnll(log_prob),
            crps=n * metrics.crps(y, samples),
            covered=n * metrics.coverage(y, low, high),
        )

    def metrics(self) -> dict[str, float]:
        """Give the metrics of all rows."""
        equal = np.any(self.spread.squares == 0)
        return {
            "rmse": float(np.sqrt(np.mean(self.squared_error) / self.n_rows)),
            "mae": self.absolute_error / self.n_rows,
            "r_squared": float("nan")
            if equal
            else float(np.mean(1 - self.squared_error / self.spread.squares)),
            "mnll": -self.log_prob / self.n_rows,
            "crps": self.crps / self.n_rows,
            "coverage_90": self.covered / self.n_rows,
        }


@dataclasses.dataclass(frozen=True)
class ClassificationScores(AbstractScores):
    """What classification metrics are made of.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.scores import ClassificationScores
        >>> probabilities = np.array([[0.1, 0.9]])
        >>> one = ClassificationScores.of(np.array([1]), probabilities, np.log([0.9]))
        >>> (one + one).metrics()["error_rate"]
        0.0
    """

    n_rows: int
    wrong: float
    log_prob: float
    brier: float
    ranks: RankedClasses
    bins: Float[np.ndarray, "3 bins"]  # sums of confidence and accuracy, and counts

    @classmethod
    def of(
        cls,
        labels: Int[np.ndarray, " n"],
        probabilities: Float[np.ndarray, "n classes"],
        log_prob: Float[np.ndarray, " n"],
    ) -> "ClassificationScores":
        """Sum over some rows."""
        n = len(labels)
        if n == 0:
            ranks = RankedClasses.of(labels, probabilities)
            return cls(0, 0.0, 0.0, 0.0, ranks, np.zeros((3, metrics.N_BINS)))
        confidence, accuracy, count = metrics.calibration_bins(labels, probabilities)
        return cls(
            n_rows=n,
            wrong=n * metrics.error_rate(labels, probabilities.argmax(axis=1)),
            log_prob=-n * metrics.mnll(log_prob),
            brier=n * metrics.brier(labels, probabilities),
            ranks=RankedClasses.of(labels, probabilities),
            bins=np.stack([confidence * count, accuracy * count, count.astype(np.float64)]),
        )

    def metrics(self) -> dict[str, float]:
        """Give the metrics of all rows."""
        confidence, accuracy, _ = self.bins
        return {
            "error_rate": self.wrong / self.n_rows,
            "auc": self.ranks.auc(),
            "mnll": -self.log_prob / self.n_rows,
            "brier": self.brier / self.n_rows,
            "ece": float(np.sum(np.abs(confidence - accuracy)) / self.n_rows),
        }


def metrics_by_group(scores: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give the number of rows and the metrics of each group.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.scores import ClassificationScores, metrics_by_group
        >>> found = ClassificationScores.of(np.array([1]), np.array([[0.1, 0.9]]), np.log([0.9]))
        >>> list(metrics_by_group({"north": found})["north"])
        ['rows', 'error_rate', 'auc', 'mnll', 'brier', 'ece']
    """
    return {name: {"rows": one.n_rows, **one.metrics()} for name, one in scores.items()}
