"""The models that are stacked in regression: each a process of a transformed target, with tails."""

import dataclasses
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.kernels import RBF, AbstractKernel, Constant, Laplace, Linear
from bochner.exact.laws import Law
from bochner.exact.rows import Rows
from bochner.exact.tails import Tails
from bochner.exact.transforms import AbstractTransform
from bochner.exact.varying_noise import NoiseModel

TABLE_KERNEL: AbstractKernel = Laplace() + RBF() + Linear() + Constant()
"""The covariance for tables: steps along columns, smooth functions, a plane, and an unknown mean."""
SMOOTH_KERNEL: AbstractKernel = RBF() + Linear() + Constant()
"""The same without steps."""
LINEAR_KERNEL: AbstractKernel = Linear() + Constant()


class Function(Protocol):
    """Anything that gives mean and variance of a function at rows."""

    def predict(self, rows: Rows) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Compute mean and variance, without noise."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """One model of the transformed target.

    Attributes:
        name: of the model and its transform.
        transform: of the target.
        process: the Gaussian process; None for one law for all rows.
        noise: variance of the noise.
        noise_model: what it is multiplied by at each row; None for one.
        tails: of the predictive law.
        left_out: log density of each judged training target when it is left out, in units of the target.
    """

    name: str
    transform: AbstractTransform
    process: Function | None
    noise: float
    noise_model: NoiseModel | None = None
    tails: Tails = dataclasses.field(default_factory=Tails)
    left_out: Float[np.ndarray, " judged"] = dataclasses.field(default_factory=lambda: np.zeros(0))

    def law(self, rows: Rows) -> Law:
        """Predict the target at each row."""
        mean, variance = self.moments(rows)
        scale = self.tails.factor * np.sqrt(variance)
        return Law(self.transform, mean, scale, self.tails.degrees)

    def moments(self, rows: Rows) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Compute mean and variance of the transformed target at each row, before tails are chosen."""
        if self.process is None:
            return np.zeros(len(rows)), np.full(len(rows), self.noise)
        mean, variance = self.process.predict(rows)
        relative = 1.0 if self.noise_model is None else self.noise_model(rows)
        return mean, variance + self.noise * relative

    def judged_by(
        self,
        y: Float[np.ndarray, " judged"],
        mean: Float[np.ndarray, " judged"],
        variance: Float[np.ndarray, " judged"],
    ) -> "Part":
        """Choose tails, and keep densities, by left-out moments of the transformed targets."""
        deviation = np.sqrt(variance)
        tails = Tails.learn((self.transform(y) - mean) / deviation)
        law = Law(self.transform, mean, tails.factor * deviation, tails.degrees)
        return dataclasses.replace(self, tails=tails, left_out=law.log_density(y))


def constant_part(
    name: str,
    transform: AbstractTransform,
    y: Float[np.ndarray, " n"],
    judged: Int[np.ndarray, " judged"],
) -> Part:
    """Make the model with one law for all rows."""
    t, n = transform(y), len(y)
    z = t[judged] * n / max(n - 1, 1)  # less the mean of the others; the mean of all is zero
    return Part(name, transform, None, 1.0).judged_by(y[judged], t[judged] - z, np.ones(len(z)))
