"""Weights of a mixture of predictions, by the densities of rows that were left out."""

import numpy as np
import scipy.special
from jaxtyping import Float

_N_STEPS = 500
_LEAST_WEIGHT = 1e-3
PSEUDO_ROWS = 0.3
"""How many rows each part is taken to have explained alone before any is seen."""


def stack(
    log_densities: Float[np.ndarray, "n parts"],
    weights: Float[np.ndarray, " n"] | None = None,
    pseudo_rows: float = PSEUDO_ROWS,
) -> Float[np.ndarray, " parts"]:
    """Find the weights under which left-out rows are most probable, with a Dirichlet prior (Yao et al., 2018).

    By expectation and maximization, from equal weights of the parts. A row of weight w counts like w rows; each counts
    once where None. Weights that come out below a thousandth are zero.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.stacking import stack
        >>> stack(np.log([[0.9, 0.1]] * 50)).round(2).tolist()
        [0.99, 0.01]
    """
    n, n_parts = log_densities.shape
    counts = np.ones(n) if weights is None else weights
    total = float(np.sum(counts)) + pseudo_rows * n_parts
    best = np.max(log_densities, axis=1, keepdims=True, initial=-1e300)
    ratios = np.exp(log_densities - best)
    found = np.full(n_parts, 1 / n_parts)
    for _ in range(_N_STEPS):
        new = (found * (ratios.T @ (counts / (ratios @ found))) + pseudo_rows) / total
        if np.max(np.abs(new - found)) < 1e-6:
            break
        found = new
    found = np.where(found < _LEAST_WEIGHT, 0.0, found)
    return found / np.sum(found)


def mixed(
    log_densities: Float[np.ndarray, "n parts"], weights: Float[np.ndarray, " parts"]
) -> Float[np.ndarray, " n"]:
    """Compute the log density of each row under the mixture.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.stacking import mixed
        >>> np.exp(mixed(np.log([[0.2, 0.4]]), np.array([0.5, 0.5]))).round(6).tolist()
        [0.3]
    """
    return np.asarray(scipy.special.logsumexp(log_densities, b=weights, axis=1))
