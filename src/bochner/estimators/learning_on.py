"""The methods of the estimators that learn from rows that come after a fit."""

import abc
import dataclasses
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bochner.fitting.resolving import Asked
from bochner.fitting.rows import Rows
from bochner.fitting.sources import Reader
from bochner.fitting.task import AbstractTask
from bochner.members.fit import Form, fit_first
from bochner.members.fitted import Fitted
from bochner.members.updating import updated


class LearningOnMixin(metaclass=abc.ABCMeta):
    """`update` of the estimators, and what `partial_fit` is."""

    fitted_: Fitted
    members: Any

    @abc.abstractmethod
    def _asked(self) -> Asked:
        """Put together what the parameters say, checked."""

    @abc.abstractmethod
    def _read_if_named(self, X: Any, y: Any, *, gaps: bool = True) -> tuple[Any, Any]:
        """Read a table of named columns."""

    @abc.abstractmethod
    def _matrix(self, X: Any, reader: Reader, *, gaps: bool) -> np.ndarray:
        """Give rows as a matrix of numbers."""

    @abc.abstractmethod
    def _learned_inputs(self, X: Any) -> tuple[np.ndarray, Form]:
        """Give the rows of a fit as a matrix, and what they look like."""

    @abc.abstractmethod
    def _task_of(self, y: Any, X: np.ndarray) -> AbstractTask:
        """Note the form of the targets of a first fit."""

    @abc.abstractmethod
    def _weights(self, y: Any, sample_weight: Any, X: np.ndarray) -> np.ndarray:
        """Give the weights of rows."""

    def update(self, X: Any, y: Any, sample_weight: Any = None, *, forgetting: float = 0.0) -> Self:
        """Learn from further rows, with scaling, hyper-parameters and weights of members as they are.

        Models in the space of rows are then those of all rows at once, in closed form. Deep ones train for a few steps.

        Args:
            X: further rows.
            y: their targets or classes, or the name of their column in the table X.
            sample_weight: how often each row counts.
            forgetting: the share of the weight of all rows before it that each row takes, from 0 to below 1: about the
                last `1 / forgetting` rows count.

        Example:
            >>> import numpy as np
            >>> from bochner import DeepGPRegressor, Exact
            >>> X = np.linspace(0, 6, 60)[:, None]
            >>> model = DeepGPRegressor(Exact(), random_state=0).fit(X[:40], np.sin(X[:40, 0]))
            >>> before = model.predict([[6.0]], return_std=True)[1]
            >>> mean, after = model.update(X[40:], np.sin(X[40:, 0])).predict([[6.0]], return_std=True)
            >>> bool(abs(mean[0] - np.sin(6.0)) < 0.1), bool(after[0] < before[0])
            (True, True)
        """
        check_is_fitted(self)
        if not isinstance(forgetting, int | float) or not 0 <= forgetting < 1:
            raise ValueError(f"`forgetting` must be from 0 to below 1; got {forgetting!r}.")
        X, y = self._read_if_named(X, y, gaps=False)
        X = self._matrix(X, self.fitted_.reader, gaps=False)
        rows = Rows(X, self.fitted_.task.targets(y, X), self._weights(y, sample_weight, X))
        asked = dataclasses.replace(self._asked(), goes_on=True)
        with asked.session.on_device():
            self.fitted_ = updated(self.fitted_, rows, asked, float(forgetting))
        return self

    def _fit_or_update(self, X: Any, y: Any, sample_weight: Any, task: AbstractTask | None) -> Self:
        """Fit to the first rows, or learn from further ones."""
        if hasattr(self, "fitted_"):
            return self.update(X, y, sample_weight)
        X, form = self._learned_inputs(X)
        task = self._task_of(y, X) if task is None else task
        rows = Rows(X, task.targets(y, X), self._weights(y, sample_weight, X))
        asked = self._asked()
        with asked.session.on_device():
            self.fitted_ = fit_first(self.members, asked, rows, task, form)
        return self
