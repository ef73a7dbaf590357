"""Rows that a model has not seen: how good it is on them, which settings they favor, who leaves which ones out."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Int

from bochner.fitting.config import Config
from bochner.fitting.rows import Rows
from bochner.prediction.statistics import LogDensity, Posterior
from bochner.rows.table import Table, Tables

DEPTHS = (1, 2, 3)
"""Numbers of layers that `n_layers="auto"` tries."""

_SHARE_TO_JUDGE = 0.2
_MAX_ROWS_TO_TRY = 20_000
_SHARE_OF_A_TRIAL = 8
_ERRORS_BEYOND_NOISE = 2.0
_MOST_A_ROW_TELLS_OF_NOISE = 5.0


class WorseThanSimplerModelWarning(UserWarning):
    """On rows that it has not seen, a fit is worse than a constant or linear model.

    Attributes:
        logged: its words are logged as an error, too.
    """

    logged = True


@dataclasses.dataclass(frozen=True)
class Judged:
    """How probable some rows are under a model that has not seen them, in the units of the targets.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.validation import Judged
        >>> weights = np.ones(100)
        >>> good, bad = (Judged(np.full(100, value), weights) for value in (-1.0, -2.0))
        >>> good.clearly_better_than(bad), good.clearly_better_than(good)
        (True, False)
    """

    log_density: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]

    @property
    def mean(self) -> float:
        """The mean over rows, each counted by its weight."""
        return float(np.average(self.log_density, weights=self.weights))

    def clearly_better_than(self, other: "Judged") -> bool:
        """Tell whether the mean is higher on the same rows by more than two standard errors of the difference.

        A difference in one row counts in full for the mean, and up to five nats for its standard error: one row that a
        model thinks impossible is no noise.
        """
        difference = self.log_density - other.log_density
        bounded = np.clip(difference, -_MOST_A_ROW_TELLS_OF_NOISE, _MOST_A_ROW_TELLS_OF_NOISE)
        shares = self.weights / self.weights.sum()
        error = np.sqrt(np.sum((shares * (bounded - shares @ bounded)) ** 2))
        return bool(shares @ difference > _ERRORS_BEYOND_NOISE * error)


def log_density_of(posterior: Posterior, rows: Rows) -> Float[np.ndarray, " n"]:
    """Compute each row's log predictive density, in the scaled targets' units."""
    return posterior.map_rows(LogDensity(), rows.X, Y=rows.Y)


def mnll_of(posterior: Posterior, rows: Rows) -> float:
    """Compute the mean negative log-likelihood of scaled rows, each counted by its weight."""
    return float(-np.average(log_density_of(posterior, rows), weights=rows.weights))


def parts_to_judge(rows: Rows) -> tuple[Rows, Rows]:
    """Give most of the rows to train on, and the others to judge by; of very many rows only some."""
    if len(rows) > _MAX_ROWS_TO_TRY:
        generator = np.random.default_rng(0)
        rows = rows[generator.permutation(len(rows))[:_MAX_ROWS_TO_TRY]]
    order = np.random.default_rng(1).permutation(len(rows))
    n_judged = max(round(_SHARE_TO_JUDGE * len(rows)), 1)
    return rows[np.sort(order[n_judged:])], rows[np.sort(order[:n_judged])]


def brief(config: Config) -> Config:
    """Give the configuration of a trial, which takes an eighth of the time that the fit will take.

    Example:
        >>> from bochner import Deep, DeepGPRegressor
        >>> from bochner.fitting.config import Config
        >>> from bochner.fitting.validation import brief
        >>> fitted = DeepGPRegressor(Deep(n_members=2, max_steps=40), random_state=0)
        >>> trial = brief(Config(**fitted.fit([[0.0], [1.0]], [0.0, 1.0]).config_))
        >>> trial.n_members, trial.max_steps
        (1, 10)
    """
    steps, seconds = config.max_steps, config.max_seconds
    if steps is not None:
        steps = max(min(steps * config.n_members // _SHARE_OF_A_TRIAL, steps), 1)
    if seconds is not None:
        seconds = seconds / _SHARE_OF_A_TRIAL
    return dataclasses.replace(config, n_members=1, max_steps=steps, max_seconds=seconds)


@dataclasses.dataclass(frozen=True)
class OwnRows:
    """Rows that each member leaves out for itself, so that a small table can judge a model and still teach it.

    Attributes:
        left_out: which member leaves out which row; no row is left out by two.
    """

    left_out: Bool[np.ndarray, "members n"]

    @classmethod
    def in_folds(cls, folds: Int[np.ndarray, " n"]) -> "OwnRows":
        """Let each member leave out one fold.

        Example:
            >>> import numpy as np
            >>> from bochner.fitting.validation import OwnRows
            >>> OwnRows.in_folds(np.array([0, 1, 0])).left_out.tolist()
            [[True, False, True], [False, True, False]]
        """
        return cls(folds[None, :] == np.arange(int(folds.max()) + 1)[:, None])

    def tables(self, table: Table) -> list[Table]:
        """Give each member the table in which its own rows weigh nothing, which is as if they were not there."""
        return [
            Table(table.X, table.Y, table.weights * ~left_out)  # pyright: ignore[reportOperatorIssue]
            for left_out in self.left_out
        ]

    def to_learn_from(self, table: Table) -> Table:
        """Give what the members learn from."""
        return _together(self.tables(table))


def _together(tables: list[Table]) -> Table:
    return tables[0] if len(tables) == 1 else Tables.stack(tables)
