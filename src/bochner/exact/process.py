"""An exact Gaussian process conditioned on its training rows."""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.kernels import AbstractKernel
from bochner.exact.left_out import left_out
from bochner.exact.linear_algebra import factorize, half_solve, inverse, solve
from bochner.exact.rows import Rows
from bochner.system.threads import blas_on_one_thread

_BLOCK = 4096
LEAST_SHARE = 1e-10


@dataclasses.dataclass(frozen=True, eq=False)
class Process:
    """A Gaussian process given noisy targets: what is needed to predict, to leave rows out and to draw functions.

    Attributes:
        kernel: the covariance.
        v: logarithms of its parameters.
        rows: the training rows.
        targets: the training targets, with mean zero.
        noise: the variance of each target.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import RBF
        >>> from bochner.exact.process import Process
        >>> x = np.array([-1.0, 1.0])
        >>> columns = Columns.learn([x])
        >>> process = Process.condition(RBF(), np.zeros(2), columns([x]), x, np.full(2, 1e-6))
        >>> mean, variance = process.predict(columns([np.array([1.0, 100.0])]))
        >>> mean.round(3).tolist(), variance.round(3).tolist()
        ([1.0, 0.0], [0.0, 1.0])
    """

    kernel: AbstractKernel
    v: Float[np.ndarray, " parameters"]
    rows: Rows
    targets: Float[np.ndarray, " n"]
    noise: Float[np.ndarray, " n"]

    @classmethod
    def condition(cls, kernel, v, rows: Rows, targets, noise, K=None) -> "Process":
        """Condition on targets; the covariance of the rows may be given if it is at hand."""
        process = cls(kernel, v, rows, targets, noise)
        process.__dict__["factor"] = process._factorized(K)
        return process

    @functools.cached_property
    def factor(self) -> Float[np.ndarray, "n n"]:
        """Lower Cholesky factor of `K + D`, in the order of sums of the fit, so that files predict the same."""
        with blas_on_one_thread():
            return self._factorized(None)

    def _factorized(self, K) -> Float[np.ndarray, "n n"]:
        M = self.kernel.covariance(self.v, self.rows, self.rows) if K is None else K.copy()
        M[np.diag_indices_from(M)] += self.noise
        return factorize(M)

    @functools.cached_property
    def weights(self) -> Float[np.ndarray, " n"]:
        """`(K + D)^-1 t`."""
        with blas_on_one_thread():
            return solve(self.factor, self.targets)

    def predict(self, rows: Rows) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Compute mean and variance of the function, without noise."""
        means, variances = [np.zeros(0)], [np.zeros(0)]
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            cross = self.kernel.covariance(self.v, block, self.rows)
            mean, variance = self.given(cross, self.kernel.diagonal(self.v, block))
            means.append(mean)
            variances.append(variance)
        return np.concatenate(means), np.concatenate(variances)

    def given(self, cross, diagonal) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Compute mean and variance from covariances with the training rows and of each row with itself."""
        explained = np.sum(half_solve(self.factor, cross.T) ** 2, axis=0)
        return cross @ self.weights, np.maximum(diagonal - explained, LEAST_SHARE * diagonal)

    def left_out(
        self, groups: Int[np.ndarray, " n"] | None = None
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Compute mean and variance, noise included, of each training target given those of other groups."""
        return left_out(inverse(self.factor), self.weights, self.targets, groups)

    def left_out_new(
        self, noise: float, groups: Int[np.ndarray, " n"] | None = None
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Compute the same for a new target at each row, with noise of the given variance."""
        mean, variance = self.left_out(groups)
        return mean, np.maximum(variance + (noise - self.noise), noise)
