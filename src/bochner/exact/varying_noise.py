"""Noise that varies with the row: a second Gaussian process on the logarithms of squared left-out residuals."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.kernels import RBF, AbstractKernel, Constant, Linear
from bochner.exact.learning import Effort, learn
from bochner.exact.left_out import left_out
from bochner.exact.linear_algebra import inverse
from bochner.exact.marginal import LEAST_NOISE, LearnedNoise
from bochner.exact.process import Process
from bochner.exact.rows import Rows

_BOUND = 3.0
_LEAST_SQUARE = 1e-4
_SHARE_OF_NOISE = 0.8  # the logarithm of a squared Gaussian varies by a factor of nine itself
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
    v: Float[np.ndarray, " parameters"] | None = None,
    seed: int = 0,
) -> tuple[NoiseModel, Float[np.ndarray, " n"]]:
    """Fit the model to left-out residuals; give also the relative variance of training rows, each left out.

    Parameters `v` that are given are kept.
    """
    squares = residuals**2
    logs = np.log(squares + _LEAST_SQUARE * np.median(squares) + 1e-12)
    mean, deviation = float(np.mean(logs)), float(np.std(logs)) + 1e-9
    t = (logs - mean) / deviation
    noise = LearnedNoise(np.ones(len(rows)), expected=_SHARE_OF_NOISE)
    if v is None:
        effort = Effort(scales=(1.0,), first=0, then=30, all=5)
        v = learn(
            KERNEL_OF_NOISE,
            rows,
            t[:, None],
            noise,
            variance=1 - _SHARE_OF_NOISE,
            effort=effort,
            seed=seed,
        )
    process = Process.condition(KERNEL_OF_NOISE, v[1:], rows, t, noise.variances(v)[:, 0])
    own = _bounded(process.left_out(groups)[0]) * deviation
    level = float(np.mean(own))
    return NoiseModel(process, v, deviation, level), np.exp(own - level)


def left_out_by_folds(
    kernel: AbstractKernel,
    v: Float[np.ndarray, " parameters"],
    v_of_noise: Float[np.ndarray, " parameters"],
    rows: Rows,
    targets: Float[np.ndarray, " n"],
    folds: Int[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"],
    plain: tuple[Float[np.ndarray, "n n"], float],
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Compute mean and variance of targets in folds that neither the process nor its noise model has seen.

    A residual that is left out alone still has seen its neighbors' targets, as their residuals have seen its own; so
    a noise model fitted to them says more of rows than it should. Here residuals, noise model and process are made
    anew without each fold, with parameters held.

    Args:
        kernel: the covariance.
        v: logarithms of noise and parameters of the process with varying noise.
        v_of_noise: those of the noise model.
        rows: the rows.
        targets: the targets.
        folds: the fold of each row.
        groups: the group of each row; a group is in one fold.
        plain: covariance of the rows and noise variance of the process that makes the residuals.
    """
    K = kernel.covariance(v[1:], rows, rows)
    K_plain, noise_plain = plain
    mean, variance = np.empty(len(rows)), np.empty(len(rows))
    for fold in np.unique(folds):
        out, kept = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        seen, own = rows[kept], groups[kept]
        first = Process.condition(
            kernel,
            v[1:],
            seen,
            targets[kept],
            np.full(len(kept), noise_plain),
            _block(K_plain, kept),
        )
        residuals = (
            targets[kept] - left_out(inverse(first.factor), first.weights, first.targets, own)[0]
        )
        model, relative = learn_noise(seen, residuals, own, v=v_of_noise)
        scale = np.exp(v[0]) + LEAST_NOISE
        process = Process.condition(
            kernel, v[1:], seen, targets[kept], scale * relative, _block(K, kept)
        )
        cross = K[np.ix_(out, kept)]
        mean[out], spread = process.given(cross, np.diag(K)[out])
        variance[out] = spread + scale * model(rows[out])
    return mean, variance


def _bounded(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return np.clip(values, -_BOUND, _BOUND)


def _block(K: Float[np.ndarray, "n n"], kept: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m m"]:
    return K[np.ix_(kept, kept)]
