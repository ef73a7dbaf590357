"""The method of the estimators that makes intervals and sets hold on rows that the fit has not seen."""

import abc
import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bochner.fitting.columns import column_of
from bochner.fitting.rows import Rows
from bochner.fitting.sources import Reader
from bochner.members.calibration import Calibration, labels_of
from bochner.members.conformal import scores
from bochner.members.fitted import Fitted


class CalibratedMixin(metaclass=abc.ABCMeta):
    """`calibrate` of the estimators."""

    fitted_: Fitted

    @abc.abstractmethod
    def on_device(self) -> contextlib.AbstractContextManager:
        """Compute on the device that was asked for."""

    @abc.abstractmethod
    def _predictor_of(self, X: np.ndarray) -> Any:
        """Give what predicts a matrix."""

    @abc.abstractmethod
    def checked_rows(self, X: Any, y: Any) -> Rows:
        """Check rows with their targets, as fitted."""

    def calibrate(
        self, X: Any, y: Any, groups: Any = None, *, forgetting: float | None = None
    ) -> Self:
        """Correct intervals, quantiles and sets by rows that no part of the fit has seen (conformal prediction).

        An interval then holds the target of a new row with the stated probability or more, if that row and these are
        exchangeable, whatever the data and the model are. Where rows are too few for it, its ends are infinite. Means,
        deviations, densities and draws stay as they are.

        Args:
            X: rows.
            y: their targets or classes, or the name of their column in the table X.
            groups: the group of each row, or with a table the name of its column: intervals asked for with `groups`
                then hold in each group.
            forgetting: None begins anew. A number goes on from earlier calls, as in a stream: each row takes this share
                of the weight of all rows before it, so that about the last `1 / forgetting` rows count.

        Example:
            >>> import numpy as np
            >>> from bochner import DeepGPRegressor, Linear
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(200, 1))
            >>> y = X[:, 0] + rng.normal(size=200)
            >>> model = DeepGPRegressor(Linear(), random_state=0).fit(X[:50], y[:50])
            >>> low, high = model.calibrate(X[50:150], y[50:150]).predict_interval(X[150:], coverage=0.8).T
            >>> bool(np.mean((low <= y[150:]) & (y[150:] <= high)) > 0.7)
            True
        """
        check_is_fitted(self)
        if forgetting is not None and not 0 <= forgetting < 1:
            raise ValueError(
                f"`forgetting` must be None, or from 0 to below 1; got {forgetting!r}."
            )
        labels = groups_of(self.fitted_.reader, X, groups, y if isinstance(y, str) else None)
        rows = self.checked_rows(X, y)
        check_groups(labels, len(rows))
        with self.on_device():
            found = Calibration.of(scores(self._predictor_of(rows.X), rows), labels)
        if forgetting is not None:
            found = found.after(self.fitted_.calibration, forgetting)
        self.fitted_ = dataclasses.replace(self.fitted_, calibration=found)
        return self


def groups_of(reader: Reader, X: Any, groups: Any, target: str | None = None) -> list[str] | None:
    """Give the groups of rows as text: from an array, or from a column of a table that is named."""
    if groups is None:
        return None
    of_rows = column_of(reader, X, groups, target) if isinstance(groups, str) else groups
    return labels_of(of_rows)


def check_groups(labels: Sequence[str] | None, n: int) -> None:
    """Refuse groups of another number of rows."""
    if labels is not None and len(labels) != n:
        raise ValueError(
            f"`groups` must have one entry for each of the {n} rows; got {len(labels)}."
        )
