"""Classification in the space of rows: exact Gaussian processes of Dirichlet targets, stacked by left-out rows."""

import dataclasses
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.deadlines import NEVER, is_past
from bochner.exact.dirichlet import dirichlet_targets, probabilities
from bochner.exact.folds import folds_of_groups
from bochner.exact.kernels import AbstractKernel
from bochner.exact.learning import Effort, learn
from bochner.exact.marginal import GivenNoise
from bochner.exact.parts import LINEAR_KERNEL, Kind, kernels_of_parts
from bochner.exact.process import Process
from bochner.exact.rows import Rows

STRENGTHS = (0.01, 0.1, 0.001)
"""Of the Dirichlet prior. Hyper-parameters are learned at the first, and held at the others."""
TEMPERATURES = (0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.45, 1.75, 2.1)
_N_FOLDS = 10
_ROWS_AN_AXIS = 10  # with fewer, folds are judged by parameters learned without them
_MOST_LEARNED_FROM = 4
_VARIANCE = 3.0
_ROWS_FOR_NO_CHANGE = 25
LEAST_PROBABILITY = 1e-6


class Functions(Protocol):
    """Anything that gives mean and variance of a function for each class."""

    def predict(self, rows: Rows) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, "n c"]]:
        """Compute mean and variance at each row, for each class."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class ClassProcesses:
    """One process a class, with the same covariance.

    Attributes:
        processes: one a class.
        offsets: the prior mean of each.
    """

    processes: tuple[Process, ...]
    offsets: Float[np.ndarray, " classes"]

    def predict(self, rows: Rows):
        """Compute mean and variance at each row, for each class."""
        first = self.processes[0]
        cross = first.kernel.covariance(first.v, rows, first.rows)
        diagonal = first.kernel.diagonal(first.v, rows)
        found = [process.given(cross, diagonal) for process in self.processes]
        means, variances = (np.stack(one, axis=1) for one in zip(*found, strict=True))
        return means + self.offsets, variances


@dataclasses.dataclass(frozen=True, eq=False)
class ClassPart:
    """One model of the classes.

    Attributes:
        name: of the model.
        kind: of the model.
        functions: what is normalized to probabilities; None where they are the same for all rows.
        frequencies: of the classes in training rows.
        temperature: by which functions are divided.
        left_out: probabilities of the classes for each judged training row when it is left out.
        strength: of the prior of the Dirichlet targets; None where there are none, or a file does not say.
    """

    name: str
    kind: Kind
    functions: Functions | None
    frequencies: Float[np.ndarray, " classes"]
    temperature: float
    left_out: Float[np.ndarray, "judged classes"]
    strength: float | None = None

    def probabilities(self, rows: Rows) -> Float[np.ndarray, "n classes"]:
        """Compute the probability of each class at each row."""
        if self.functions is None:
            return np.tile(self.frequencies, (len(rows), 1))
        return safe(probabilities(*self.functions.predict(rows), self.temperature))


def class_parts(
    rows: Rows,
    labels: Int[np.ndarray, " n"],
    n_classes: int,
    *,
    judged: Int[np.ndarray, " judged"] | None = None,
    weights: Float[np.ndarray, " n"] | None = None,
    groups: Int[np.ndarray, " n"] | None = None,
    kernel: AbstractKernel | None = None,
    effort: Effort | None = None,
    seed: int = 0,
    until: float = NEVER,
) -> list[ClassPart]:
    """Fit the parts, each judged on training rows that it has left out.

    Args:
        rows: the training rows.
        labels: the class of each, counted from zero.
        n_classes: how many classes there are.
        judged: the rows by which parts are judged, in this order; all where None.
        weights: of the rows, all positive; a row of weight w counts like w rows. Each counts once where None.
        groups: rows of the same group are left out together; each alone where None.
        kernel: the covariance of the sum; the one for tables where None.
        effort: what is spent on learning hyper-parameters.
        seed: of the sample of rows on which hyper-parameters are learned first, and of folds.
        until: the deadline, on the clock of `time.monotonic`. Frequencies and linear parts come all the same.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.classes import class_parts
        >>> from bochner.exact.columns import Columns
        >>> x = np.linspace(0, 6, 60)
        >>> columns = Columns.learn([x])
        >>> part = class_parts(columns([x]), (np.sin(2 * x) > 0).astype(int), 2)[-1]
        >>> part.kind, part.probabilities(columns([np.array([0.8, 2.4])])).round(1).tolist()
        ('sum', [[0.0, 1.0], [1.0, 0.0]])
    """
    alone = np.arange(len(labels))
    groups = alone if groups is None else np.unique(groups, return_inverse=True)[1]
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, np.float64)
    judged = np.arange(len(labels)) if judged is None else judged
    frequent = frequency_part(labels, n_classes, weights, groups)
    parts = [dataclasses.replace(frequent, left_out=frequent.left_out[judged])]
    if not rows.layout.n_axes or len(labels) < 3:
        return parts
    folds = folds_of_groups(groups, _N_FOLDS, seed)
    effort = effort or Effort()
    fitting = _Fitting(rows, labels, n_classes, judged, weights, folds, seed, until)
    light = dataclasses.replace(effort, all=3, scales=(1.0,))
    parts += fitting.parts("linear", LINEAR_KERNEL, (0.1,), light)
    if not is_past(until):
        parts += fitting.parts("sum", kernels_of_parts(kernel)["sum"], STRENGTHS, effort)
    return parts


def frequency_part(
    labels: Int[np.ndarray, " n"],
    n_classes: int,
    weights: Float[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"] | None = None,
) -> ClassPart:
    """Make the model that says the same of each row, with half a row more in each class.

    It is judged by the frequencies in other groups.
    """
    counts = np.bincount(labels, weights, minlength=n_classes) + 0.5
    groups = np.arange(len(labels)) if groups is None else groups
    of_groups = np.zeros((int(groups.max()) + 1, n_classes))
    np.add.at(of_groups, (groups, labels), weights)
    without = np.maximum(counts - of_groups[groups], 0.5)
    left = without / np.sum(without, axis=1, keepdims=True)
    frequencies = counts / np.sum(counts)
    return ClassPart("frequencies", "constant", None, frequencies, 1.0, left)


def choose_temperature(
    mean: Float[np.ndarray, "n c"],
    variance: Float[np.ndarray, "n c"],
    labels: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"] | None = None,
) -> tuple[float, Float[np.ndarray, "n c"]]:
    """Choose the temperature by left-out labels, as if 25 further rows had called for none; give probabilities too."""
    counts = np.ones(len(labels)) if weights is None else weights
    best, found = np.inf, None
    for temperature in TEMPERATURES:
        p = safe(probabilities(mean, variance, temperature))
        loss = -float(counts @ np.log(p[np.arange(len(labels)), labels]))
        loss += 0.5 * _ROWS_FOR_NO_CHANGE * np.log(temperature) ** 2
        if loss < best:
            best, found = loss, (temperature, p)
    assert found is not None
    return found


def safe(p: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n c"]:
    """Keep probabilities from being zero."""
    p = np.maximum(p, LEAST_PROBABILITY)
    return p / np.sum(p, axis=1, keepdims=True)


def weighted_targets(
    labels: Int[np.ndarray, " n"],
    n_classes: int,
    strength: float,
    weights: Float[np.ndarray, " n"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the Dirichlet targets of rows less their means, the noise of rows of such weights, and the means."""
    targets, noise = dirichlet_targets(labels, n_classes, strength)
    offsets = np.average(targets, axis=0, weights=weights)
    return targets - offsets, noise / weights[:, None], offsets


def learn_from_classes(
    kernel: AbstractKernel,
    rows: Rows,
    labels: Int[np.ndarray, " n"],
    n_classes: int,
    weights: Float[np.ndarray, " n"],
    *,
    strength: float,
    effort: Effort,
    seed: int,
    until: float,
) -> Float[np.ndarray, " parameters"]:
    """Learn the parameters of the covariance from the most frequent classes, four at most."""
    targets, noise, _ = weighted_targets(labels, n_classes, strength, weights)
    counts = np.bincount(labels, weights, minlength=n_classes)
    used = np.sort(np.argsort(-counts, kind="stable")[:_MOST_LEARNED_FROM])
    return learn(
        kernel,
        rows,
        targets[:, used],
        GivenNoise(noise[:, used]),
        variance=_VARIANCE,
        effort=effort,
        seed=seed,
        until=until,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Fitting:
    rows: Rows
    labels: Int[np.ndarray, " n"]
    n_classes: int
    judged: Int[np.ndarray, " judged"]
    weights: Float[np.ndarray, " n"]
    folds: Int[np.ndarray, " n"]
    seed: int
    until: float

    def parts(
        self, kind: Kind, kernel: AbstractKernel, strengths: tuple[float, ...], effort: Effort
    ) -> list[ClassPart]:
        """Make a part for each strength, all with the parameters learned at the first."""
        everyone = np.arange(len(self.labels))
        v = self._learn(kernel, everyone, strengths[0], effort)
        K = kernel.covariance(v, self.rows, self.rows)
        left = {}
        if self.rows.layout.n_axes * _ROWS_AN_AXIS > len(self.labels):
            left = self._left_out_of_refits(kernel, strengths, effort)
        made = []
        share = np.bincount(self.labels, self.weights, minlength=self.n_classes)
        share /= np.sum(share)
        for strength in strengths:
            functions = self._condition(kernel, v, everyone, strength, K)
            if strength not in left:
                left[strength] = self._left_out(functions)
            own = self.judged
            mean, variance = left[strength][:, own]
            temperature, p = choose_temperature(mean, variance, self.labels[own], self.weights[own])
            name = f"{kind}, strength {strength:g}"
            made.append(ClassPart(name, kind, functions, share, temperature, p, strength))
        return made

    def _learn(self, kernel, index, strength: float, effort: Effort) -> np.ndarray:
        return learn_from_classes(
            kernel,
            self.rows[index],
            self.labels[index],
            self.n_classes,
            self.weights[index],
            strength=strength,
            effort=effort,
            seed=self.seed,
            until=self.until,
        )

    def _condition(self, kernel, v, index, strength: float, K) -> ClassProcesses:
        targets, noise, offsets = weighted_targets(
            self.labels[index], self.n_classes, strength, self.weights[index]
        )
        return ClassProcesses(
            tuple(
                Process.condition(kernel, v, self.rows[index], t, own, K)
                for t, own in zip(targets.T, noise.T, strict=True)
            ),
            offsets,
        )

    def _left_out(self, functions: ClassProcesses) -> np.ndarray:
        means, variances = np.empty((2, len(self.labels), self.n_classes))
        for c, process in enumerate(functions.processes):
            mean, variance = process.left_out(self.folds)
            means[:, c] = mean + functions.offsets[c]
            variances[:, c] = np.maximum(variance - process.noise, 1e-6)
        return np.stack([means, variances])

    def _left_out_of_refits(self, kernel, strengths, effort: Effort):
        """Leave folds out with parameters learned anew, for parameters of many axes have seen what few rows say."""
        shape = (2, len(self.labels), self.n_classes)
        left = {strength: np.full(shape, np.nan) for strength in strengths}
        light = dataclasses.replace(effort, scales=effort.scales[:1], then=effort.then // 2, all=3)
        for fold in range(0, int(self.folds.max()) + 1, 2):
            out = (self.folds == fold) | (self.folds == fold + 1)
            kept = np.flatnonzero(~out)
            if not len(kept):
                return {}
            if not out[self.judged].any():
                continue
            v = self._learn(kernel, kept, strengths[0], light)
            for strength in strengths:
                functions = self._condition(kernel, v, kept, strength, None)
                left[strength][:, out] = np.stack(functions.predict(self.rows[out]))
        return left
