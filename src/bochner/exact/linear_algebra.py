"""LAPACK's Cholesky factor and inverse of a covariance, with as much jitter as it takes."""

import numpy as np
import scipy.linalg
from jaxtyping import Float
from scipy.linalg import lapack

_LEAST_JITTER, _GROWTH, _TRIES = 1e-10, 100.0, 8


def factorize(M: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Compute the lower Cholesky factor of a symmetric matrix, which may be singular but for rounding.

    What is added to the diagonal is relative to its mean: 1e-10 of it, and a hundred times more where the factor does
    not exist. The last try has a jitter of 1e4, with which every finite covariance has a factor.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.linear_algebra import factorize
        >>> L = factorize(np.ones((3, 3)))
        >>> bool(np.allclose(L @ L.T, np.ones((3, 3)), atol=1e-6))
        True
    """
    size = float(np.mean(np.diag(M))) or 1.0
    jitter = _LEAST_JITTER
    for _ in range(_TRIES):
        jittered = np.array(M.T, order="F")  # the same, since it is symmetric, and faster
        jittered[np.diag_indices_from(jittered)] += jitter * size
        L, info = lapack.dpotrf(jittered, lower=1, clean=1, overwrite_a=1)  # pyright: ignore[reportAttributeAccessIssue]
        if info == 0 and np.isfinite(L[-1:, -1:]).all():
            return L
        jitter *= _GROWTH
    raise FloatingPointError("a covariance has entries that are not finite.")


def inverse(L: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Compute the inverse of the matrix with lower factor L, all of it.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.linear_algebra import inverse
        >>> inverse(np.asfortranarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
        [[0.25, 0.0], [0.0, 1.0]]
    """
    if not len(L):
        return np.zeros_like(L)
    lower, _ = lapack.dpotri(L, lower=1)  # pyright: ignore[reportAttributeAccessIssue]
    full = lower + lower.T  # above the diagonal are zeros, as in L
    full[np.diag_indices_from(full)] /= 2
    return full


def solve(L: Float[np.ndarray, "n n"], B: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "n ..."]:
    """Solve `L L.T X = B`."""
    return scipy.linalg.cho_solve((L, True), B, check_finite=False)


def half_solve(L: Float[np.ndarray, "n n"], B: Float[np.ndarray, "n ..."]) -> np.ndarray:
    """Solve `L X = B`."""
    return scipy.linalg.solve_triangular(L, B, lower=True, check_finite=False)


def log_determinant(L: Float[np.ndarray, "n n"]) -> float:
    """Compute the logarithm of the determinant of `L L.T`."""
    return 2 * float(np.sum(np.log(np.diag(L))))
