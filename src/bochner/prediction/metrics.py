"""How good predictions are: accuracy, likelihood, calibration. All in NumPy, on targets in their own units."""

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.stats import rankdata

N_BINS = 15
"""Bins of the expected calibration error."""


def rmse(y: Float[np.ndarray, "..."], mean: Float[np.ndarray, "..."]) -> float:
    """Compute the root mean squared error.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import rmse
        >>> rmse(np.array([0.0, 0.0]), np.array([3.0, 3.0]))
        3.0
    """
    return float(np.sqrt(np.mean((y - mean) ** 2)))


def mae(y: Float[np.ndarray, "..."], mean: Float[np.ndarray, "..."]) -> float:
    """Compute the mean absolute error.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import mae
        >>> mae(np.array([0.0, 0.0]), np.array([3.0, -1.0]))
        2.0
    """
    return float(np.mean(np.abs(y - mean)))


def r_squared(y: Float[np.ndarray, " n"], mean: Float[np.ndarray, " n"]) -> float:
    """Compute the share of the variance of targets that means explain; NaN where all targets are equal.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import r_squared
        >>> r_squared(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
        0.5
    """
    if np.ptp(y) == 0:
        return float("nan")
    return float(1 - np.sum((y - mean) ** 2) / np.sum((y - np.mean(y)) ** 2))


def mnll(log_prob: Float[np.ndarray, " n"]) -> float:
    """Compute the mean negative log-likelihood from each row's log predictive density.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import mnll
        >>> mnll(np.array([-1.0, -3.0]))
        2.0
    """
    return float(-np.mean(log_prob))


def error_rate(labels: Shaped[np.ndarray, " n"], predicted: Shaped[np.ndarray, " n"]) -> float:
    """Compute the share of rows whose class is predicted wrongly.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import error_rate
        >>> error_rate(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]))
        0.25
    """
    return float(np.mean(labels != predicted))


def coverage(
    y: Float[np.ndarray, "..."], low: Float[np.ndarray, "..."], high: Float[np.ndarray, "..."]
) -> float:
    """Compute the share of targets inside their intervals.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import coverage
        >>> coverage(np.array([0.0, 2.0]), np.array([-1.0, -1.0]), np.array([1.0, 1.0]))
        0.5
    """
    return float(np.mean((y >= low) & (y <= high)))


def crps(y: Float[np.ndarray, " *rows"], samples: Float[np.ndarray, " *rows draws"]) -> float:
    """Estimate the continuous ranked probability score from predictive samples, without bias.

    `E|Y - y| - E|Y - Y'| / 2`, the second mean over pairs of different samples, computed from sorted ones.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import crps
        >>> crps(np.array([0.0]), np.array([[-1.0, 1.0]]))
        0.0
    """
    return float(np.mean(crps_of_rows(y, samples)))


def crps_of_rows(
    y: Float[np.ndarray, " *rows"], samples: Float[np.ndarray, " *rows draws"]
) -> Float[np.ndarray, " *rows"]:
    """Estimate the continuous ranked probability score of each row.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import crps_of_rows
        >>> crps_of_rows(np.array([0.0, 3.0]), np.array([[-1.0, 1.0], [-1.0, 1.0]])).tolist()
        [0.0, 2.0]
    """
    n = samples.shape[-1]
    error = np.mean(np.abs(samples - y[..., None]), axis=-1)
    ranked = np.sort(samples, axis=-1)
    factor = 2 * np.arange(1, n + 1) - n - 1
    half_spread = ranked @ factor / (n * (n - 1)) if n > 1 else 0.0
    return error - half_spread


def interval_score_of_rows(
    y: Float[np.ndarray, " *rows"],
    low: Float[np.ndarray, " *rows"],
    high: Float[np.ndarray, " *rows"],
    coverage: float,
) -> Float[np.ndarray, " *rows"]:
    """Compute the interval score of each row: width, and `2 / (1 - coverage)` times how far y is outside.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import interval_score_of_rows
        >>> low, high = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
        >>> interval_score_of_rows(np.array([0.0, 2.0]), low, high, coverage=0.5).tolist()
        [2.0, 6.0]
    """
    outside = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return high - low + 2 / (1 - coverage) * outside


def brier(labels: Int[np.ndarray, " n"], probabilities: Float[np.ndarray, "n classes"]) -> float:
    """Compute the Brier score: the squared distance of probabilities from the one-hot truth, summed over classes.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import brier
        >>> brier(np.array([0]), np.array([[0.5, 0.5]]))
        0.5
    """
    truth = np.eye(probabilities.shape[1])[labels]
    return float(np.mean(np.sum((probabilities - truth) ** 2, axis=1)))


def auc(labels: Int[np.ndarray, " n"], probabilities: Float[np.ndarray, "n classes"]) -> float:
    """Compute the area under the receiver operating characteristic, averaged over classes against all others.

    It is the share of pairs of a row of the class and another row in which the first has more of its probability; ties
    count half. Classes that all rows or none have are left out; NaN where no class is left.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import auc
        >>> p = np.array([0.1, 0.4, 0.3, 0.8])
        >>> auc(np.array([0, 0, 1, 1]), np.column_stack([1 - p, p]))
        0.75
    """
    found = []
    for place in range(probabilities.shape[1]):
        own = labels == place
        n, n_others = int(np.sum(own)), int(np.sum(~own))
        if n and n_others:
            ranks = rankdata(probabilities[:, place])
            found.append((np.sum(ranks[own]) - n * (n + 1) / 2) / (n * n_others))
    return float(np.mean(found)) if found else float("nan")


def calibration_bins(
    labels: Int[np.ndarray, " n"], probabilities: Float[np.ndarray, "n classes"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute confidence, accuracy and number of rows in each of 15 equal bins of the top probability.

    Returns:
        Three arrays of 15: mean top probability, share of right classes, and rows, all zero where a bin is empty.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import calibration_bins
        >>> confidence, accuracy, count = calibration_bins(np.array([1]), np.array([[0.1, 0.9]]))
        >>> float(confidence[13]), float(accuracy[13]), int(count.sum())
        (0.9, 1.0, 1)
    """
    top = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    index = np.minimum((top * N_BINS).astype(int), N_BINS - 1)
    count = np.bincount(index, minlength=N_BINS)
    filled = np.maximum(count, 1)
    confidence = np.bincount(index, weights=top, minlength=N_BINS) / filled
    accuracy = np.bincount(index, weights=right, minlength=N_BINS) / filled
    return confidence, accuracy, count


def ece(labels: Int[np.ndarray, " n"], probabilities: Float[np.ndarray, "n classes"]) -> float:
    """Compute the expected calibration error: mean distance of confidence and accuracy, weighted by rows.

    Example:
        >>> import numpy as np
        >>> from bochner.prediction.metrics import ece
        >>> round(ece(np.array([1]), np.array([[0.1, 0.9]])), 4)
        0.1
    """
    confidence, accuracy, count = calibration_bins(labels, probabilities)
    return float(np.sum(count * np.abs(confidence - accuracy)) / count.sum())
