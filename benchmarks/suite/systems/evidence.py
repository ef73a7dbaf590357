"""The marginal likelihood of an exact Gaussian process with its gradient, at the cost of one factorization.

Scikit-learn forms an array of rows by rows by columns for the gradient; here it is contracted before. The sum of an
ARD kernel and a linear one, with noise, is that of `GaussianProcessRegressor`, which predicts once it is known.
"""

import contextlib
import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern

# Lowest and highest logarithms of the variance, the linear part's, the noise and lengthscales, inputs and targets
# standardized.
_BOUNDS = np.log([[1e-3, 1e-6, 1e-6, 1e-2], [1e4, 1e2, 1e1, 1e4]])


def _rbf(squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value = np.exp(-0.5 * squared)
    return value, value


def _matern_52(squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(5 * squared)
    decay = np.exp(-r)
    return (1 + r + r**2 / 3) * decay, 5 / 3 * (1 + r) * decay


def _matern_32(squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(3 * squared)
    decay = np.exp(-r)
    return (1 + r) * decay, 3 * decay


@dataclasses.dataclass(frozen=True)
class Shape:
    """A covariance as a function of the scaled squared distance, and `-2` times its derivative.

    Attributes:
        covariance: gives both.
        kernel: makes scikit-learn's kernel of lengthscales.
    """

    covariance: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    kernel: Callable[[np.ndarray], Kernel]


SHAPES = {
    "RBF": Shape(_rbf, lambda lengthscales: RBF(lengthscales)),  # pyright: ignore[reportArgumentType]
    "Matern 5/2": Shape(_matern_52, lambda lengthscales: Matern(lengthscales, nu=2.5)),  # pyright: ignore[reportArgumentType]
    "Matern 3/2": Shape(_matern_32, lambda lengthscales: Matern(lengthscales, nu=1.5)),  # pyright: ignore[reportArgumentType]
}


@dataclasses.dataclass(frozen=True)
class Hyperparameters:
    """Of one kernel, as logarithms.

    Attributes:
        variance: of the stationary part.
        linear: variance of the linear part's coefficients.
        noise: variance.
        lengthscales: one for each column.
    """

    variance: float
    linear: float
    noise: float
    lengthscales: np.ndarray

    @classmethod
    def of(cls, vector: np.ndarray) -> "Hyperparameters":
        return cls(*(float(value) for value in vector[:3]), vector[3:])  # pyright: ignore[reportCallIssue]

    @property
    def vector(self) -> np.ndarray:
        return np.concatenate([[self.variance, self.linear, self.noise], self.lengthscales])

    def kernel(self, shape: Shape) -> Kernel:
        """Give scikit-learn's kernel, without the noise."""
        stationary = ConstantKernel(np.exp(self.variance)) * shape.kernel(np.exp(self.lengthscales))
        return stationary + ConstantKernel(np.exp(self.linear)) * DotProduct(
            0.0, sigma_0_bounds="fixed"
        )


@dataclasses.dataclass(frozen=True)
class Evidence:
    """The data that hyperparameters are judged by: processes with the same kernel, each with its own targets.

    Attributes:
        shape: of the stationary part.
        X: inputs.
        Y: centered targets, a column for each process.
        noises: known variances, a column for each process; the common noise is added.
    """

    shape: Shape
    X: np.ndarray
    Y: np.ndarray
    noises: np.ndarray

    def __call__(self, at: Hyperparameters) -> tuple[float, np.ndarray]:
        """Compute the sum of the processes' log marginal likelihoods, and its gradient as a vector."""
        scaled = self.X / np.exp(at.lengthscales)
        value, slope = self.shape.covariance(_squared_distances(scaled))
        products = self.X @ self.X.T
        K = np.exp(at.variance) * value + np.exp(at.linear) * products
        total, G = 0.0, np.zeros_like(K)
        for y, noises in zip(self.Y.T, self.noises.T, strict=True):
            inverse, log_determinant = _inverse(_with_diagonal(K, noises + np.exp(at.noise)))
            weights = inverse @ y
            total -= 0.5 * (y @ weights + log_determinant + len(y) * np.log(2 * np.pi))
            G += 0.5 * (np.outer(weights, weights) - inverse)
        # The derivative by a log lengthscale is `slope * (difference / lengthscale)^2`, summed here by a product.
        W = np.exp(at.variance) * G * slope
        of_lengthscales = 2 * (W.sum(axis=1) @ scaled**2 - np.sum(scaled * (W @ scaled), axis=0))
        of_others = [
            np.exp(at.variance) * np.sum(G * value),
            np.exp(at.linear) * np.sum(G * products),
            np.exp(at.noise) * np.trace(G),
        ]
        return total, np.concatenate([of_others, of_lengthscales])

    def left_out(self, at: Hyperparameters) -> tuple[np.ndarray, np.ndarray]:
        """Compute mean and variance of each target, noise included, given all other rows' targets."""
        value, _ = self.shape.covariance(_squared_distances(self.X / np.exp(at.lengthscales)))
        K = np.exp(at.variance) * value + np.exp(at.linear) * (self.X @ self.X.T)
        means, variances = [], []
        for y, noises in zip(self.Y.T, self.noises.T, strict=True):
            inverse, _ = _inverse(_with_diagonal(K, noises + np.exp(at.noise)))
            variance = 1 / np.diag(inverse)
            means.append(y - variance * (inverse @ y))
            variances.append(variance)
        return np.stack(means, axis=1), np.stack(variances, axis=1)

    def maximum(
        self,
        start: Hyperparameters,
        *,
        tied: bool,
        noisy: bool,
        most: int,
        over: Callable[[], bool],
    ) -> tuple[float, Hyperparameters]:
        """Climb from a start by L-BFGS, until a maximum, `most` evaluations, or `over` says that time is up.

        `tied` moves all lengthscales together; without `noisy` the common noise stays.
        """
        origin, n_columns = start.vector, self.X.shape[1]
        directions = np.eye(len(origin))
        if tied:
            directions = np.column_stack([directions[:, :3], np.repeat([0.0, 1.0], [3, n_columns])])
        if not noisy:
            directions = np.delete(directions, 2, axis=1)
        first = directions.argmax(axis=0)
        lowest, highest = (
            np.concatenate([ends[:3], np.full(n_columns, ends[3])])[first] for ends in _BOUNDS
        )
        best = (-np.inf, start)

        def negative(steps: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best
            if np.isfinite(best[0]) and over():
                raise _OverError
            at = Hyperparameters.of(origin + directions @ steps)
            try:
                value, gradient = self(at)
            except np.linalg.LinAlgError:
                return 1e10, np.zeros(len(steps))
            if value > best[0]:
                best = (value, at)
            return -value, -directions.T @ gradient

        with contextlib.suppress(_OverError):
            minimize(
                negative,
                np.zeros(directions.shape[1]),
                jac=True,
                method="L-BFGS-B",
                bounds=np.stack([lowest - origin[first], highest - origin[first]], axis=1),
                options={"maxfun": most},
            )
        return best


class _OverError(Exception):
    """The time is used up."""


def _squared_distances(scaled: np.ndarray) -> np.ndarray:
    squares = np.sum(scaled**2, axis=1)
    return np.maximum(squares[:, None] + squares - 2 * scaled @ scaled.T, 0.0)


def _with_diagonal(K: np.ndarray, added: np.ndarray) -> np.ndarray:
    K = K.copy()
    K[np.diag_indices_from(K)] += added
    return K


def _inverse(K: np.ndarray) -> tuple[np.ndarray, float]:
    """Invert a positive definite matrix, which is overwritten; give the log of its determinant too."""
    factor, failed = lapack.dpotrf(K.T, lower=1, overwrite_a=1)  # pyright: ignore[reportAttributeAccessIssue]
    if failed:
        raise np.linalg.LinAlgError("The covariance is not positive definite.")
    log_determinant = 2 * float(np.sum(np.log(np.diag(factor))))
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)  # pyright: ignore[reportAttributeAccessIssue]
    lower = np.tril(inverse)
    return lower + np.tril(lower, -1).T, log_determinant
