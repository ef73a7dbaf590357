"""The models that are stacked in regression: each a process of a transformed target, with tails."""

import dataclasses
from typing import Literal, Protocol

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

Kind = Literal["constant", "linear", "smooth", "sum", "density"]
"""Of a part: one law for all rows, a plane, smooth functions, these with steps, or a density of free shape."""
KERNELS: dict[Kind, AbstractKernel] = {
    "linear": LINEAR_KERNEL,
    "smooth": SMOOTH_KERNEL,
    "sum": TABLE_KERNEL,
}
"""Of the parts that are processes."""


def kernels_of_parts(kernel: AbstractKernel | None) -> dict[Kind, AbstractKernel]:
    """Give the covariances of the parts that are processes: a given one in place of the smooth one and the sum."""
    return KERNELS if kernel is None else {"linear": LINEAR_KERNEL, "sum": kernel}


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
        kind: of the model.
        transform: of the target.
        process: the Gaussian process; None for one law for all rows.
        noise: variance of the noise of one row.
        noise_model: what it is multiplied by at each row; None for one.
        tails: of the predictive law.
        left_out: log density of each judged training target when it is left out, in units of the target.
        unseen: the law that says so.
    """

    name: str
    kind: Kind
    transform: AbstractTransform
    process: Function | None
    noise: float
    noise_model: NoiseModel | None = None
    tails: Tails = dataclasses.field(default_factory=Tails)
    left_out: Float[np.ndarray, " judged"] = dataclasses.field(default_factory=lambda: np.zeros(0))
    unseen: Law | None = None

    def law(self, rows: Rows) -> Law:
        """Predict the target at each row."""
        mean, of_function, noise = self.moments(rows)
        variance = of_function + noise
        scale = self.tails.factor * np.sqrt(variance)
        return Law(self.transform, mean, scale, self.tails.degrees, of_function / variance)

    def moments(self, rows: Rows) -> tuple[Float[np.ndarray, " n"], ...]:
        """Compute the function's mean and variance, and the noise's, for the transformed target of each row.

        Tails are not in it.
        """
        if self.process is None:
            return np.zeros(len(rows)), np.zeros(len(rows)), np.full(len(rows), self.noise)
        mean, variance = self.process.predict(rows)
        relative = np.ones(len(rows)) if self.noise_model is None else self.noise_model(rows)
        return mean, variance, self.noise * relative

    def judged_by(
        self,
        y: Float[np.ndarray, " judged"],
        mean: Float[np.ndarray, " judged"],
        variance: Float[np.ndarray, " judged"],
        weights: Float[np.ndarray, " judged"] | None = None,
    ) -> "Part":
        """Choose tails, and keep densities, by moments of left-out targets as transformed, a row's noise in them."""
        deviation = np.sqrt(variance)
        tails = Tails.learn((self.transform(y) - mean) / deviation, weights)
        law = Law(self.transform, mean, tails.factor * deviation, tails.degrees)
        return dataclasses.replace(self, tails=tails, left_out=law.log_density(y), unseen=law)


def constant_part(
    name: str,
    transform: AbstractTransform,
    y: Float[np.ndarray, " n"],
    judged: Int[np.ndarray, " judged"],
    weights: Float[np.ndarray, " n"] | None = None,
    groups: Int[np.ndarray, " n"] | None = None,
) -> Part:
    """Make the model with one law for all rows, judged by the mean of those of other groups.

    Transforms must be learned with the same weights, so that the mean of all targets is zero.
    """
    counts = np.ones(len(y)) if weights is None else weights
    groups = np.arange(len(y)) if groups is None else groups
    own, t, total = groups[judged], transform(y), np.sum(counts)
    others = total - np.bincount(groups, counts)[own]
    sums = -np.bincount(groups, counts * t)[own]
    mean = np.divide(sums, others, out=np.zeros(len(own)), where=others > 1e-9 * total)
    part = Part(name, "constant", transform, None, 1.0)
    return part.judged_by(y[judged], mean, np.ones(len(own)), counts[judged])
