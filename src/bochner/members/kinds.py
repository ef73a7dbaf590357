"""The kinds of members: by which settings a user asks for one, who fits it, and what then predicts."""

import dataclasses
from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from bochner.fitting.kinds import Constant, Exact, Landmarks, Linear
from bochner.fitting.settings import Deep
from bochner.members.deep import deep_candidates
from bochner.members.parts import AbstractStoredPart, DeepPart
from bochner.members.training import Candidate, Training


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of member that is fitted and stored by itself.

    Attributes:
        settings: the class by which users ask for it.
        candidates: fits one, from its name and settings, to what all members learn from.
        part: what predicts.
    """

    settings: type[BaseEstimator]
    candidates: Callable[[str, Any, Training], list[Candidate]]
    part: type[AbstractStoredPart]

    @property
    def name(self) -> str:
        """In files and on command lines."""
        return self.settings.__name__.lower()


IN_ROWS = (Constant, Linear, Exact, Landmarks)
"""Settings of the models in the space of rows, which are fitted and stored together: see `in_rows.py`."""

KINDS = {
    kind.name: kind
    for kind in [
        Kind(Deep, deep_candidates, DeepPart),
    ]
}
"""Further kinds by their names."""

SETTINGS: dict[str, type[BaseEstimator]] = {
    **{one.__name__.lower(): one for one in IN_ROWS},
    **{name: kind.settings for name, kind in KINDS.items()},
}
"""The settings of every kind of member, by its name."""


def kind_of(member: BaseEstimator) -> Kind | None:
    """Give the kind of a member that is fitted by itself.

    Example:
        >>> from bochner import Deep, Exact
        >>> from bochner.members.kinds import kind_of
        >>> kind_of(Deep()).name, kind_of(Exact())
        ('deep', None)
    """
    return next((kind for kind in KINDS.values() if isinstance(member, kind.settings)), None)
