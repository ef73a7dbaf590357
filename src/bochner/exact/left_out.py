"""What an exact Gaussian process says of rows that it has not seen, in closed form."""

import numpy as np
from jaxtyping import Float, Int


def left_out(
    precision: Float[np.ndarray, "n n"],
    weights: Float[np.ndarray, " n"],
    targets: Float[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"] | None = None,
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Compute mean and variance, noise included, of each target given all those of other groups.

    With `P = (K + D)^-1` and `a = P t`, the targets of a group b have the mean `t_b - P_bb^-1 a_b` and the covariance
    `P_bb^-1` (Rasmussen and Williams, 2006, section 5.4.2, for one row). Rows with equal inputs should be one group:
    the others would give its value away.

    Args:
        precision: P.
        weights: a.
        targets: t.
        groups: the number of each row's group; each row is its own where None.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.left_out import left_out
        >>> M, t = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0])
        >>> mean, variance = left_out(np.linalg.inv(M), np.linalg.solve(M, t), t)
        >>> mean.round(6).tolist(), variance.round(6).tolist()  # t_2 / 2 and t_1 / 2; 2 - 1 / 2
        ([1.5, 0.5], [1.5, 1.5])
    """
    variance = 1 / np.diag(precision)
    residual = weights * variance
    for together in larger_groups(groups):
        block = np.linalg.inv(precision[np.ix_(together, together)])
        residual[together] = block @ weights[together]
        variance[together] = np.diag(block)
    return targets - residual, variance


def larger_groups(groups: Int[np.ndarray, " n"] | None) -> list[Int[np.ndarray, " members"]]:
    """Give the rows of each group of two or more.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.left_out import larger_groups
        >>> [rows.tolist() for rows in larger_groups(np.array([0, 1, 0, 2]))]
        [[0, 2]]
    """
    if groups is None or not len(groups):
        return []
    order = np.argsort(groups, kind="stable")
    bounds = np.flatnonzero(np.diff(groups[order])) + 1
    return [rows for rows in np.split(order, bounds) if len(rows) > 1]
