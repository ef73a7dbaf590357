"""Scores of rows that no part of a fit has seen, and the levels that hold on them: conformal calibration."""

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

_LEAST_WEIGHT = 1e-4
_ROUNDING = 1e-9
MOST_ROWS = 1_000_000
"""The most recent ones are kept."""


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of calibration rows, in the order in which they came.

    A new row that is exchangeable with n of them has a score of at most the k-th smallest with probability k / (n + 1)
    or more (Vovk et al., 2005). Rows of weight below one count for less, as those of a stream do that came long ago
    (Barber et al., 2023): the new row always counts once.

    Attributes:
        scores: of each row and target.
        weights: of each row.
        group: the number of each row's group; all zero where there are no groups.
        names: of the groups; None where there are none.
        when: it was made, in UTC.

    Example:
        >>> import numpy as np
        >>> from bochner.members.calibration import Calibration
        >>> found = Calibration.of(np.arange(19.0)[:, None])
        >>> found.upper(0.95), found.lower(0.05), found.upper(0.96)
        (18.0, 0.0, inf)
    """

    scores: Float[np.ndarray, "n targets"]
    weights: Float[np.ndarray, " n"]
    group: Int[np.ndarray, " n"]
    names: tuple[str, ...] | None
    when: str

    @classmethod
    def of(
        cls, scores: Float[np.ndarray, "n targets"], groups: Sequence[str] | None = None
    ) -> "Calibration":
        """Let all rows count once."""
        names, group = None, np.zeros(len(scores), np.int64)
        if groups is not None:
            found, group = np.unique(np.array(groups, dtype=object), return_inverse=True)
            names = tuple(found.tolist())
        when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return cls(scores, np.ones(len(scores)), group.reshape(-1), names, when)

    def after(self, before: "Calibration | None", forgetting: float) -> "Calibration":
        """Go on from earlier rows; each row takes a share of the weight of all rows before it."""
        n_later = np.arange(len(self), 0, -1.0)
        weights = self.weights * (1 - forgetting) ** n_later
        if before is None:
            return dataclasses.replace(self, weights=weights)
        if (self.names is None) != (before.names is None):
            raise ValueError(
                "`groups` must be given at each call of `calibrate` that goes on from another, or at none."
            )
        known = {name: None for one in (before, self) for name in one.names or ()}
        places = {name: place for place, name in enumerate(known)}
        own = np.array([places[name] for name in self.names or ()], np.int64)
        group = own[self.group] if self.names is not None else self.group
        weights = np.concatenate([before.weights * (1 - forgetting) ** len(self), weights])
        kept = np.flatnonzero(weights >= _LEAST_WEIGHT)[-MOST_ROWS:]
        return Calibration(
            np.concatenate([before.scores, self.scores])[kept],
            weights[kept],
            np.concatenate([before.group, group])[kept],
            None if self.names is None else tuple(known),
            self.when,
        )

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.scores)

    def in_words(self) -> str:
        """Say on how many rows, in how many groups, and when."""
        groups = "" if self.names is None else f" in {len(self.names):,} groups"
        return f"on {len(self):,} rows{groups}, {self.when}"

    def upper(self, level: float, *, target: int = 0, group: int | None = None) -> float:
        """Give the least score that a new row does not exceed with such a probability; infinite where rows are few."""
        scores, weights = self._of(target, group)
        return _least(scores, weights, level)

    def lower(self, level: float, *, target: int = 0, group: int | None = None) -> float:
        """Give the largest score below which a new row is with such a probability at most."""
        scores, weights = self._of(target, group)
        return -_least(-scores, weights, 1 - level)

    def at(self, level: float, *, target: int = 0, group: int | None = None) -> float:
        """Give the score of a quantile, rounded away from the median, so that intervals hold what they say."""
        side = self.lower if level < 0.5 else self.upper
        return side(level, target=target, group=group)

    def numbers(self, groups: Sequence[str]) -> Int[np.ndarray, " n"]:
        """Give the number of each group."""
        if self.names is None:
            raise ValueError(
                "`groups` are for a model that was calibrated by groups; this one was not. Leave them out, or call "
                "`calibrate` with `groups`."
            )
        places = {name: place for place, name in enumerate(self.names)}
        unknown = [name for name in groups if name not in places]
        if unknown:
            raise ValueError(
                f"`groups` holds {unknown[0]!r}, which the calibration has not seen; it knows {_few(self.names)}. "
                "Leave `groups` out for intervals that hold over all groups together."
            )
        return np.array([places[name] for name in groups], np.int64)

    def _of(self, target: int, group: int | None) -> tuple[np.ndarray, np.ndarray]:
        kept = slice(None) if group is None else self.group == group
        return self.scores[kept, target], self.weights[kept]


def labels_of(values: Any) -> list[str]:
    """Give values of a column of groups as text, whole numbers alike whatever their type.

    Example:
        >>> from bochner.members.calibration import labels_of
        >>> labels_of([1, 1.0, "north", None])
        ['1', '1', 'north', 'None']
    """
    found = values.tolist() if hasattr(values, "tolist") else list(values)
    return [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in found]


def _least(scores: np.ndarray, weights: np.ndarray, level: float) -> float:
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(weights[order]) / (np.sum(weights) + 1)
    place = int(np.searchsorted(reached, level - _ROUNDING))
    return float(scores[order[place]]) if place < len(order) else np.inf


def _few(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")
