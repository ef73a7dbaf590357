"""The posterior over the hyper-parameters of an exact Gaussian process, in units of its spread at the mode."""

import dataclasses

import numpy as np
from jaxtyping import Float

from bochner.exact.deadlines import NEVER
from bochner.exact.kernels import AbstractKernel
from bochner.exact.learning import Effort, learn, prior_of
from bochner.exact.left_out import left_out
from bochner.exact.linear_algebra import inverse, solve
from bochner.exact.marginal import LearnedNoise, negative_log_marginal
from bochner.exact.parts import Part
from bochner.exact.process import Process
from bochner.exact.rows import Rows

_STEP = 1e-3
_LEAST_CURVATURE = 0.25
_DRAWS_FOR_THE_MODE = 50


class ParametersTarget:
    """`p(v) p(t | v)` of logarithms v of noise and kernel parameters, for `bochner.mcmc.rotations`.

    The prior is the one under which they are learned. A position z stands for `v = mode + U z`, where `U U'` is the
    inverse curvature at the mode, so that the posterior is near N(0, I). Watched are mean and log variance of each
    target left out.

    Attributes:
        mode: of the posterior, found from where the fitted model has it.
    """

    def __init__(self, part: Part, rows: Rows, y: Float[np.ndarray, " n"], until: float = NEVER):
        self.part, self.rows, self.t = part, rows, part.transform(y)
        self.kernel, v = _kernel_of(part)
        relative = np.ones(len(rows)) if part.noise_model is None else part.noise_model(rows)
        self.noise = LearnedNoise(relative)
        start = np.append(np.log(part.noise), v)
        many = Effort(all=100)
        self.mode = learn(
            self.kernel, rows, self.t[:, None], self.noise, effort=many, start=start, until=until
        )
        self._prior = prior_of(self.kernel, rows, self.noise)
        self.center = self.mode
        self._spread = _root_of_inverse(self._curvature(), self._prior.deviations)

    @property
    def n_parameters(self) -> int:
        """How many parameters there are."""
        return len(self.mode)

    def v(self, z: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Give the parameters at a position."""
        return self.center + self._spread @ z

    def moved_to(self, Z: Float[np.ndarray, "draws d"]) -> None:
        """Take mean and covariance of draws for those of the posterior, whose tails the mode knows nothing of."""
        v = self.center + Z @ self._spread.T
        center, covariance = v.mean(axis=0), np.cov(v.T, ddof=1).reshape(len(v.T), -1)
        share = len(v) / (len(v) + _DRAWS_FOR_THE_MODE)
        mixed = share * covariance + (1 - share) * self._spread @ self._spread.T
        self.center, self._spread = center, np.linalg.cholesky(mixed)

    def part_at(self, v: Float[np.ndarray, " d"]) -> Part:
        """Give the model with these parameters, conditioned on the rows."""
        process = self._process(v)
        noise = LearnedNoise.variance(v)
        return dataclasses.replace(self.part, process=process, noise=noise)

    def __call__(self, Z):
        """Compute the log density less that of N(0, I), and its gradient."""
        values, gradients = np.full(len(Z), -np.inf), np.zeros_like(Z)
        for i, z in enumerate(Z):
            value, gradient = self._log_density(self.v(z))
            if np.isfinite(value) and np.isfinite(gradient).all():
                values[i] = value + 0.5 * z @ z
                gradients[i] = self._spread.T @ gradient + z
        return values, gradients

    def watched(self, Z):
        """Compute mean and log variance of each target left out."""
        return np.stack([self._left_out(self.v(z)) for z in Z])

    def _left_out(self, v) -> Float[np.ndarray, " watched"]:
        factor = self._process(v).factor
        mean, variance = left_out(inverse(factor), solve(factor, self.t), self.t, None)
        return np.concatenate([mean, np.log(variance)])

    def _process(self, v) -> Process:
        variances = self.noise.variances(v)[:, 0]
        return Process.condition(self.kernel, v[1:], self.rows, self.t, variances)

    def _log_density(self, v) -> tuple[float, Float[np.ndarray, " d"]]:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            try:
                value, slope = negative_log_marginal(
                    self.kernel, v, self.rows, self.t[:, None], self.noise
                )
            except FloatingPointError:
                return -np.inf, np.zeros_like(v)
        z = (v - self._prior.values) / self._prior.deviations
        return -value - 0.5 * float(z @ z), -slope - z / self._prior.deviations

    def _curvature(self) -> Float[np.ndarray, "d d"]:
        """Compute minus the second derivatives at the mode by differences of the gradient."""
        steps = _STEP * np.eye(len(self.mode))
        rows = [
            self._log_density(self.mode - step)[1] - self._log_density(self.mode + step)[1]
            for step in steps
        ]
        found = np.stack(rows) / (2 * _STEP)
        return 0.5 * (found + found.T)


def _root_of_inverse(curvature, deviations) -> Float[np.ndarray, "d d"]:
    """Give U with `U U'` the inverse of the curvature, which is kept from being far below that of the prior."""
    in_units = deviations[:, None] * curvature * deviations
    values, vectors = np.linalg.eigh(in_units)
    return deviations[:, None] * vectors / np.sqrt(np.maximum(values, _LEAST_CURVATURE))


def _kernel_of(part: Part) -> tuple[AbstractKernel, Float[np.ndarray, " parameters"]]:
    """Give covariance and parameters of a process, or of the landmarks that stand for it."""
    process = getattr(part.process, "landmarks", part.process)
    return process.kernel, process.v  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
