"""The log marginal likelihood of targets under a Gaussian process, and its gradient."""

import dataclasses

import numpy as np
from jaxtyping import Float

from bochner.exact.kernels import AbstractKernel
from bochner.exact.kernels.base import Start
from bochner.exact.linear_algebra import factorize, inverse, log_determinant, solve
from bochner.exact.rows import Rows

LEAST_NOISE = 1e-6
"""Least variance of learned noise, for standardized targets."""


@dataclasses.dataclass(frozen=True)
class LearnedNoise:
    """Noise of variance `(exp(v_0) + LEAST_NOISE) * relative_i` in row i; the logarithm v_0 leads the parameters.

    Attributes:
        relative: what the variance of each row is multiplied by; about one in the mean.
        expected: the mode of the prior of `exp(v_0)`.
    """

    relative: Float[np.ndarray, " n"]
    expected: float = 0.1
    n_parameters = 1

    @classmethod
    def of_weights(
        cls,
        weights: Float[np.ndarray, " n"],
        expected: float = 0.1,
        relative: float | Float[np.ndarray, " n"] = 1.0,
    ) -> "LearnedNoise":
        """Noise from which rows of weight w are learned: less in these, and `exp(v_0)` in the mean of all.

        Doubling all weights changes nothing of what is learned, since it says nothing of the noise of one row.

        Example:
            >>> import numpy as np
            >>> from bochner.exact.marginal import LearnedNoise
            >>> LearnedNoise.of_weights(np.array([2.0, 6.0])).relative.round(3).tolist()
            [2.0, 0.667]
        """
        return cls(relative * np.mean(weights) / weights, expected)

    @staticmethod
    def variance(v) -> float:
        """Give the variance where `relative` is one."""
        return float(np.exp(v[0]) + LEAST_NOISE)

    def __getitem__(self, index) -> "LearnedNoise":
        """The noise of some rows."""
        return LearnedNoise(self.relative[index], self.expected)

    def variances(self, v) -> Float[np.ndarray, "n 1"]:
        """Give the variance of each row."""
        return (self.variance(v) * self.relative)[:, None]

    def pull_back(self, v, slopes: Float[np.ndarray, "n 1"]) -> Float[np.ndarray, " 1"]:
        """Give the derivative by `v_0` from those by variances."""
        return np.full(1, np.exp(v[0]) * (self.relative @ slopes[:, 0]))

    def start(self) -> Start:
        """Say where the logarithm starts."""
        return Start(np.full(1, np.log(self.expected)), np.full(1, 2.0), np.zeros(1, bool))


@dataclasses.dataclass(frozen=True)
class GivenNoise:
    """Noise of given variances, one a row and target; it has no parameters."""

    given: Float[np.ndarray, "n targets"]
    n_parameters = 0

    def __getitem__(self, index) -> "GivenNoise":
        """The noise of some rows."""
        return GivenNoise(self.given[index])

    def variances(self, v) -> Float[np.ndarray, "n targets"]:
        """Give the variance of each row and target."""
        return self.given

    def pull_back(self, v, slopes) -> Float[np.ndarray, " 0"]:
        """Give no derivative."""
        return np.zeros(0)

    def start(self) -> Start:
        """Say that there is nothing to start."""
        return Start(np.zeros(0), np.zeros(0), np.zeros(0, bool))


Noise = LearnedNoise | GivenNoise


def negative_log_marginal(
    kernel: AbstractKernel,
    v: Float[np.ndarray, " parameters"],
    rows: Rows,
    targets: Float[np.ndarray, "n targets"],
    noise: Noise,
) -> tuple[float, Float[np.ndarray, " parameters"]]:
    """Compute `-log N(t | 0, K + D)`, without its constant and summed over targets, and the gradient.

    With `M = K + D` and `a = M^-1 t` it is `t'a / 2 + log |M| / 2`, and `dL/dK = (M^-1 - a a') / 2`, which each kernel
    pulls back to its parameters.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Constant
        >>> from bochner.exact.marginal import LearnedNoise, negative_log_marginal
        >>> rows = Columns.learn([np.arange(2.0)])([np.arange(2.0)])
        >>> noise = LearnedNoise(np.ones(2))
        >>> value, slope = negative_log_marginal(Constant(), np.zeros(2), rows, np.zeros((2, 1)), noise)
        >>> round(value, 4), slope.round(4).tolist()  # log(3) / 2
        (0.5493, [0.6667, 0.3333])
    """
    K, pull_back = kernel.with_pull_back(v[noise.n_parameters :], rows)
    variances = noise.variances(v)
    G, slopes, value = np.zeros_like(K), np.empty_like(variances), 0.0
    diagonal = np.diag_indices_from(K)
    for i in range(targets.shape[1]):
        M = K.copy()
        M[diagonal] += variances[:, i]
        L = factorize(M)
        a = solve(L, targets[:, i])
        value += 0.5 * float(targets[:, i] @ a) + 0.5 * log_determinant(L)
        own = inverse(L)
        own -= np.multiply.outer(a, a)
        slopes[:, i] = 0.5 * own[diagonal]
        G += own
    G *= 0.5
    return value, np.concatenate([noise.pull_back(v, slopes), pull_back(G)])
