"""What a regression baseline predicts for each row: an equal mixture of Gaussians, one for each draw."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy.special import erf, ndtr, ndtri

from bochner.prediction import metrics

_N_BISECTIONS = 60


@dataclasses.dataclass(frozen=True)
class GaussianMixture:
    """Predictive laws of some rows, in units of the target.

    Attributes:
        means: one line a draw; a plain Gaussian has one.
        deviations: standard deviations, of the same shape.

    Example:
        >>> import numpy as np
        >>> from experiments.baselines.predictive import GaussianMixture
        >>> law = GaussianMixture.of_one(np.array([0.0]), np.array([1.0]))
        >>> law.interval(0.95).round(2).tolist()
        [[-1.96, 1.96]]
    """

    means: np.ndarray
    deviations: np.ndarray

    def __post_init__(self):
        if self.means.shape != self.deviations.shape or self.means.ndim != 2:
            raise ValueError(
                "`means` and `deviations` must be two matrices of one shape, a line for each draw; got shapes "
                f"{self.means.shape} and {self.deviations.shape}."
            )

    @classmethod
    def of_one(cls, mean: np.ndarray, deviation: np.ndarray | float) -> "GaussianMixture":
        """Make plain Gaussians; one deviation may serve all rows."""
        mean = np.asarray(mean, float)[None]
        return cls(mean, np.broadcast_to(np.asarray(deviation, float), mean.shape))

    @property
    def mean(self) -> np.ndarray:
        """The mean of each row."""
        return self.means.mean(axis=0)

    @property
    def variance(self) -> np.ndarray:
        """The variance of each row, by the law of total variance."""
        return self.means.var(axis=0) + np.mean(self.deviations**2, axis=0)

    def rescaled(self, center: float, scale: float) -> "GaussianMixture":
        """Give the law of `center + scale * y`."""
        return GaussianMixture(center + scale * self.means, scale * self.deviations)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Compute each row's log density."""
        z = (y - self.means) / self.deviations
        logs = -0.5 * z**2 - np.log(self.deviations) - 0.5 * math.log(2 * math.pi)
        return np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))

    def quantiles(self, levels: Sequence[float]) -> np.ndarray:
        """Compute quantiles along the last axis, by bisection of the mixture's distribution function."""
        return np.stack([self._quantile(level) for level in levels], axis=-1)

    def _quantile(self, level: float) -> np.ndarray:
        # A mixture's quantile lies between the smallest and the largest of its parts' quantiles.
        ends = self.means + ndtri(level) * self.deviations
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(_N_BISECTIONS if len(ends) > 1 else 0):
            middle = 0.5 * (low + high)
            below = ndtr((middle - self.means) / self.deviations).mean(axis=0) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def interval(self, coverage: float) -> np.ndarray:
        """Compute central intervals: lower and upper end along the last axis."""
        return self.quantiles([(1 - coverage) / 2, (1 + coverage) / 2])

    def crps(self, y: np.ndarray) -> float:
        """Compute the continuous ranked probability score, `E|Y - y| - E|Y - Y'| / 2`, in closed form."""
        error = _mean_distance(y - self.means, self.deviations).mean(axis=0)
        spread = np.zeros_like(error)
        for mean, deviation in zip(self.means, self.deviations, strict=True):
            both = np.sqrt(deviation**2 + self.deviations**2)
            spread += _mean_distance(mean - self.means, both).mean(axis=0)
        return float(np.mean(error - 0.5 * spread / len(self.means)))


def regression_scores(law: GaussianMixture, y: np.ndarray) -> dict[str, float]:
    """Measure predictions as `DeepGPRegressor.evaluate` does."""
    low, high = law.interval(0.9).T
    return {
        "rmse": metrics.rmse(y, law.mean),
        "mnll": metrics.mnll(law.log_density(y)),
        "crps": law.crps(y),
        "coverage_90": metrics.coverage(y, low, high),
    }


def classification_scores(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Measure predictions as `DeepGPClassifier.evaluate` does; labels are indices of classes."""
    chosen = probabilities[np.arange(len(labels)), labels]
    return {
        "error_rate": metrics.error_rate(labels, probabilities.argmax(axis=1)),
        # Trees and networks may give a true class no probability at all in single precision.
        "mnll": metrics.mnll(np.log(np.maximum(chosen, np.finfo(np.float32).tiny))),
        "brier": metrics.brier(labels, probabilities),
        "ece": metrics.ece(labels, probabilities),
    }


def _mean_distance(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Compute `E|Z|` of Gaussian Z."""
    z = mean / deviation
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    return mean * erf(z / math.sqrt(2)) + 2 * deviation * density
