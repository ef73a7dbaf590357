"""How estimators are judged by rows that their fit has not seen, in groups if asked."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bochner.estimators.calibrated import check_groups, groups_of
from bochner.fitting.rows import Rows
from bochner.members.fitted import Fitted
from bochner.prediction.scores import metrics_by_group


class EvaluatedMixin:
    """Metrics, and the sums that they are made of."""

    fitted_: Fitted

    @abstractmethod
    def checked_rows(self, X: Any, y: Any) -> Rows:
        """Check rows with their targets, as fitted."""

    @abstractmethod
    def _scores_of(self, rows: Rows, groups: Sequence[str] | None = None) -> Any:
        """Sum up how good predictions of checked rows are."""

    def evaluate(self, X: Any, y: Any, *, groups: Any = None) -> dict[str, Any]:
        """Measure predictions on rows that the fit has not seen.

        These are `rmse`, `mae`, `r_squared`, `mnll`, `crps` and `coverage_90` in the units of y, or of classes
        `error_rate`, `auc` (each class against all others, averaged), `mnll`, `brier` and `ece` (15 bins of the top
        probability).

        Args:
            X: rows.
            y: their targets or classes.
            groups: the group of each row, or the name of its column in a table.

        Returns:
            Each metric by its name; with `groups`, the entry of this name has the same of each group, and its `rows`.
        """
        found = self.scores(X, y).metrics()
        if groups is None:
            return found
        return {**found, "groups": metrics_by_group(self.scores_by_group(X, y, groups))}

    def scores(self, X: Any, y: Any) -> Any:
        """Sum up how good predictions are; the sums of parts of a table add up to those of the whole.

        Args:
            X: rows.
            y: their targets or classes.

        Returns:
            Sums of the metrics over these rows; `+` adds those of other rows, `metrics()` gives means by name.
        """
        return self._scores_of(self.checked_rows(X, y))

    def scores_by_group(self, X: Any, y: Any, groups: Any) -> dict[str, Any]:
        """Sum up how good predictions are in each group.

        Args:
            X: rows.
            y: their targets or classes.
            groups: the group of each row, or the name of its column in a table.

        Returns:
            What `scores` gives, by the group as text.
        """
        check_is_fitted(self)
        labels = groups_of(self.fitted_.reader, X, groups, y if isinstance(y, str) else None)
        rows = self.checked_rows(X, y)
        check_groups(labels, len(rows))
        of_rows = np.array(labels, dtype=object)
        found = {}
        for label in sorted(set(labels or ())):
            own = np.flatnonzero(of_rows == label)
            found[label] = self._scores_of(rows[own], [label] * len(own))
        return found
