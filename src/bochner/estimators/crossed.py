"""The methods of the regressor that give intervals with a bound from the training rows alone."""

import abc
import copy
import dataclasses
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from bochner.exact.folds import folds_of_groups
from bochner.fitting.columns import rows_as_they_are
from bochner.fitting.config import check_whole_number
from bochner.fitting.rows import Rows
from bochner.members.cross import LeftOutScores
from bochner.members.fitted import Fitted


class CrossedMixin(metaclass=abc.ABCMeta):
    """`cross_fit`, and the intervals of `method="cross"`."""

    fitted_: Fitted

    @abc.abstractmethod
    def checked_rows(self, X: Any, y: Any) -> Rows:
        """Check rows with their targets, as fitted."""

    @abc.abstractmethod
    def _summary(self, X: Any, levels: Any, groups: Any = None) -> dict[str, np.ndarray]:
        """Compute means and deviations."""

    def cross_fit(self, X: Any, y: Any, n_folds: int = 5) -> Self:
        """Fit anew without each of some folds of the training rows, for `predict_interval(..., method="cross")`.

        It takes the time of so many fits, and the model file has room for all of them.

        Args:
            X: the rows of the fit.
            y: their targets, or the name of their column in the table X.
            n_folds: how many.

        Example:
            >>> import numpy as np
            >>> from bochner import DeepGPRegressor, Linear
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(100, 1))
            >>> y = X[:, 0] + rng.normal(size=100)
            >>> model = DeepGPRegressor(Linear(), random_state=0).fit(X[:60], y[:60]).cross_fit(X[:60], y[:60])
            >>> low, high = model.predict_interval(X[60:], coverage=0.8, method="cross").T
            >>> bool(np.mean((low <= y[60:]) & (y[60:] <= high)) > 0.7)
            True
        """
        check_is_fitted(self)
        check_whole_number("n_folds", n_folds)
        rows = self.checked_rows(X, y)
        if not 2 <= n_folds <= len(rows):
            raise ValueError(
                f"`n_folds` must be from 2 to the number of rows, {len(rows)}; got {n_folds}."
            )
        fold = folds_of_groups(np.arange(len(rows)), n_folds, self.fitted_.seed)
        scores, fits = np.empty(rows.Y.shape), []
        table = None
        if isinstance(y, str):
            table = rows_as_they_are(self.fitted_.reader, X, y)
        for number in range(n_folds):
            kept, out = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            fresh: Any = clone(self)  # pyright: ignore[reportArgumentType]
            if table is not None:
                part, left_out = fresh.fit(table.take(kept), y), table.take(out)
            else:
                own, left_out = (_safe_indexing(X, index) for index in (kept, out))
                part = fresh.fit(own, _safe_indexing(y, kept))
            mean, std = part.predict(left_out, return_std=True)
            error = np.abs(rows.Y[out] - np.reshape(mean, (len(out), -1)))
            scores[out] = error / np.reshape(std, (len(out), -1))
            fits.append(part.fitted_)
        folds = LeftOutScores(scores, fold)
        self.fitted_ = dataclasses.replace(self.fitted_, left_out=folds, fits=tuple(fits))
        return self

    def _cross_interval(self, X: Any, coverage: float) -> np.ndarray:
        """Compute intervals of `method="cross"`."""
        check_is_fitted(self)
        if self.fitted_.left_out is None:
            raise ValueError(
                '`method="cross"` needs fits without each fold: call `cross_fit` with the training rows first.'
            )
        means, deviations = [], []
        for fitted in self.fitted_.fits:
            part = copy.copy(self)
            part.fitted_ = fitted
            found = part._summary(X, ())
            means.append(np.reshape(found["mean"], (len(found["mean"]), -1)))
            deviations.append(np.reshape(found["std"], means[-1].shape))
        found = self.fitted_.left_out.interval(np.stack(means), np.stack(deviations), coverage)
        return self.fitted_.task.shaped(found)  # pyright: ignore[reportAttributeAccessIssue]
