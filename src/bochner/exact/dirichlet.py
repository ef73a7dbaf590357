"""Classes as Gaussian regression: the targets of Dirichlet-based classification, and probabilities from functions."""

import numpy as np
import scipy.special
from jaxtyping import Float, Int

N_NODES = 32
"""Of the quadrature for two classes."""
N_DRAWS = 128
"""For more classes; with their negatives there are twice as many."""


def dirichlet_targets(
    labels: Int[np.ndarray, " n"], n_classes: int, strength: float
) -> tuple[Float[np.ndarray, "n classes"], Float[np.ndarray, "n classes"]]:
    """Give a target and a noise variance for each row and class (Milios et al., 2018, section 4).

    The posterior of class probabilities given one label is Dirichlet with `a_c = strength + [label = c]`, a vector of
    independent Gamma variables, normalized. A log-normal variable with the moments of the Gamma one has
    `variance = log(1 / a_c + 1)` and `mean = log a_c - variance / 2`.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.dirichlet import dirichlet_targets
        >>> targets, noise = dirichlet_targets(np.array([1]), 2, strength=0.01)
        >>> targets.round(3).tolist(), noise.round(3).tolist()
        ([[-6.913, -0.334]], [[4.615, 0.688]])
    """
    a = strength + (labels[:, None] == np.arange(n_classes))
    noise = np.log(1 / a + 1)
    return np.log(a) - noise / 2, noise


def probabilities(
    mean: Float[np.ndarray, "n classes"],
    variance: Float[np.ndarray, "n classes"],
    temperature: float = 1.0,
) -> Float[np.ndarray, "n classes"]:
    """Compute the mean of `softmax(f / temperature)` over independent Gaussian f.

    By quadrature for two classes, by the same 128 draws and their negatives in each row for more.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.dirichlet import probabilities
        >>> probabilities(np.array([[0.0, 0.0], [0.0, 9.0]]), np.ones((2, 2))).round(3).tolist()
        [[0.5, 0.5], [0.0, 1.0]]
    """
    deviation = np.sqrt(variance) / temperature
    mean = mean / temperature
    n_classes = mean.shape[1]
    if n_classes == 2:
        nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
        spread = np.sqrt(np.sum(deviation**2, axis=1))
        first = scipy.special.expit(
            (mean[:, 0] - mean[:, 1])[:, None] + spread[:, None] * nodes
        ) @ (weights / np.sum(weights))
        return np.stack([first, 1 - first], axis=1)
    total = np.zeros_like(mean)
    for draw in np.random.default_rng(0).normal(size=(N_DRAWS, n_classes)):
        for sign in (1, -1):
            total += scipy.special.softmax(mean + sign * draw * deviation, axis=1)
    return total / (2 * N_DRAWS)
