"""What predictions are worth: proper scores in units of the target, by `scoringrules` where it has them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scoringrules

from bochner.prediction import metrics
from experiments.baselines.predictive import GaussianMixture

COVERAGES = (0.5, 0.9, 0.99)
_N_SIMULATED = 200
_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)  # as scikit-learn's log loss has it


class Law(Protocol):
    """Predictive laws of some rows, in units of the target."""

    @property
    def mean(self) -> np.ndarray:
        """The mean of each row."""
        ...

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Compute each row's log density."""
        ...

    def interval(self, coverage: float) -> np.ndarray:
        """Compute central intervals: lower and upper end along the last axis."""
        ...


@runtime_checkable
class LawOfPoints(Law, Protocol):
    """Predictive laws that give mass to single numbers: no interval of such numbers has any given probability."""

    def ranks(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the probability of less than each row's target, and of no more than it."""
        ...


@dataclasses.dataclass(frozen=True)
class Regression:
    """What a system predicts for rows with a number as target.

    Attributes:
        law: gives density and intervals.
        mean: the best prediction by squared error, where it is not the law's mean.
        draws: rows by draws from the law, where its CRPS has no closed form.
        about: what else the record shall hold.
    """

    law: Law
    mean: np.ndarray | None = None
    draws: np.ndarray | None = None
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def scores(self, y: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
        """Give the scores, and each row's log density."""
        densities = self.law.log_density(y)
        found = {
            "log_likelihood": float(np.mean(densities)),
            "crps": float(np.mean(_crps(self, y))),
            "rmse": metrics.rmse(y, self.law.mean if self.mean is None else self.mean),
        }
        for coverage in COVERAGES:
            found[f"coverage_{round(100 * coverage)}"] = _coverage(self.law, y, coverage)
        return found, densities


@dataclasses.dataclass(frozen=True)
class Classes:
    """What a system predicts for rows with a class as target.

    Attributes:
        probabilities: of each class, rows by classes.
        about: what else the record shall hold.
    """

    probabilities: np.ndarray
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def scores(self, labels: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
        """Give the scores, and each row's log probability of its class."""
        chosen = self.probabilities[np.arange(len(labels)), labels]
        logs = np.log(np.maximum(chosen, _LEAST_PROBABILITY))
        return {
            "log_likelihood": float(np.mean(logs)),
            "brier": metrics.brier(labels, self.probabilities),
            "error_rate": metrics.error_rate(labels, self.probabilities.argmax(axis=1)),
            "ece": metrics.ece(labels, self.probabilities),
            "ece_by_chance": _ece_by_chance(self.probabilities),
        }, logs


def _ece_by_chance(probabilities: np.ndarray) -> float:
    """Give what the calibration error of right probabilities stays below in 95 of 100 tables of this size."""
    generator = np.random.default_rng(0)
    ends = np.cumsum(probabilities, axis=1)
    errors = []
    for _ in range(_N_SIMULATED):
        drawn = (generator.random((len(ends), 1)) * ends[:, -1:] > ends[:, :-1]).sum(axis=1)
        errors.append(metrics.ece(drawn, probabilities))
    return float(np.quantile(errors, 0.95))


def _coverage(law: Law, y: np.ndarray, coverage: float) -> float:
    """Give the share of targets in central intervals, or of randomized ranks where laws are of points.

    A randomized rank is uniform between the probabilities below and up to the target; it is uniform on (0, 1) if the
    laws are right. Its expected share is taken, so that nothing is drawn.
    """
    if not isinstance(law, LawOfPoints):
        low, high = law.interval(coverage).T
        return metrics.coverage(y, low, high)
    below, up_to = law.ranks(y)
    low, high = (1 - coverage) / 2, (1 + coverage) / 2
    inside = np.minimum(up_to, high) - np.maximum(below, low)
    mass = np.maximum(up_to - below, np.finfo(float).tiny)
    return float(np.mean(np.clip(inside / mass, 0, 1)))


def _crps(prediction: Regression, y: np.ndarray) -> Any:
    law = prediction.law
    if prediction.draws is not None:
        return scoringrules.crps_ensemble(y, prediction.draws, estimator="pwm")  # pyright: ignore[reportArgumentType]
    assert isinstance(law, GaussianMixture)  # as all laws without draws are
    if len(law.means) == 1:
        return scoringrules.crps_normal(y, law.means[0], law.deviations[0])
    return law.crps(y)
