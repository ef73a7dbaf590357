"""Intervals and sets that hold on rows like those of a calibration: by the model's own distribution function.

A row's score is the standard normal quantile of `F(y | x)`. A calibrated quantile is the model's quantile at another
level, the same one for all rows of a group, so that calibrated quantiles are in order and as wide as the model says
(distributional conformal prediction: Chernozhukov et al., 2021).
"""

from collections.abc import Sequence

import numpy as np
import scipy.special
from jaxtyping import Bool, Float

from bochner.fitting.rows import Rows
from bochner.members.calibration import Calibration
from bochner.members.predictors import AbstractClassifier, AbstractPredictor, AbstractRegressor

_FAR = 4.0
"""Deviations beyond which distribution functions are rounded: from there on quantiles are taken to be in a line."""

_ROUNDING = 1e-6
_TAILS = scipy.special.ndtr(np.array([-_FAR, 0.0, _FAR]))


def scores(predictor: AbstractPredictor, rows: Rows) -> Float[np.ndarray, "n targets"]:
    """Compute the score of each target: of numbers a deviation, of classes the mass of those more probable."""
    if isinstance(predictor, AbstractClassifier):
        masses = mass_of_more_probable(predictor.probabilities(rows.X))
        return np.take_along_axis(masses, rows.Y, axis=1)
    assert isinstance(predictor, AbstractRegressor)
    with np.errstate(divide="ignore"):
        found = scipy.special.ndtri(predictor.cdf(rows))
    far = np.abs(found) > _FAR
    some = np.flatnonzero(far.any(axis=1))
    if len(some):
        low, middle, high = np.moveaxis(predictor.summary(rows.X[some], _TAILS)["quantiles"], -1, 0)
        beyond = rows.Y[some] - middle
        lengths = np.where(beyond > 0, high - middle, middle - low)
        in_line = _FAR * beyond / np.maximum(lengths, np.finfo(np.float64).tiny)
        found[some] = np.where(far[some], in_line, found[some])
    return found


def summary(
    predictor: AbstractRegressor,
    calibration: Calibration | None,
    X: Float[np.ndarray, "n d"],
    levels: Sequence[float],
    groups: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """Compute what `AbstractRegressor.summary` does, with calibrated quantiles where there is a calibration."""
    if calibration is None and groups is not None:
        raise ValueError(
            "`groups` are for a calibrated model: call `calibrate` with `groups` first."
        )
    if calibration is None or not len(levels):
        return predictor.summary(X, levels)
    if groups is None:
        return _summary(predictor, calibration, X, levels, None)
    numbers = calibration.numbers(groups)
    found: dict[str, np.ndarray] = {}
    for group in np.unique(numbers):
        own = np.flatnonzero(numbers == group)
        for name, values in _summary(predictor, calibration, X[own], levels, int(group)).items():
            found.setdefault(name, np.empty((len(X), *values.shape[1:])))[own] = values
    return found


def _summary(
    predictor: AbstractRegressor,
    calibration: Calibration,
    X: np.ndarray,
    levels: Sequence[float],
    group: int | None,
) -> dict[str, np.ndarray]:
    n_targets = calibration.scores.shape[1]
    asked = np.array(
        [[calibration.at(p, target=t, group=group) for p in levels] for t in range(n_targets)]
    )
    near = scipy.special.ndtr(np.clip(asked, -_FAR, _FAR))
    # Where targets are whole numbers, a level just above that of a number would be of the next.
    near -= _ROUNDING * np.minimum(near, 1 - near)
    found = predictor.summary(X, [*near.reshape(-1), 0.5])
    of_levels = found["quantiles"][..., :-1].reshape(len(X), n_targets, n_targets, len(levels))
    own = np.arange(n_targets)
    at, middle = of_levels[:, own, own], found["quantiles"][..., -1:]
    stretch = np.maximum(np.abs(asked) / _FAR, 1.0)
    with np.errstate(invalid="ignore"):
        far = np.where(np.isinf(stretch), np.sign(asked) * np.inf, middle + stretch * (at - middle))
    return found | {"quantiles": np.where(stretch > 1, far, at)}


def class_sets(
    calibration: Calibration | None,
    probabilities: Float[np.ndarray, "n classes"],
    coverage: float,
    groups: Sequence[str] | None = None,
) -> Bool[np.ndarray, "n classes"]:
    """Give the most probable classes that together have the coverage, at the calibrated level if there is one.

    The most probable class is always among them.
    """
    masses = mass_of_more_probable(probabilities)
    if calibration is None:
        if groups is not None:
            raise ValueError(
                "`groups` are for a calibrated model: call `calibrate` with `groups` first."
            )
        return masses < coverage
    if groups is None:
        return masses <= calibration.upper(coverage)
    numbers = calibration.numbers(groups)
    of_group = {group: calibration.upper(coverage, group=group) for group in np.unique(numbers)}
    return masses <= np.array([of_group[group] for group in numbers])[:, None]


def mass_of_more_probable(p: Float[np.ndarray, "n classes"]) -> Float[np.ndarray, "n classes"]:
    """Compute for each class the probability of all that are more probable.

    Example:
        >>> import numpy as np
        >>> from bochner.members.conformal import mass_of_more_probable
        >>> mass_of_more_probable(np.array([[0.25, 0.5, 0.25]])).tolist()
        [[0.5, 0.0, 0.75]]
    """
    order = np.argsort(-p, axis=1, kind="stable")
    ordered = np.take_along_axis(p, order, axis=1)
    before = np.cumsum(ordered, axis=1) - ordered
    found = np.empty_like(p)
    np.put_along_axis(found, order, before, axis=1)
    return found
