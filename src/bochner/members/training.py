"""What all members of a stack learn from, and by which rows they are judged."""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float, Int

from bochner.exact import rows as exact_rows
from bochner.exact.folds import folds_of_groups
from bochner.exact.kernels import Inputs
from bochner.exact.lattice import Continuous, Lattice
from bochner.exact.matrix import MatrixColumns
from bochner.exact.sizes import whole_groups
from bochner.fitting.held_out import Named
from bochner.fitting.resolving import Asked
from bochner.fitting.rows import Rows
from bochner.fitting.splits import AbstractSplit, ByTime
from bochner.fitting.task import AbstractTask

FOLDS_BELOW = 4_000
"""Rows below which each row is left out once; of more, some are held out."""

_SHARE_HELD_OUT, _MOST_HELD_OUT = 0.1, 2_000
N_FOLDS = 5

Sources = tuple[tuple[int, ...], ...]
"""The columns of the matrix that each column of the table has become: one, or the dummies of a category."""


@dataclasses.dataclass(frozen=True, eq=False)
class Training:
    """Rows for one target or for classes, none of weight zero.

    Attributes:
        rows: to learn from.
        task: of the target.
        sources: which columns of the matrix belong together.
        asked: likelihood, seed and session of the call; its settings are those of no member.
        split: which rows leave together, as given; None where nothing is.
        given: rows to judge by in place of training rows.
        named: names for messages.
        called: the columns as a user calls them, for kernels; by their places where None.
        lattice: on which all targets are, where their law is rounded to it.
    """

    rows: Rows
    task: AbstractTask
    sources: Sources
    asked: Asked
    split: AbstractSplit | None = None
    given: Rows | None = None
    named: Named = dataclasses.field(default_factory=Named)
    called: Inputs | None = None
    lattice: Lattice | None = None

    def on_its_lattice(self) -> "Training":
        """Find the lattice of the targets, if they have one and no law is asked for."""
        if self.task.classification or self.asked.likelihood is not None:
            return self
        return dataclasses.replace(self, lattice=Lattice.found(self.rows.Y[:, 0]))

    def judge(self, law: Continuous) -> Float[np.ndarray, " judged"]:
        """Compute the log density of the judged targets under a law of them that has not seen them."""
        y = self.judged_rows.Y[:, 0]
        return law.log_density(y) if self.lattice is None else self.lattice.log_density(law, y)

    @property
    def inputs(self) -> Inputs:
        """The columns as kernels name them."""
        return self.called or Inputs(tuple((place,) for place in range(len(self.sources))))

    @functools.cached_property
    def columns(self) -> MatrixColumns:
        """What models in the space of rows make of the matrix."""
        return MatrixColumns.learn(self.rows.X, self.sources, self.named.coded)

    @functools.cached_property
    def encoded(self) -> exact_rows.Rows:
        """The rows as such models see them."""
        return self.columns(self.rows.X)

    @functools.cached_property
    def group_numbers(self) -> Int[np.ndarray, " n"]:
        """The number of each row's group: as given, else rows with equal inputs, or of classes each row alone.

        Equal rows are mostly copies in regression, which say nothing of a new row. Classes of equal rows
        are draws of the same probabilities, and only rows that know their equals can show that these are too certain.
        """
        alone = self.task.classification
        alike = np.arange(len(self.rows)) if alone else self.encoded.groups()
        return alike if self.split is None else self.split.groups(alike, self.judged)

    @functools.cached_property
    def judged(self) -> Int[np.ndarray, " judged"]:
        """Numbers of the training rows that members leave out and are judged by; all of a small table.

        Where later rows judge earlier ones, these are the latest, of a small table a fold.
        """
        n = len(self.rows)
        in_folds, in_time = n < FOLDS_BELOW, isinstance(self.split, ByTime)
        if in_folds and not in_time:
            return np.arange(n)
        wanted = round(n / N_FOLDS) if in_folds else min(round(_SHARE_HELD_OUT * n), _MOST_HELD_OUT)
        if self.split is None:
            return whole_groups(self.group_numbers, wanted, self.asked.seed)[0]
        return self.split.held_out(self.split.enough(wanted), self.asked.seed)

    @functools.cached_property
    def judged_rows(self) -> Rows:
        """The rows that members are judged by."""
        return self.rows[self.judged] if self.given is None else self.given

    @property
    def judged_weights(self) -> Float[np.ndarray, " judged"]:
        """How much each judged row says of which member is better; rows of a group say about the same.

        The size of all weights together says nothing, as in the members.
        """
        weights = self.judged_rows.weights / np.mean(self.judged_rows.weights)
        if self.split is None or self.given is not None:
            return weights
        return weights * (self.split.independent(self.judged) / len(weights))

    @functools.cached_property
    def folds(self) -> Int[np.ndarray, " n"]:
        """The fold of each row, for members that are fitted once for each fold."""
        return folds_of_groups(self.group_numbers, N_FOLDS, self.asked.seed)


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """A fitted member before it has a weight.

    Attributes:
        name: that users see.
        part: the member.
        left_out: log density or probability of each judged row, which the member has not seen.
        seconds: that it took.
    """

    name: str
    part: object
    left_out: Float[np.ndarray, " judged"]
    seconds: float
