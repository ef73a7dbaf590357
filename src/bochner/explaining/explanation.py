"""What a fitted estimator makes of the columns of its table: shares, effects, and contributions to single rows."""

import collections
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from bochner.explaining.columns import TableColumn, table_columns
from bochner.explaining.contributions import Contributions, contributions_of, one_row
from bochner.explaining.effects import Effect, effect_of
from bochner.explaining.kernel_parts import shares_of_terms
from bochner.explaining.members import Member, drawn_functions, members_of, predicted_mean
from bochner.explaining.shares import n_rows_for, shares_of_columns, variances, variances_by_column
from bochner.fitting.task import Classification
from bochner.members.fitted import Fitted
from bochner.members.parts import DeepPart, Function
from bochner.members.predictors import (
    DeepClassifier,
    DeepRegressor,
    StackClassifier,
    StackRegressor,
)
from bochner.system.threads import blas_on_one_thread

_MOST_ROWS = 200

Shares = Mapping[str, float]
"""By name, the largest first."""


@dataclasses.dataclass(frozen=True)
class MemberExplanation:
    """What the members of a kind say.

    Attributes:
        weight: of the kind in the stack.
        share: of it in the variance of the mean that the whole predicts: `Cov(weight * f_kind, f) / Var(f)`.
        columns: share of each column of the table in what exchanged values change of the kind's mean.
        parts: share of each term of its sums of covariances in the variance of the kind's mean; or `deep`.
    """

    weight: float
    share: float
    columns: Shares
    parts: Shares


@dataclasses.dataclass(frozen=True, eq=False)
class Explanation:
    """What matters to the mean that a fitted estimator predicts.

    Of classes, it is their probabilities that vary; of several targets, each counts the same.

    Attributes:
        columns: share of each column of the table, the largest first, in what exchanging values of single columns
            between rows changes of the predicted mean. Of a sum of functions of independent columns, they are shares of
            its variance; columns that act together share out what they do together. They add up to one, unless the
            same is predicted for all rows.
        parts: share of each kind of function in the variance of the predicted mean: the terms of sums of covariances,
            such as `laplace` (steps along columns), `rbf` (smooth) and `linear`, and `deep`. They add up to one.
        members: the kinds of members with weight.
        outputs: the shares of columns for each target or class apart.
        fitted: what is explained.
        rows: by which, encoded.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Linear
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit(X, 3 * X[:, 0] + X[:, 2])
        >>> explanation = model.explain()
        >>> {name: round(share, 1) for name, share in explanation.columns.items()}
        {'column 0': 0.9, 'column 2': 0.1, 'column 1': 0.0}
        >>> {name: round(share, 2) for name, share in explanation.parts.items()}
        {'linear': 1.0}
        >>> effect = explanation.effect("column 2", n_points=3)
        >>> bool(np.allclose(np.diff(effect.mean), np.diff(effect.values), atol=0.05))
        True
        >>> found = explanation.contributions([1.0, 0.0, 0.0])
        >>> bool(np.isclose(found.contributions.sum(), found.mean - found.average))
        True
    """

    columns: Shares
    parts: Shares
    members: Mapping[str, MemberExplanation]
    outputs: Mapping[str, Shares]
    fitted: Fitted = dataclasses.field(repr=False)
    rows: Float[np.ndarray, "rows d"] = dataclasses.field(repr=False)

    def effect(
        self, column: str, n_points: int = 50, *, coverage: float = 0.9, n_draws: int = 32
    ) -> Effect:
        """Compute the mean prediction over rows in which a column has each of some values, with intervals.

        Args:
            column: name of a column of the table.
            n_points: how many values of a number, at equal distances; of a category, all.
            coverage: of the intervals, by functions drawn from the posterior.
            n_draws: how many functions.
        """
        known = {one.name: one for one in self._columns}
        if column not in known:
            raise ValueError(
                f"no column {column!r}; the columns are {', '.join(map(repr, known))}."
            )
        if n_points < 2 or n_draws < 2 or not 0 < coverage < 1:
            raise ValueError(
                "an effect needs two points or more, two draws or more, and a coverage between 0 and 1; got "
                f"{n_points}, {n_draws} and {coverage}."
            )
        if n_draws not in self._drawn:
            self._drawn[n_draws] = drawn_functions(self.fitted, n_draws)
        mean = functools.partial(predicted_mean, self.fitted.predictor)
        within = (0.0, 1.0) if self.fitted.task.classification else (-np.inf, np.inf)
        drawn = self._drawn[n_draws]
        return effect_of(known[column], mean, drawn, self.rows, n_points, coverage, within)

    def contributions(self, row: Any, n_draws: int = 0) -> Contributions:
        """Share out among columns what is between a row's predicted mean and the average one.

        Args:
            row: its values in the order of the fit, or by name in a dictionary, or a table of one row.
            n_draws: functions drawn for the deviations of contributions; none by default.
        """
        return explain_row(self.fitted, row, self.rows, n_draws)

    @functools.cached_property
    def _columns(self) -> list[TableColumn]:
        return table_columns(self.fitted)

    @functools.cached_property
    def _drawn(self) -> dict[int, list[Function]]:
        """Functions drawn, which all effects share."""
        return {}


@blas_on_one_thread()
def explain(fitted: Fitted, X: Float[np.ndarray, "n d"] | None = None) -> Explanation:
    """Find what matters to the mean that a fitted estimator predicts.

    Args:
        fitted: the estimator.
        X: encoded rows; by default those that the fit has kept. Of many, some are drawn.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.explaining import explain
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit(X, X[:, 1])
        >>> [name for name, share in explain(model.fitted_).columns.items() if share > 0.1]
        ['column 1']
    """
    columns = table_columns(fitted)
    rows = _some(fitted, X, len(columns))
    members, names = members_of(fitted.predictor), [column.name for column in columns]

    def means(X: np.ndarray) -> list[np.ndarray]:
        own = [predicted_mean(member.predictor, X) for member in members]
        whole = np.zeros((len(X), fitted.task.n_outputs))
        for member, mean in zip(members, own, strict=True):
            whole[:, member.outputs] += member.weight * mean
        return [whole, *own]

    whole, *of_members = means(rows)
    spread = variances(whole)
    # Targets have units of their own, and count the same; the probabilities of classes have one unit.
    units = np.ones(len(spread)) if fitted.task.classification else np.where(spread, spread, 1.0)
    of_whole, *by_member = variances_by_column(means, rows, columns)
    total, found, parts = float(np.sum(spread / units)), {}, collections.Counter()
    residual = (whole - whole.mean(axis=0)) / (len(rows) - 1) / units
    for member, mean, by_column in zip(members, of_members, by_member, strict=True):
        covariance = member.weight * float(np.sum(mean * residual[:, member.outputs]))
        share = covariance / total if np.any(variances(mean)) and total > 0 else 0.0
        terms = _terms(member, rows, columns)
        parts.update({name: share * of_term for name, of_term in terms.items()})
        shares = shares_of_columns(by_column / units[member.outputs], variances(mean))
        found[member.name] = MemberExplanation(member.weight, share, _ranked(names, shares), terms)
    return Explanation(
        columns=_ranked(names, shares_of_columns(of_whole / units, spread)),
        parts=dict(parts.most_common()),
        members=found,
        outputs=_by_output(fitted, names, of_whole, spread),
        fitted=fitted,
        rows=rows,
    )


@blas_on_one_thread()
def explain_row(
    fitted: Fitted, row: Any, X: Float[np.ndarray, "n d"] | None = None, n_draws: int = 0
) -> Contributions:
    """Share out among columns what is between a row's predicted mean and the average one.

    Args:
        fitted: the estimator.
        row: its values in the order of the fit, or by name in a dictionary, or a table of one row.
        X: encoded rows to compare with; by default those that the fit has kept. Of many, some are drawn.
        n_draws: functions drawn for the deviations of contributions; none by default.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.explaining import explain_row
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit(X, 3 * X[:, 1] + 7)
        >>> found = explain_row(model.fitted_, [0.0, 1.0])
        >>> found.columns, float(found.mean.round(1))
        (('column 0', 'column 1'), 10.0)
    """
    columns, one = table_columns(fitted), one_row(fitted, row)
    rows = _some(fitted, X, len(columns))
    mean = functools.partial(predicted_mean, fitted.predictor)
    return contributions_of(columns, mean, drawn_functions(fitted, n_draws), rows, one)


def _some(
    fitted: Fitted, X: Float[np.ndarray, "n d"] | None, n_columns: int
) -> Float[np.ndarray, "rows d"]:
    """Take the rows given, or those that the fit has kept, and draw some of many."""
    if X is None and len(fitted.background) < 2:
        raise ValueError(
            "the model has kept no training rows: give some rows to explain it by, `X`."
        )
    if X is None:
        X = fitted.background
    if len(X) < 2:
        raise ValueError(f"rows to explain a model by must be two or more; got {len(X)}.")
    most = min(_MOST_ROWS, n_rows_for(n_columns))
    return X[np.random.default_rng(0).permutation(len(X))[:most]] if len(X) > most else X


def _terms(member: Member, rows: np.ndarray, columns: list[TableColumn]) -> dict[str, float]:
    """Average the shares of terms over the parts of a kind; a deep model is one term, and a constant one has none."""
    if isinstance(member.predictor, DeepRegressor | DeepClassifier):
        return {"deep": 1.0}
    assert isinstance(member.predictor, StackRegressor | StackClassifier)
    found = collections.Counter()
    for weight, part in zip(member.predictor.weights, member.predictor.parts, strict=True):
        terms = (
            {"deep": 1.0} if isinstance(part, DeepPart) else shares_of_terms(part, rows, columns)
        )
        found.update({name: float(weight) * share for name, share in terms.items()})
    return dict(found.most_common())


def _ranked(names: list[str], shares: Float[np.ndarray, " columns"]) -> dict[str, float]:
    order = np.argsort(-shares, kind="stable")
    return {names[place]: float(shares[place]) for place in order}


def output_names(fitted: Fitted) -> list[str]:
    """Name the classes, or several targets; one target has no name.

    Example:
        >>> from bochner import DeepGPClassifier, Linear
        >>> from bochner.explaining import output_names
        >>> model = DeepGPClassifier(Linear()).fit([[0.0], [1], [2], [4]], ["no", "no", "yes", "yes"])
        >>> output_names(model.fitted_)
        ['no', 'yes']
    """
    if isinstance(fitted.task, Classification):
        return list(map(str, fitted.task.classes.tolist()))
    n = fitted.task.n_outputs
    return [f"target {place}" for place in range(n)] if n > 1 else []


def _by_output(
    fitted: Fitted, names: list[str], of_whole: np.ndarray, spread: np.ndarray
) -> dict[str, Shares]:
    """Give the shares of each class or target; nothing for one target."""
    return {
        label: _ranked(names, shares_of_columns(of_whole[:, [place]], spread[[place]]))
        for place, label in enumerate(output_names(fitted))
    }
