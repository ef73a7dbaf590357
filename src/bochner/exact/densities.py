"""Regression with a density of free shape: probabilities of cells of the target by a logistic Gaussian process."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.cells import CellLaw, Cells
from bochner.exact.deadlines import NEVER, is_past
from bochner.exact.folds import folds_of_groups
from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen, choose_landmarks
from bochner.exact.lattice import Continuous, Lattice, smoothed
from bochner.exact.logistic import N_STEPS, Shapes, gram, most_probable, preconditioners
from bochner.exact.parts import Kind, Part
from bochner.exact.rows import Rows

_FEWEST_ROWS = 60
_ROWS_A_CELL, _FEWEST_CELLS, _MOST_CELLS = 20, 15, 100  # fewer spread narrow laws over wide cells
_MOST_ROWS = 50_000
_MOST_LANDMARKS = 300  # where each row is left out, which takes a fit for each fold
_AMPLITUDES = (0.3, 1.0, 3.0, 10.0, 30.0)
_SMOOTHNESSES = (0.4, 0.15, 0.05)
_START, _STEPS = (2, 1), ((1, 0), (-1, 0), (0, 1), (0, -1))
_HOPELESS = 0.3  # nats that a row has less than under the best process
_N_FOLDS, _STEPS_MORE = 5, 10


@dataclasses.dataclass(frozen=True, eq=False)
class DensityPart:
    """One model of the target's density.

    Attributes:
        name: of the model.
        landmarks: that give the features.
        cells: of the target.
        shapes: what the log density may look like.
        weights: of the features, for each direction.
        left_out: log density of each judged training target when it is left out.
        unseen: the law that says so.
    """

    name: str
    landmarks: Landmarks
    cells: Cells
    shapes: Shapes
    weights: Float[np.ndarray, "m directions"]
    left_out: Float[np.ndarray, " judged"] = dataclasses.field(default_factory=lambda: np.zeros(0))
    unseen: CellLaw | None = None
    kind: ClassVar[Kind] = "density"

    def law(self, rows: Rows) -> CellLaw:
        """Predict the target at each row."""
        functions = self.landmarks.features(rows)[0] @ self.weights
        return CellLaw(self.cells, self.shapes.probabilities(functions))


def density_parts(
    rows: Rows,
    y: Float[np.ndarray, " n"],
    parts: Sequence[Part],
    judged: Int[np.ndarray, " judged"],
    *,
    weights: Float[np.ndarray, " n"] | None = None,
    groups: Int[np.ndarray, " n"] | None = None,
    lattice: Lattice | None = None,
    seed: int = 0,
    until: float = NEVER,
) -> list[DensityPart]:
    """Fit a density of free shape with the covariance of the best process that was fitted to the same rows.

    Of several amplitudes of the prior the one is taken under which rows are most probable that were left out: all by
    folds, or some held out, after which the model sees all.

    Args:
        rows: the training rows.
        y: the training targets.
        parts: what was fitted to them.
        judged: the rows by which parts are judged, in this order.
        weights: of the rows, all positive; a row of weight w counts like w rows. Each counts once where None.
        groups: rows of the same group are left out together; those with equal inputs where None.
        lattice: on which all targets are, if any.
        seed: of folds, and of landmarks where the process has none.
        until: the deadline, on the clock of `time.monotonic`.

    Returns:
        One part, or none where there are too few rows or targets, no time, or nothing to be gained by far.

    Example:
        >>> import numpy as np
        >>> from bochner.exact import Columns, regression_parts
        >>> from bochner.exact.densities import density_parts
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, 300)
        >>> y = x * rng.choice([-3, 3], 300) + 0.1 * rng.normal(size=300)  # two branches
        >>> rows = Columns.learn([x])([x])
        >>> parts = regression_parts(rows, y, varying_noise=False)
        >>> part, = density_parts(rows, y, parts, np.arange(300))
        >>> bool(part.left_out.mean() > max(one.left_out.mean() for one in parts) + 0.3)
        True
    """
    counts = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    processes = [one for one in parts if one.kind in ("smooth", "sum")]
    if len(y) < _FEWEST_ROWS or not processes or is_past(until):
        return []
    if lattice is None:
        n_cells = min(len(y) // _ROWS_A_CELL, _MOST_CELLS)
        if n_cells < _FEWEST_CELLS:
            return []
        cells = Cells.learn(y, n_cells, counts)
    else:
        cells = lattice.cells(y, counts)
    if len(cells) < 2:
        return []
    groups = rows.groups() if groups is None else np.unique(groups, return_inverse=True)[1]
    scores = [_score(one.unseen, y[judged], counts[judged], lattice) for one in processes]
    best = int(np.argmax(scores))
    most = _MOST_LANDMARKS if len(judged) == len(y) else len(y)
    landmarks = _landmarks(processes[best].process, rows, most, seed)
    used = _used(len(y), judged, seed)
    features, own = Seen.of(landmarks, rows[used]).features, np.searchsorted(used, judged)
    fitting = _Fitting(
        features, y[used], cells, lattice, counts[used], own, groups[used], seed, until
    )
    found = fitting.best(scores[best])
    if found is None:
        return []
    shapes, W, p = found
    unseen = CellLaw(cells, p)
    part = DensityPart(
        "density", landmarks, cells, shapes, W, unseen.log_density(y[judged]), unseen
    )
    return [part]


def _score(
    law: Continuous | None,
    y: Float[np.ndarray, " judged"],
    counts: Float[np.ndarray, " judged"],
    lattice: Lattice | None,
) -> float:
    """Sum up the log density of judged targets under a law, of masses where they are on a lattice."""
    assert law is not None
    density = law.log_density(y) if lattice is None else lattice.log_density(law, y)
    return float(counts @ density)


def _used(n: int, judged: Int[np.ndarray, " judged"], seed: int) -> Int[np.ndarray, " used"]:
    """Choose the rows to learn from, those that are judged among them: all, or as many as there is time for."""
    if n <= _MOST_ROWS:
        return np.arange(n)
    return np.union1d(judged, np.random.default_rng(seed).permutation(n)[:_MOST_ROWS])


def _landmarks(process: Any, rows: Rows, most: int, seed: int) -> Landmarks:
    """Give those of a process, or fewer with its covariance."""
    known = process.landmarks if isinstance(process, LandmarkProcess) else process
    if isinstance(known, Landmarks) and len(known.rows) <= most:
        return known
    chosen = choose_landmarks(rows, min(most, _MOST_LANDMARKS), seed)
    return Landmarks.of(known.kernel, known.v, rows[chosen])


@dataclasses.dataclass(frozen=True, eq=False)
class _Fitting:
    features: Float[np.ndarray, "n m"]
    y: Float[np.ndarray, " n"]
    cells: Cells
    lattice: Lattice | None
    counts: Float[np.ndarray, " n"]
    judged: Int[np.ndarray, " judged"]
    groups: Int[np.ndarray, " n"]
    seed: int
    until: float

    def best(self, of_others: float) -> tuple[Shapes, np.ndarray, np.ndarray] | None:
        """Find amplitude and smoothness by steps that left-out rows gain from; then fit to all rows.

        None where the first are so much worse than another model that steps would not help.
        """
        tried: dict[tuple[int, int], _Tried] = {}

        def score(place: tuple[int, int]) -> float:
            if place not in tried:
                tried[place] = self._tried(_AMPLITUDES[place[0]], _SMOOTHNESSES[place[1]])
            return tried[place].score

        best = _START
        if score(best) < of_others - _HOPELESS * float(np.sum(self.counts[self.judged])):
            return None
        for step in _STEPS:
            while True:
                place = best[0] + step[0], best[1] + step[1]
                inside = place[0] in range(len(_AMPLITUDES)) and place[1] in range(
                    len(_SMOOTHNESSES)
                )
                if not inside or is_past(self.until) or score(place) <= score(best):
                    break
                best = place
        found = tried[best]
        return found.shapes, self._of_all_rows(found), found.unseen

    def _tried(self, amplitude: float, smoothness: float) -> "_Tried":
        """Fit without judged rows, and predict these."""
        shapes = Shapes.of(self.frequencies, amplitude, smoothness)
        factors = preconditioners(self.gram, shapes)
        p, W = np.empty((len(self.judged), len(self.cells))), None
        for out in self._left_out():
            W = self._fit(shapes, factors, np.where(out, 0.0, self.counts))
            own = np.flatnonzero(out[self.judged])
            p[own] = shapes.probabilities(self.features[self.judged[own]] @ W)
        law, judged = CellLaw(self.cells, p), self.judged
        score = _score(law, self.y[judged], self.counts[judged], self.lattice)
        return _Tried(score, shapes, factors, None if self._by_folds else W, p)

    def _of_all_rows(self, found: "_Tried") -> np.ndarray:
        n_steps = N_STEPS if found.weights is None else _STEPS_MORE
        return self._fit(found.shapes, found.factors, self.counts, found.weights, n_steps)

    def _fit(self, shapes, factors, counts, start=None, n_steps=N_STEPS) -> np.ndarray:
        return most_probable(
            self.features, self.places, counts, shapes, factors,
            start=start, n_steps=n_steps, until=self.until,
        )  # fmt: skip

    @functools.cached_property
    def places(self) -> Int[np.ndarray, " n"]:
        return self.cells.places(self.y)

    @functools.cached_property
    def frequencies(self) -> Float[np.ndarray, " cells"]:
        """How many rows each cell has; those on a lattice are not of equal weight, and may have few by chance."""
        found = np.bincount(self.places, self.counts, len(self.cells))
        return found if self.lattice is None else smoothed(found)

    @functools.cached_property
    def gram(self) -> Float[np.ndarray, "m m"]:
        return gram(self.features, self.counts)

    @property
    def _by_folds(self) -> bool:
        return len(self.judged) == len(self.y)

    def _left_out(self) -> list[np.ndarray]:
        """Give which rows are left out together."""
        if self._by_folds:
            folds = folds_of_groups(self.groups, _N_FOLDS, self.seed)
            return [folds == fold for fold in range(int(folds.max()) + 1)]
        return [np.isin(self.groups, self.groups[self.judged])]


@dataclasses.dataclass(frozen=True, eq=False)
class _Tried:
    """A model of the rows that are not judged, or of the last fold."""

    score: float
    shapes: Shapes
    factors: list[np.ndarray]
    weights: np.ndarray | None
    unseen: Float[np.ndarray, "judged cells"]
