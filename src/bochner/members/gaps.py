"""Predictions of rows that lack values where the fit lacked none: averages over the values of training rows."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import expit, logsumexp

from bochner.fitting.rows import Rows
from bochner.members.laws import Mixture
from bochner.members.predictors import AbstractClassifier, AbstractPredictor, AbstractRegressor
from bochner.members.whole_numbers import Rounded

_MOST_VALUES = 40
_LEVELS = expit(np.linspace(-9, 9, 61))
"""At which quantiles each part of a mixture is known; dense in the tails."""


@dataclasses.dataclass(frozen=True, eq=False)
class _OverGaps(AbstractPredictor):
    """A predictor of rows in which NaN is a value that is not known.

    The law of such a row is the mixture, with equal weights, of the laws that it has with the values of training rows
    in the place of its gaps; of one training row at a time for all its gaps.

    Attributes:
        whole: predicts rows without gaps.
        values: encoded training rows.
    """

    whole: Any
    values: Float[np.ndarray, "k d"]

    @property
    def parts(self):
        return self.whole.parts

    def functions(self, n, key):
        return self.whole.functions(n, key)

    def _filled(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "nk d"]:
        """Put each of the values into the gaps of each row, the copies of a row one after another."""
        copies = np.repeat(X[:, None], len(self.values), axis=1)
        filled = np.where(np.isnan(copies), self.values[None], copies)
        return filled.reshape(-1, X.shape[1])

    def _apart(self, found: np.ndarray) -> np.ndarray:
        """Give results a row, and a copy of it, along axes of their own."""
        return found.reshape(-1, len(self.values), *found.shape[1:])

    def log_density(self, rows: Rows):
        gaps = np.asarray(np.isnan(rows.X).any(axis=1))
        found = np.empty(len(rows.X))
        if not gaps.all():
            found[~gaps] = self.whole.log_density(rows[~gaps])
        if gaps.any():
            k = len(self.values)
            copies = Rows(
                self._filled(rows.X[gaps]),
                np.repeat(rows.Y[gaps], k, axis=0),
                np.repeat(rows.weights[gaps], k),
            )
            each = self._apart(self.whole.log_density(copies))
            found[gaps] = logsumexp(each, axis=1) - np.log(k)
        return found

    def samples(self, X, n_samples, key):
        gaps = np.isnan(X).any(axis=1)
        some = self._apart(self.whole.samples(self._filled(X[gaps]), n_samples, key))
        rng = np.random.default_rng([n_samples, len(X)])
        chosen = rng.integers(len(self.values), size=(len(some), 1, 1, n_samples))
        drawn = np.take_along_axis(
            some, np.broadcast_to(chosen, (len(some), 1, *some.shape[2:])), axis=1
        )[:, 0]
        found = np.empty((len(X), *drawn.shape[1:]), drawn.dtype)
        found[gaps] = drawn
        if not gaps.all():
            found[~gaps] = self.whole.samples(X[~gaps], n_samples, key)
        return found


class RegressorOverGaps(_OverGaps, AbstractRegressor):
    """Numbers of rows with gaps."""

    def summary(self, X, levels=()):  # noqa: D102
        gaps = np.isnan(X).any(axis=1)
        some = self._mixed(X[gaps], np.asarray(levels, np.float64))
        whole = {} if gaps.all() else self.whole.summary(X[~gaps], levels)
        found = {}
        for name, values in some.items():
            found[name] = np.empty((len(X), *values.shape[1:]))
            found[name][gaps] = values
            if whole:
                found[name][~gaps] = whole[name]
        return found

    def law(self, X):  # noqa: D102
        laws = [self.whole.law(np.where(np.isnan(X), values, X)) for values in self.values]
        weights, lattice = np.full(len(laws), 1 / len(laws)), getattr(laws[0], "lattice", None)
        if lattice is None:
            return Mixture(weights, laws)
        return Rounded(Mixture(weights, [one.law for one in laws]), lattice)

    def cdf(self, rows: Rows):  # noqa: D102
        gaps = np.asarray(np.isnan(rows.X).any(axis=1))
        k, found = len(self.values), np.empty(rows.Y.shape)
        Y, weights = np.repeat(rows.Y[gaps], k, axis=0), np.repeat(rows.weights[gaps], k)
        copies = Rows(self._filled(rows.X[gaps]), Y, weights)
        found[gaps] = self._apart(self.whole.cdf(copies)).mean(axis=1)
        if not gaps.all():
            found[~gaps] = self.whole.cdf(rows[~gaps])
        return found

    def _mixed(self, X: Float[np.ndarray, "n d"], levels: np.ndarray) -> dict[str, np.ndarray]:
        each = self.whole.summary(self._filled(X), _LEVELS if len(levels) else ())
        each = {name: self._apart(values) for name, values in each.items()}
        found = {
            "mean": each["mean"].mean(axis=1),
            "epistemic": each["epistemic"].mean(axis=1) + each["mean"].var(axis=1),
            "aleatoric": each["aleatoric"].mean(axis=1),
        }
        if len(levels):
            found["quantiles"] = _quantiles_of_mixtures(each["quantiles"], levels)
        return found


class ClassifierOverGaps(_OverGaps, AbstractClassifier):
    """Classes of rows with gaps."""

    def probabilities(self, X):  # noqa: D102
        gaps = np.isnan(X).any(axis=1)
        some = self._apart(self.whole.probabilities(self._filled(X[gaps]))).mean(axis=1)
        found = np.empty((len(X), some.shape[1]))
        found[gaps] = some
        if not gaps.all():
            found[~gaps] = self.whole.probabilities(X[~gaps])
        return found


def over_gaps(
    predictor: AbstractPredictor, X: Float[np.ndarray, "n d"], background: Float[np.ndarray, "k d"]
) -> Any:
    """Give what predicts rows X: the predictor itself, or where values are NaN, its average over training rows.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Linear
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit(x, 3 * x[:, 0])
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     mean, std = model.predict([[np.nan]], return_std=True)
        >>> float(mean[0].round(1)), bool(std[0] > 0.8)
        (1.5, True)
    """
    if not np.isnan(X).any():
        return predictor
    if len(background) == 0:
        raise ValueError(
            "values are missing that no row of the fit lacked, and the model has kept no training rows to average "
            "over. Fit it again, or fill them in."
        )
    places = np.linspace(0, len(background) - 1, min(_MOST_VALUES, len(background)))
    values = background[np.unique(places.astype(int))]
    if isinstance(predictor, AbstractRegressor):
        return RegressorOverGaps(predictor, values)
    return ClassifierOverGaps(predictor, values)


def _quantiles_of_mixtures(
    quantiles: Float[np.ndarray, "n k targets levels"], levels: Float[np.ndarray, " p"]
) -> Float[np.ndarray, "n targets p"]:
    """Compute quantiles of mixtures with equal weights, of parts whose quantiles at `_LEVELS` are known."""
    n, k, n_targets, _ = quantiles.shape
    # The mass that each known quantile stands for.
    edges = np.concatenate([[0.0], (_LEVELS[1:] + _LEVELS[:-1]) / 2, [1.0]])
    masses = np.tile(np.diff(edges) / k, k)
    found = np.empty((n, n_targets, len(levels)))
    for row in range(n):
        for target in range(n_targets):
            pooled = quantiles[row, :, target].ravel()
            order = np.argsort(pooled)
            pooled, below = pooled[order], np.cumsum(masses[order])
            if np.all(pooled == np.rint(pooled)):  # a law of whole numbers has such quantiles
                places = np.searchsorted(below, levels)
                found[row, target] = pooled[np.minimum(places, len(pooled) - 1)]
            else:
                found[row, target] = np.interp(levels, below - masses[order] / 2, pooled)
    return found
