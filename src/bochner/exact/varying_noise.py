"""Noise that varies with the row: a second Gaussian process on the logarithms of squared left-out residuals."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.deadlines import NEVER
from bochner.exact.kernels import RBF, AbstractKernel, Constant, Linear
from bochner.exact.learning import Effort, learn
from bochner.exact.left_out import left_out
from bochner.exact.linear_algebra import factorize, half_solve, inverse
from bochner.exact.marginal import LearnedNoise
from bochner.exact.process import Process
from bochner.exact.rows import Rows
from bochner.exact.transforms import moments

BOUND = 3.0
_LEAST_SQUARE = 1e-4
_SHARE_OF_NOISE = 0.8  # the logarithm of a squared Gaussian varies by a factor of nine itself
_EFFORT = Effort(few=600, some=600, scales=(1.0,), first=0, then=60, all=15)
KERNEL_OF_NOISE: AbstractKernel = RBF() + Linear() + Constant()


@dataclasses.dataclass(frozen=True, eq=False)
class NoiseModel:
    """The variance of noise at any row, relative to the geometric mean over training rows.

    `log d(x) = deviation * g(x)`, with g the posterior mean of a Gaussian process given the standardized logarithms of
    squared residuals, clipped at three deviations.

    Attributes:
        process: the process g.
        process_parameters: logarithms of its noise and parameters.
        deviation: of the logarithms.
        level: mean of `deviation * g` over training rows.
    """

    process: Process
    process_parameters: Float[np.ndarray, " parameters"]
    deviation: float
    level: float

    def __call__(self, rows: Rows) -> Float[np.ndarray, " n"]:
        """Give the relative variance at each row."""
        return np.exp(_bounded(self.process.predict(rows)[0]) * self.deviation - self.level)


def learn_noise(
    rows: Rows,
    residuals: Float[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"],
    *,
    weights: Float[np.ndarray, " n"] | None = None,
    v: Float[np.ndarray, " parameters"] | None = None,
    seed: int = 0,
    until: float = NEVER,
) -> tuple[NoiseModel, Float[np.ndarray, " n"]]:
    """Fit the model to left-out residuals; give also the relative variance of training rows, each left out.

    Parameters `v` that are given are kept. A row of weight w counts like w rows.
    """
    counts = np.ones(len(rows)) if weights is None else weights
    t, deviation = _standardized_logs(residuals, counts)
    noise = LearnedNoise.of_weights(counts, _SHARE_OF_NOISE)
    if v is None:
        v = learn(
            KERNEL_OF_NOISE,
            rows,
            t[:, None],
            noise,
            variance=1 - _SHARE_OF_NOISE,
            effort=_EFFORT,
            seed=seed,
            until=until,
        )
    of_rows = noise.variance(v) / counts
    process = Process.condition(KERNEL_OF_NOISE, v[1:], rows, t, of_rows)
    own = _bounded(process.left_out(groups)[0]) * deviation
    level = moments(own, counts)[0]
    return NoiseModel(process, v, deviation, level), np.exp(own - level)


def left_out_by_folds(
    plain: Process,
    model: NoiseModel,
    v: Float[np.ndarray, " parameters"],
    folds: Int[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"] | None = None,
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Compute mean and variance of targets in folds that neither the process nor its noise model has seen.

    A residual that is left out alone still has seen its neighbors' targets, as their residuals have seen its own; so
    a noise model fitted to them says more of rows than it should. Here residuals, noise model and process are made
    anew without each fold, with parameters held.

    Args:
        plain: the process that makes the residuals.
        model: the noise model, of which only parameters are used.
        v: logarithms of noise and parameters of the process with varying noise, of the same covariance.
        folds: the fold of each row.
        groups: the group of each row; a group is in one fold.
        weights: of the rows; a row of weight w counts like w rows.
    """
    targets = plain.targets
    counts = np.ones(len(targets)) if weights is None else weights
    K = plain.kernel.covariance(v[1:], plain.rows, plain.rows)
    P, of_noise = inverse(plain.factor), inverse(model.process.factor)
    mean, variance = np.empty((2, len(targets)))
    scale = LearnedNoise.variance(v)
    for fold in np.unique(folds):
        out, kept = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        seen, own = targets[kept], groups[kept]
        without, _ = _without(P, out, kept)
        residuals = seen - left_out(without, without @ seen, seen, own)[0]
        t, deviation = _standardized_logs(residuals, counts[kept])
        without, to_out = _without(of_noise, out, kept)
        logs = _bounded(left_out(without, without @ t, t, own)[0]) * deviation
        level = moments(logs, counts[kept])[0]
        M = K[np.ix_(kept, kept)]
        M[np.diag_indices_from(M)] += scale * np.exp(logs - level) / counts[kept]
        factor = factorize(M)
        half = half_solve(factor, np.column_stack([K[np.ix_(kept, out)], seen]))
        mean[out] = half[:, :-1].T @ half[:, -1]
        variance[out] = np.diag(K)[out] - np.sum(half[:, :-1] ** 2, axis=0)
        new = np.exp(_bounded(to_out @ t) * deviation - level)
        variance[out] = np.maximum(variance[out], 0.0) + scale * new
    return mean, variance


def _without(P, out, kept):
    """Take rows out of a precision matrix; give also what makes their mean from the other targets."""
    to_out = -np.linalg.solve(P[np.ix_(out, out)], P[np.ix_(out, kept)])
    return P[np.ix_(kept, kept)] + P[np.ix_(kept, out)] @ to_out, to_out


def _standardized_logs(residuals, counts):
    squares = residuals**2
    logs = np.log(squares + _LEAST_SQUARE * np.median(squares) + 1e-12)
    mean, deviation = moments(logs, counts)
    deviation += 1e-9
    return (logs - mean) / deviation, deviation


def _bounded(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return np.clip(values, -BOUND, BOUND)
