"""The methods of the estimators that tell what matters to a prediction."""

import abc
import contextlib
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bochner.explaining import Contributions, Explanation, explain, explain_row
from bochner.members.fitted import Fitted


class ExplainedMixin(metaclass=abc.ABCMeta):
    """`explain` and `explain_row` of the estimators."""

    fitted_: Fitted

    @abc.abstractmethod
    def on_device(self) -> contextlib.AbstractContextManager:
        """Compute on the device that was asked for."""

    @abc.abstractmethod
    def _checked_inputs(self, X: Any) -> np.ndarray:
        """Give X as a matrix of numbers."""

    def explain(self, X: Any = None) -> Explanation:
        """Find what matters to the predicted mean: shares of columns, of kinds of functions, of members.

        Args:
            X: rows by which columns are varied, of which 200 at most are used; by default training rows that the fit
                has kept.

        Returns:
            Shares and effects of columns by name, with plots; see `bochner.explaining.Explanation`.
        """
        X = self._rows_to_explain(X)
        with self.on_device():
            return explain(self.fitted_, X)

    def explain_row(self, row: Any, X: Any = None, n_draws: int = 0) -> Contributions:
        """Share out among columns what is between a row's predicted mean and the average one.

        Args:
            row: its values in the order of the fit, or by name in a dictionary, or a table of one row.
            X: rows to compare with; by default training rows that the fit has kept.
            n_draws: functions drawn for the deviations of contributions; none by default.

        Returns:
            A contribution of each column, which add up to the difference; see `bochner.explaining.Contributions`.
        """
        X = self._rows_to_explain(X)
        with self.on_device():
            return explain_row(self.fitted_, row, X, n_draws)

    def _rows_to_explain(self, X: Any) -> np.ndarray | None:
        check_is_fitted(self)
        if X is None:
            return None
        X = self._checked_inputs(X)
        known = (
            self.fitted_.background if len(self.fitted_.background) else np.zeros((1, X.shape[1]))
        )
        return np.where(np.isnan(X), np.median(known, axis=0), X)
