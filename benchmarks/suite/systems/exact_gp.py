"""An exact Gaussian process: ARD kernel with a linear part, restarts; classes through Dirichlet targets.

Kernels (RBF, Matern 5/2, Matern 3/2; one lengthscale, or one for each column) are fitted by marginal likelihood from
several starts, and the one under which rows have the highest density given all other rows is taken. Classes are
regressed on the logarithms of Dirichlet draws (Milios et al., 2018), all classes exactly with one ARD kernel: with
scikit-learn's `GaussianProcessClassifier` a kernel for each class would have to be learned through Laplace's
approximation, which allows no restart in the time.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from scipy.special import softmax
from scipy.stats import norm, qmc
from sklearn.gaussian_process import GaussianProcessRegressor

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from benchmarks.suite.systems.evidence import SHAPES, Evidence, Hyperparameters
from experiments.baselines.predictive import GaussianMixture

_ROWS_TO_SEARCH = 600  # fewer for several processes
_STARTS = ((1.0, 0.1), (3.0, 0.01), (0.4, 0.01))
"""Lengthscales in units of the distance between rows, and variances of the noise."""
_MOST_TIED, _MOST_FREE, _MOST_ON_MORE_ROWS = 50, 200, 40  # evaluations
_SHARE_OF_SEARCH, _SHARE_OF_ALL = 0.5, 0.85
_STRENGTHS = (0.01, 0.1, 0.3, 0.001)  # added to the counts of the Dirichlet laws
_TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
_KNOWN_NOISE = math.log(1e-6)
_N_DRAWS = 256


class ExactGP:
    """Gaussian noise; or classes by a softmax of the latent processes."""

    def law(self, classification: bool) -> str:
        return "probabilities" if classification else "Gaussian"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        X = rows.matrix.X
        if rows.classes is None:
            return _regression(rows, X, clock)
        return _classes(rows, X, len(rows.classes), clock)


@dataclasses.dataclass(frozen=True)
class _Targets:
    """What the processes are conditioned on.

    Attributes:
        center: of each process.
        Y: from the centers on, a column for each process.
        noises: known variances.
        labels: classes of the rows, where the targets stand for such.
    """

    center: np.ndarray
    Y: np.ndarray
    noises: np.ndarray
    labels: np.ndarray | None = None

    @classmethod
    def numbers(cls, y: np.ndarray) -> "_Targets":
        return cls(np.zeros(1), y[:, None], np.zeros((len(y), 1)))

    @classmethod
    def classes(cls, labels: np.ndarray, n_classes: int, strength: float) -> "_Targets":
        """Give the moments of the logarithms of Gamma laws, whose shares are the Dirichlet law."""
        counts = np.eye(n_classes)[labels] + strength
        noises = np.log1p(1 / counts)
        logs = np.log(counts) - 0.5 * noises
        return cls(logs.mean(axis=0), logs - logs.mean(axis=0), noises, labels)

    def of(self, numbers: np.ndarray) -> "_Targets":
        labels = None if self.labels is None else self.labels[numbers]
        return _Targets(self.center, self.Y[numbers], self.noises[numbers], labels)

    def evidence(self, shape: str, X: np.ndarray) -> Evidence:
        return Evidence(SHAPES[shape], X, self.Y, self.noises)

    def score(self, evidence: Evidence, at: Hyperparameters) -> tuple[float, float]:
        """Compute the mean log density of rows given all others, or log probability and its best temperature."""
        means, variances = evidence.left_out(at)
        if self.labels is None:
            return float(norm.logpdf(self.Y, means, np.sqrt(variances)).mean()), 1.0
        deviations = np.sqrt(np.maximum(variances - self.noises, 0.0))
        rows, scores = np.arange(len(self.labels)), []
        for temperature in _TEMPERATURES:
            found = _probabilities(means + self.center, deviations, temperature)[rows, self.labels]
            scores.append((float(np.log(np.maximum(found, 1e-12)).mean()), temperature))
        return max(scores)


@dataclasses.dataclass(frozen=True)
class _Found:
    """A fitted kernel.

    Attributes:
        score: of rows given the others.
        temperature: that it is best at.
        shape: name of the kernel.
        at: its hyperparameters.
        targets: that it was fitted to.
    """

    score: float
    temperature: float
    shape: str
    at: Hyperparameters
    targets: _Targets

    def models(self, X: np.ndarray) -> list[GaussianProcessRegressor]:
        """Give the processes, each conditioned on its targets."""
        kernel, noise = self.at.kernel(SHAPES[self.shape]), np.exp(self.at.noise)
        return [
            GaussianProcessRegressor(kernel, alpha=noises + noise, optimizer=None).fit(X, y)  # pyright: ignore[reportArgumentType]
            for y, noises in zip(self.targets.Y.T, self.targets.noises.T, strict=True)
        ]


def _regression(rows: TrainingRows, X: np.ndarray, clock: Clock) -> Predictor:
    center, scale = rows.y.mean(), rows.y.std() or 1.0
    targets = _Targets.numbers((rows.y - center) / scale)
    found = _search(X, [targets], rows.seed, clock)
    (model,), noise = found.models(X), np.exp(found.at.noise)

    def predict(inputs: pa.Table) -> Prediction:
        mean, deviation = model.predict(rows.matrix(inputs), return_std=True)
        law = GaussianMixture.of_one(mean, np.sqrt(deviation**2 + noise))  # pyright: ignore[reportOperatorIssue]
        return Regression(law.rescaled(center, scale))

    return predict


def _classes(rows: TrainingRows, X: np.ndarray, n_classes: int, clock: Clock) -> Predictor:
    choices = [_Targets.classes(rows.y, n_classes, strength) for strength in _STRENGTHS]
    found = _search(X, choices, rows.seed, clock)
    models = found.models(X)

    def predict(inputs: pa.Table) -> Prediction:
        X_new = rows.matrix(inputs)
        laws = [model.predict(X_new, return_std=True) for model in models]
        means, deviations = (np.stack(part, axis=1) for part in zip(*laws, strict=True))
        return Classes(_probabilities(means + found.targets.center, deviations, found.temperature))

    return predict


def _probabilities(means: np.ndarray, deviations: np.ndarray, temperature: float) -> np.ndarray:
    """Average the softmax of independent Gaussians over a fixed grid of draws."""
    n_classes = means.shape[1]
    draws = norm.ppf(qmc.Halton(n_classes, seed=0).random(_N_DRAWS))  # pyright: ignore[reportCallIssue]
    return np.mean(
        [softmax((means + deviations * draw) / temperature, axis=1) for draw in draws], axis=0
    )


def _search(X: np.ndarray, choices: Sequence[_Targets], seed: int, clock: Clock) -> _Found:
    """Fit all kernels to some rows from all starts, and the best of them to as many rows as there is time for."""
    order = np.random.default_rng(seed).permutation(len(X))
    some = order[: round(_ROWS_TO_SEARCH / choices[0].Y.shape[1] ** (1 / 3))]

    def over() -> bool:
        return clock.used() > _SHARE_OF_SEARCH * clock.limit

    found = [one for shape in SHAPES for one in _candidates(X, choices[0], some, shape, over)]
    clock.stopped |= over()
    best = max(found, key=lambda one: one.score)
    for targets in choices[1:]:
        if not over():
            found += _candidates(X, targets, some, best.shape, over)
    best = max(found, key=lambda one: one.score)
    if len(some) == len(X):
        return best
    return _on_more_rows(X, best, order, len(some), clock)


def _candidates(
    X: np.ndarray, targets: _Targets, some: np.ndarray, shape: str, over: Callable[[], bool]
) -> list[_Found]:
    """Give the kernel with one lengthscale that is most likely, and that with one for each column."""
    few = targets.of(some)
    evidence, noisy = few.evidence(shape, X[some]), targets.labels is None
    n_columns = X.shape[1]
    starts = []
    for factor, noise in _STARTS:
        lengthscales = np.full(n_columns, np.log(factor * np.sqrt(n_columns)))
        start = Hyperparameters(0.0, -2.0, np.log(noise) if noisy else _KNOWN_NOISE, lengthscales)
        starts.append(evidence.maximum(start, tied=True, noisy=noisy, most=_MOST_TIED, over=over))
    free = [
        evidence.maximum(start, tied=False, noisy=noisy, most=_MOST_FREE, over=over)
        for _, start in starts
    ]
    _, tied = max(starts, key=lambda one: one[0])
    _, best = max(free, key=lambda one: one[0])
    return [_Found(*few.score(evidence, at), shape, at, targets) for at in (tied, best)]


def _on_more_rows(
    X: np.ndarray, found: _Found, order: np.ndarray, n_tried: int, clock: Clock
) -> _Found:
    """Go on from the kernel of some rows on more of them."""

    def evidence(n_rows: int) -> Evidence:
        numbers = order[:n_rows]
        return found.targets.of(numbers).evidence(found.shape, X[numbers])

    started = clock.used()
    evidence(n_tried)(found.at)
    seconds = clock.used() - started
    left = _SHARE_OF_ALL * clock.limit - clock.used()
    n_rows = round(n_tried * (max(left, 0.0) / (_MOST_ON_MORE_ROWS * seconds)) ** (1 / 3))
    if n_rows <= n_tried:
        return found
    tied = bool(np.ptp(found.at.lengthscales) == 0)
    _, at = evidence(n_rows).maximum(
        found.at,
        tied=tied,
        noisy=found.targets.labels is None,
        most=_MOST_ON_MORE_ROWS,
        over=lambda: clock.used() > _SHARE_OF_ALL * clock.limit,
    )
    return dataclasses.replace(found, at=at)
